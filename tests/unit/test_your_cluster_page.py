"""Examples of docs/your-cluster.md and the README: the package takes them, and prints the error."""

import re

import pytest
import yaml

from soperator_pulumi import SlurmCluster, testing
from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.cluster import parse_cluster
from tools import paths

PAGE = (paths.ROOT / "docs" / "your-cluster.md").read_text()
README = (paths.ROOT / "README.md").read_text()


def example(language: str) -> str:
    """Return the only block of a language in the page."""
    (block,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(block)


def test_the_stack_file_describes_a_cluster() -> None:
    cluster = yaml.safe_load(example("yaml"))["config"]["soperator:cluster"]

    assert parse_cluster(cluster, where="docs/your-cluster.md").node_sets[0].replicas == 16


def test_the_node_set_of_the_readme_fits_that_cluster() -> None:
    (node_sets,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    cluster = yaml.safe_load(example("yaml"))["config"]["soperator:cluster"] | yaml.safe_load(node_sets)

    assert parse_cluster(cluster, where="README.md").node_sets[0].replicas == 64


def test_the_readme_has_at_most_700_words() -> None:
    assert len(README.split()) <= 700


def test_the_program_deploys_a_cluster() -> None:
    deployment = testing.deploy(lambda: exec(example("python"), {}))  # noqa: S102 - runs the page's own program

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
    rows = re.findall(r"(?m)^\| `(\w+)` \|[^|]*\| (.*) \|$", PAGE)
    ours = {resource.type.split(":")[-1] for resource in made if resource.type.startswith("soperator-pulumi:")}
    assert {component for component, _ in rows} == ours - {"AccountingDumps", "Database", "RulesAndDashboards"}
    names = {resource.inputs["metadata"]["name"] for resource in made if "metadata" in resource.inputs}
    named = [name.partition("<")[0] for name in re.findall(r"`([^`]+)`", " ".join(objects for _, objects in rows))]
    assert [name for name in named if not any(known.startswith(name) for known in names)] == []
