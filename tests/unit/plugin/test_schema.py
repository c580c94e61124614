"""The schema of the package: a difference to `schema.json` is a change of the interface for other languages.

`python -m tests.unit.plugin.test_schema` writes it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import soperator_pulumi
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.plugin.live_kinds import KINDS
from soperator_pulumi.plugin.package_schema import schema
from soperator_pulumi.plugin.platform_types import PLATFORM

FILE = Path(__file__).with_name("schema.json")
CLUSTER = "soperator-pulumi:index:SlurmCluster"


def written() -> str:
    return json.dumps({**schema(), "version": "recorded with each release"}, indent=1, sort_keys=True) + "\n"


def test_the_schema_is_the_recorded_one() -> None:
    assert FILE.read_text() == written(), "review the change, then run python -m tests.unit.plugin.test_schema"


def test_the_schema_has_the_version_of_the_package() -> None:
    assert schema()["version"] == soperator_pulumi.__version__


def properties(found: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for section in ("inputProperties", "properties"):
        for name, each in found.get(section, {}).items():
            yield f"{path}.{name}", each


def test_every_key_of_a_component_is_described() -> None:
    known = schema()
    objects = {name: known["resources"][name] for name in (CLUSTER, PLATFORM.token)} | known["types"]
    every = {path: each for name, found in objects.items() for path, each in properties(found, name)}
    assert len(every) > 120
    assert not [path for path, each in every.items() if len(each.get("description", "")) < 5]


def test_every_reference_leads_to_a_type() -> None:
    text = json.dumps(schema())
    types = {part.partition('"')[0] for part in text.split('"#/types/')[1:]}
    assert types == schema()["types"].keys()


def test_free_keys_are_maps() -> None:
    known = schema()
    labels = known["resources"][CLUSTER]["inputProperties"]["labels"]
    assert labels["additionalProperties"]["type"] == "string"
    extra = known["types"]["soperator-pulumi:index:Slurm"]["properties"]["extra"]
    assert extra["additionalProperties"]["oneOf"] == [{"type": "string"}, {"type": "number"}]


def test_a_word_in_place_of_a_description_is_a_value_of_its_own() -> None:
    known = schema()
    accounting = known["resources"][CLUSTER]["inputProperties"]["accounting"]
    assert accounting["oneOf"] == [{"$ref": "#/types/soperator-pulumi:index:Accounting"}, {"type": "string"}]
    assert "unknownUsers" in known["types"]["soperator-pulumi:index:Accounting"]["properties"]


def test_a_kubeconfig_is_secret_wherever_it_is_given() -> None:
    known = schema()
    places = [*known["resources"].values(), known["provider"]]
    assert all(each["inputProperties"]["kubeconfig"]["secret"] for each in places)
    assert known["config"]["variables"]["kubeconfig"]["secret"]


def test_all_that_acts_on_a_cluster_is_served() -> None:
    assert {kind.resource for kind in KINDS} == {*LiveResource.__subclasses__()}
    assert {kind.token for kind in KINDS} == schema()["resources"].keys() - {CLUSTER, PLATFORM.token}
    for kind in KINDS:
        assert kind.provider.__name__ == f"{kind.resource.__name__}Provider"


if __name__ == "__main__":
    FILE.write_text(written())
