"""The examples, deployed to a real Kubernetes: the smallest one by someone who has nothing but the built package."""

import json
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import installed, left_behind, warm_python
from tests.cluster.slurm import QUICK, SMALL, SMALLEST_JAIL, a_jail, bring_images
from tests.conftest import Kubernetes
from tests.engine.engines import ENGINES
from tests.examples import example
from tools import images
from tools.engine import Deployer, Target

pytestmark = pytest.mark.engine

CLUSTER: dict[str, Any] = {
    "slurm": {"constrain": "none", "extra": dict(QUICK)},
    "controller": {"pod_resources": SMALL},
    "login": {"pod_resources": SMALL},
    "storage": {"keep": False, "state": {"size_gib": 1}},
}
"""Description of a cluster for a machine of two cores, as a user's stack has that of a data centre."""


DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


@dataclass
class Deployed:
    """Examples in folders of their user's, each a stack of the same name."""

    engine: str
    kubernetes: Kubernetes
    folder: Path
    stack: str

    def deployer(self, name: str, config: Mapping[str, object], environment: Path | None = None) -> Deployer:
        """Return the engine for a copy of an example, whose programs run in a virtual environment."""
        project = self.folder / name
        if not project.exists():
            shutil.copytree(example(name).folder, project)
            (project / "venv").symlink_to(environment or sys.prefix)
        target = Target(
            project=project,
            stack=self.stack,
            state=self.folder / "state",
            environment={"KUBECONFIG": str(self.kubernetes.kubeconfig)},
            config={**config, **({"kubernetes:context": c} if (c := self.kubernetes.target.context) else {})},
            python=None if environment else warm_python.executable(),
        )
        return ENGINES[self.engine](target, lambda _: None)

    def description(self, *, accounting: bool = False, **changes: object) -> dict[str, Any]:
        """Return a cluster; one with accounting has a database, whose start takes as long as all else."""
        without = {} if accounting else {"accounting": "none"}
        return {"images": images.references(), **CLUSTER, **without, **changes}

    def nodes(self, namespace: str) -> list[str]:
        """Return the nodes of a cluster, each with its state."""
        command = ["sinfo", "--noheader", "--Node", "--format", "%N %t"]
        return self.kubernetes.exec(namespace, "controller-0", "slurmctld", *command).splitlines()

    def default_storage_class(self) -> str:
        """Return the class that claims have which name none."""
        listed = json.loads(self.kubernetes.run("get", "storageclasses", "--output", "json"))["items"]
        described = [item["metadata"] for item in listed]
        (name,) = (item["name"] for item in described if item.get("annotations", {}).get(DEFAULT_CLASS) == "true")
        return str(name)


@pytest.fixture
def user(engine: str, kubernetes: Kubernetes, tmp_path: Path) -> Iterator[Callable[..., Deployed]]:
    """Someone with a Kubernetes cluster. The namespaces of what they deploy are taken away afterwards."""
    bring_images(kubernetes)
    namespaces: list[str] = []

    def with_namespaces(*names: str) -> Deployed:
        stack = f"dev-{secrets.token_hex(3)}"
        namespaces.extend(left_behind.record(f"{name}-{stack}") for name in names)
        return Deployed(engine, kubernetes, tmp_path, stack)

    yield with_namespaces
    for namespace in namespaces:
        kubernetes.throw_away(namespace)


def test_the_minimal_example_deploys_from_an_environment_that_holds_the_built_package_alone(
    user: Callable[..., Deployed], tmp_path: Path
) -> None:
    made = user("hpc")
    namespace = f"hpc-{made.stack}"
    config = {"soperator:cluster": made.description(accounting=True, jail=a_jail(), namespace=namespace)}
    deployer = made.deployer("minimal", config, installed.environment(tmp_path).folder)
    deployer.up()
    assert deployer.outputs()["namespace"] == namespace
    assert made.nodes(namespace) == ["cpu-0 idle", "cpu-1 idle"]
    assert deployer.preview(refresh=True).changed == ()


