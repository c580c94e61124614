"""A pack of someone else's: our policies without some, and theirs, as Pulumi runs it and in their own tests."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples import FOLDER
from tests.rendered.policy.packs import Pack, failing, running
from tests.rendered.policy.violating import VIOLATING, a_cluster, deployed
from tools import paths

OWN = FOLDER / "own-policy"


@pytest.fixture(scope="module")
def pack() -> Iterator[Pack]:
    settings = {"cost-centres": {"prefix": "team-"}}
    with running(OWN, "prod", {"settings": settings}) as pack:
        yield pack


def test_their_policy_is_one_of_the_pack_with_its_settings_in_the_stack_s_file(pack: Pack) -> None:
    found = pack.judge(deployed(a_cluster(labels={"cost-centre": "cc-1"})))
    assert failing(found) == {"cost-centres"}
    assert "Namespace hpc-namespace, metadata.labels.cost-centre: needs a cost centre, team-..." in found[0].message
    assert pack.judge(deployed(a_cluster(labels={"cost-centre": "team-1"}))) == []


def test_ours_that_they_switched_off_is_none(pack: Pack) -> None:
    assert {policy.name for policy in pack.info().policies} >= {"labels", "cost-centres"}
    assert "names" not in {policy.name for policy in pack.info().policies}
    assert pack.judge(*VIOLATING["names"].deployed()) == []


def test_their_own_tests_pass_in_their_folder(tmp_path: Path) -> None:
    folder = tmp_path / "own-policy"
    shutil.copytree(OWN, folder)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(paths.ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
