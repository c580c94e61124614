"""The tier engine on Pythons that users have and this machine has not, against the API server of this one."""

from pathlib import Path

import pytest

from tests import left_behind
from tests.cluster.slurm import bring_images
from tests.conftest import Kubernetes
from tests.other_pythons import CACHE, RELEASES, STATE, OtherPython
from tools import paths
from tools.soak.parts import WORKERS

pytestmark = [pytest.mark.engine, pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(2400)]

TIMEOUT_SECONDS = 1200
TIER = (".venv/bin/python", "-m", "pytest", "-n", str(WORKERS), "--dist", "loadfile", "tests/engine")
KUBECONFIG = Path("/etc/kubeconfig")


@pytest.mark.parametrize("version", RELEASES)
def test_the_tests_of_the_tier_pass(kubernetes: Kubernetes, version: str) -> None:
    bring_images(kubernetes)
    built, namespaces = paths.cache_dir() / "bin", left_behind._FOLDER
    code = OtherPython(version).run(
        *TIER,
        timeout_seconds=TIMEOUT_SECONDS,
        mounted={
            KUBECONFIG: kubernetes.kubeconfig,
            CACHE / built.relative_to(built.parent.parent): built,
            STATE / namespaces.relative_to(namespaces.parent.parent): namespaces,
        },
        KUBECONFIG=str(KUBECONFIG),
        **({"CONTEXT": kubernetes.target.context} if kubernetes.target.context else {}),
    )
    assert code == 0