def test_a_stack_file_deploys_by_the_built_package_alone(user: Callable[..., Deployed], tmp_path: Path) -> None:
    made = user("hpc")
    namespace = f"hpc-{made.stack}"
    node_set = example("stack-file").config()["soperator:cluster"]["node_sets"][0]
    described = made.description(
        jail=a_jail(), name="hpc", namespace=namespace, node_sets=[{**node_set, "replicas": 1}]
    )
    deployer = made.deployer("stack-file", {"soperator:cluster": described}, installed.environment(tmp_path).folder)
    deployer.up()
    assert deployer.outputs()["namespace"] == namespace
    assert made.nodes(namespace) == ["cpu-0 idle"]


@pytest.mark.soak
def test_two_clusters_run_in_parallel(user: Callable[..., Deployed]) -> None:
    made = user("research", "teaching")
    deployer = made.deployer("two-clusters", {"soperator:cluster": made.description(jail=a_jail())})
    deployer.up()
    assert made.nodes(f"research-{made.stack}") == ["cpu-0 idle", "cpu-1 idle"]
    assert made.nodes(f"teaching-{made.stack}") == ["cpu-0 idle"]
    assert deployer.outputs().keys() == {"research", "teaching"}


@pytest.mark.soak
def test_a_larger_program_gives_a_cluster_its_namespace_and_its_volumes(user: Callable[..., Deployed]) -> None:
    made = user("research")
    namespace = f"research-{made.stack}"
    config = {
        "soperator:cluster": made.description(),
        "soperator:kubeconfig": made.kubernetes.kubeconfig.read_text(),
        "soperator:root-image": SMALLEST_JAIL.reference,
        "soperator:protect": "false",
        "soperator:homes-gib": "1",
        "soperator:datasets-gib": "1",
    }
    deployer = made.deployer("larger-program", config)
    deployer.up()
    made.kubernetes.exec(namespace, "cpu-0", "slurmd", "test", "-d", "/jail")
    assert made.nodes(namespace) == ["cpu-0 idle"]
    told = made.kubernetes.run("get", "configmap", "how-to-log-in", "-n", namespace, "-o", "jsonpath={.data.endpoint}")
    assert told == deployer.outputs()["login"]


@pytest.mark.soak
def test_a_cluster_stands_on_the_volumes_of_another_stack(user: Callable[..., Deployed]) -> None:
    made = user("hpc")
    namespace = f"hpc-{made.stack}"
    volumes = {
        "storage-class": made.default_storage_class(),
        "jail-gib": "1",
        "state-gib": "1",
        "database-gib": "1",
        "keep": "false",
    }
    made.deployer("storage-and-cluster/storage", {f"hpc-storage:{key}": value for key, value in volumes.items()}).up()
    described = made.description(accounting=True)
    config = {"soperator:cluster": described, "soperator:root-image": SMALLEST_JAIL.reference}
    made.deployer("storage-and-cluster/cluster", config).up()
    assert made.nodes(namespace) == ["cpu-0 idle"]
    phases = "jsonpath={range .items[*]}{.metadata.name} {.status.phase}{'\\n'}{end}"
    claims = made.kubernetes.run("get", "persistentvolumeclaims", "-n", namespace, "-o", phases)
    assert claims.splitlines() == ["database Bound", "jail Bound", "slurmctld-state Bound"]


@pytest.mark.soak
def test_a_cluster_stands_on_the_platform_of_another_stack(user: Callable[..., Deployed]) -> None:
    """The charts of a platform have tests of their own (test_platform.py): here it names the class that is there."""
    made = user("hpc")
    namespace = f"hpc-{made.stack}"
    storage_class = made.default_storage_class()
    described = {"hpc-platform:platform": {"storage_class": storage_class}}
    platform = made.deployer("platform-and-cluster/platform", described)
    platform.up()
    assert platform.outputs()["storage_class"] == storage_class
    small = made.description(jail={"storage": {"size_gib": 1}})
    config = {"soperator:cluster": small, "soperator:root-image": SMALLEST_JAIL.reference}
    made.deployer("platform-and-cluster/cluster", config).up()
    assert made.nodes(namespace) == ["cpu-0 idle"]
    chosen = "jsonpath={.spec.storageClassName}"
    claim = made.kubernetes.run("get", "persistentvolumeclaim", "jail", "-n", namespace, "-o", chosen)
    assert claim == storage_class
