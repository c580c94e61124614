"""The README's examples are what the package takes and says."""

import re

import pytest
import yaml

from soperator_pulumi import SlurmCluster, testing
from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.cluster import parse_cluster
from tools import paths

README = (paths.ROOT / "README.md").read_text()


def example(language: str) -> str:
    """Return the one block of a language."""
    (block,) = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return str(block)


def test_the_stack_file_describes_a_cluster() -> None:
    cluster = yaml.safe_load(example("yaml"))["config"]["soperator:cluster"]

    assert parse_cluster(cluster, where="README.md").node_sets[0].replicas == 16


def test_the_program_deploys_a_cluster() -> None:
    deployment = testing.deploy(lambda: exec(example("python"), {}))  # noqa: S102 - it is the README that is tried

    assert deployment.one("hpc-cpu", "StatefulSet").inputs["spec"]["replicas"] == 16
    assert "login" in deployment.exports


def test_the_error_is_what_is_said() -> None:
    cluster = yaml.safe_load(example("yaml"))["config"]["soperator:cluster"]
    cluster["node_sets"].append({"name": "cpu", "cpus": 32, "memory_gib": "2G"})

    with pytest.raises(SpecError) as error:
        parse_cluster(cluster, where="soperator:cluster")

    assert str(error.value) + "\n" == example("text")


def test_the_table_lists_each_component_of_a_cluster_with_its_objects() -> None:
    described = yaml.safe_load(example("yaml"))["config"]["soperator:cluster"]
    described |= {
        "accounting": {"dump": {"schedule": "0 3 * * *"}},
        "rest": {},
        "metrics": {"pod_monitor": True, "alerts": {}},
        "health": {"long_checks": {"memory_bandwidth": {}}},
    }
    described["images"] |= {name: f"registry.example.com/soperator/{name}:24.11" for name in ("rest", "exporter")}
    made = testing.deploy(lambda: SlurmCluster("hpc", described)).resources()
    rows = re.findall(r"(?m)^\| `(\w+)` \|[^|]*\| (.*) \|$", README)
    ours = {each.type.split(":")[-1] for each in made if each.type.startswith("soperator-pulumi:")}
    assert {component for component, _ in rows} == ours - {"AccountingDumps", "Database", "RulesAndDashboards"}
    names = {each.inputs["metadata"]["name"] for each in made if "metadata" in each.inputs}
    named = [name.partition("<")[0] for name in re.findall(r"`([^`]+)`", " ".join(objects for _, objects in rows))]
    assert [name for name in named if not any(known.startswith(name) for known in names)] == []
