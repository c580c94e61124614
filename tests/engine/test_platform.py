"""A platform on both engines: releases from a folder, definitions that outlive it, and parts that exist."""

import json
import secrets
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from tests import left_behind, warm_python
from tests.conftest import Kubernetes
from tests.engine import stand_in_charts
from tests.engine.engines import ENGINES
from tests.examples import example
from tests.waiting import wait_until
from tools.engine import Deployer, DeployError, StepOp, Target

pytestmark = pytest.mark.engine

PLATFORM = "platform-and-cluster/platform"


@dataclass
class Platform:
    """The example's platform, in namespaces of a test's own, from charts in a folder."""

    engine: str
    kubernetes: Kubernetes
    folder: Path
    certificates: str
    databases: str

    def deployer(self, **parts: Any) -> Deployer:
        """Return the engine for a platform of these parts, or of both charts."""
        project = self.folder / "platform"
        if not project.exists():
            shutil.copytree(example(PLATFORM).folder, project)
            (project / "venv").symlink_to(sys.prefix)
        described = parts or {
            "source": {"folder": str(self.folder / "charts")},
            "cert_manager": {"namespace": self.certificates, "values": {"replicaCount": 2}},
            "mariadb_operator": {"namespace": self.databases},
        }
        context = self.kubernetes.target.context
        target = Target(
            project=project,
            stack="test",
            state=self.folder / "state",
            environment={"KUBECONFIG": str(self.kubernetes.kubeconfig)},
            config={"hpc-platform:platform": described, **({"kubernetes:context": context} if context else {})},
            python=warm_python.executable(),
        )
        return ENGINES[self.engine](target, lambda _: None)

    def values(self, namespace: str) -> Any:
        """Return the values that the chart of a namespace was given."""
        found: Any = self.kubernetes.core.read_namespaced_config_map("values", namespace)
        return json.loads(found.data["values"])

    def definition(self) -> str | None:
        """Return the UID of the definition of databases; None if there is none."""
        try:
            found: Any = self.api.read_custom_resource_definition(f"databases.{self.databases}.example.com")
        except ApiException as error:
            if error.status == 404:
                return None
            raise
        return str(found.metadata.uid)

    @property
    def api(self) -> client.ApiextensionsV1Api:
        return client.ApiextensionsV1Api(self.kubernetes.api)

    def namespaces(self) -> set[str]:
        every: Any = self.kubernetes.core.list_namespace()
        return {item.metadata.name for item in every.items} & {self.certificates, self.databases}


@pytest.fixture
def platform(engine: str, kubernetes: Kubernetes, tmp_path: Path) -> Iterator[Platform]:
    stand_in_charts.write(tmp_path / "charts")
    number = secrets.token_hex(3)
    certificates, databases = (left_behind.record(f"{part}-{number}") for part in ("certificates", "databases"))
    made = Platform(engine, kubernetes, tmp_path, certificates, databases)
    yield made
    if made.definition():
        made.api.delete_custom_resource_definition(f"databases.{made.databases}.example.com")
    for namespace in made.namespaces():
        kubernetes.throw_away(namespace)


def test_a_platform_is_installed_once_and_its_definitions_outlive_it_for_the_next_installation(
    platform: Platform,
) -> None:
    deployer = platform.deployer()
    deployer.up()

    assert deployer.outputs()["parts"] == ["cert_manager", "mariadb_operator"]
    assert platform.values(platform.certificates) == {"crds": {"enabled": True, "keep": True}, "replicaCount": 2}
    assert platform.values(platform.databases)["crds"] == {"enabled": False}
    namespace: Any = platform.kubernetes.core.read_namespace(platform.certificates)
    assert namespace.metadata.labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert deployer.preview(refresh=True).changed == ()
    definition = platform.definition()
    assert definition

    deployer.destroy()
    wait_until(lambda: not platform.namespaces(), "the namespaces of the platform are gone", timeout_seconds=120)
    assert platform.definition() == definition, "with it, every database would be gone"

    assert platform.deployer().up().of(StepOp.CREATE)
    assert platform.definition() == definition, "the release takes the definition over as it is"


def test_a_part_of_the_stack_is_never_removed_unnoticed_and_kept_where_it_is_handed_over(platform: Platform) -> None:
    source = {"source": {"folder": str(platform.folder / "charts")}}
    ours = {"namespace": platform.certificates}
    platform.deployer(**source, cert_manager=ours).up()

    with pytest.raises(DeployError, match="cert_manager: exists: true, but "):
        platform.deployer(**source, cert_manager={"exists": True}).up()
    assert platform.values(platform.certificates)

    platform.deployer(**source, cert_manager={**ours, "keep": True}).up()
    left = platform.deployer(**source).up()
    assert left.of(StepOp.DELETE)
    assert platform.values(platform.certificates)
    namespace: Any = platform.kubernetes.core.read_namespace(platform.certificates)
    assert namespace.status.phase == "Active"


def test_a_part_that_should_exist_and_does_not_stops_the_preview_with_every_problem(platform: Platform) -> None:
    with pytest.raises(DeployError) as caught:
        platform.deployer(gpu_operator={"exists": True}, storage_class="no-such-class").preview()
    words = str(caught.value)
    assert "soperator:platform has 3 problems:" in words
    assert (
        "gpu_operator: exists: true, but the GPU Operator has no definition clusterpolicies.nvidia.com here." in words
    )
    assert 'storage_class: there is no StorageClass "no-such-class".' in words
