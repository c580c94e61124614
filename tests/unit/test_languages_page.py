"""The page on other languages: its programs are what the plugin takes, its lists what it has."""

import re
from typing import Any

import yaml

from soperator_pulumi import NAMESPACE, REPOSITORY
from soperator_pulumi.lifecycle.resource import PACKAGE
from soperator_pulumi.plugin.cluster_types import CLUSTER, INPUTS, OUTPUTS
from soperator_pulumi.plugin.property_types import camel_case
from soperator_pulumi.plugin.spelling import from_other_language, names_in
from soperator_pulumi.spec.cluster import parse_cluster
from tools import paths

PAGE = (paths.ROOT / "docs" / "languages.md").read_text()
EXAMPLE = paths.ROOT / "examples" / "yaml"
PROGRAM = (EXAMPLE / "Pulumi.yaml").read_text()
COMPONENTS = paths.ROOT / "components"


def block(language: str) -> str:
    """Return the first block of a language."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def described(program: dict[str, Any]) -> dict[str, Any]:
    """Return the description of the cluster, with the defaults of the program's configuration."""
    text = yaml.safe_dump(program["resources"]["hpc"]["properties"])
    for name, value in program["config"].items():
        text = text.replace(f"${{{name}}}", str(value["default"]))
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def test_the_program_in_yaml_is_the_example() -> None:
    assert block("yaml") == PROGRAM


def test_the_program_in_yaml_describes_a_cluster() -> None:
    program = yaml.safe_load(PROGRAM)
    assert program["resources"]["hpc"]["type"] == CLUSTER.token.replace(":index:", ":")
    cluster = parse_cluster({"name": "hpc", **from_other_language(described(program), INPUTS)})
    assert cluster.node_sets[0].replicas == 4
    assert cluster.images.jail_tools == "registry.example.com/soperator/jail-tools:24.11"


def test_the_program_in_yaml_takes_outputs_that_there_are() -> None:
    wanted = set(re.findall(r"\$\{hpc\.(\w+)\}", PROGRAM))
    assert wanted
    assert wanted <= {property_.key for property_ in OUTPUTS.properties}


def test_the_program_in_typescript_has_inputs_and_outputs_that_there_are() -> None:
    program = block("typescript")
    names = set(re.findall(r"(\w+): ", program))
    assert len(names) > 15
    assert names <= {camel_case(name) for name in names_in(INPUTS)}
    assert set(re.findall(r"cluster\.(\w+)", program)) <= {property_.key for property_ in OUTPUTS.properties}
    assert f'from "@{NAMESPACE}/{PACKAGE}"' in program


def test_the_program_in_typescript_describes_a_cluster() -> None:
    arguments = block("typescript").partition('new SlurmCluster("hpc", ')[2].partition(");\n\n")[0]
    plain = re.sub(r"    kubeconfig: new .*\n", "", arguments).replace("`", '"')
    described = yaml.safe_load(plain.replace("${registry}", "registry.example.com/soperator"))
    cluster = parse_cluster({"name": "hpc", **from_other_language(described, INPUTS)})
    assert [user.name for user in cluster.users] == ["alice"]


def test_the_page_names_the_packages_of_the_other_languages() -> None:
    assert f"`@{NAMESPACE}/{PACKAGE}`" in PAGE
    assert f"`{REPOSITORY.removeprefix('https://')}/sdk/go/{PACKAGE.replace('-', '')}`" in PAGE


def test_the_page_lists_the_outputs() -> None:
    listed = PAGE.partition("- Outputs: ")[2].partition("\n-")[0]
    assert re.findall(r"`(\w+)`", listed) == [property_.key for property_ in OUTPUTS.properties]


def test_the_example_leads_to_the_plugin_which_installs_the_package() -> None:
    folder = yaml.safe_load(PROGRAM)["packages"][PACKAGE]
    assert (EXAMPLE / folder).resolve() == COMPONENTS
    assert yaml.safe_load((COMPONENTS / "PulumiPlugin.yaml").read_text())["name"] == PACKAGE
    requirements = (COMPONENTS / "requirements.txt").read_text().splitlines()
    (requirement,) = [line for line in requirements if line and not line.startswith("#")]
    assert (COMPONENTS / requirement / "pyproject.toml").exists()
