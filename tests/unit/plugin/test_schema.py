"""The schema of the package: a difference to `schema.json` is a change of the interface for other languages.

`python -m tests.unit.plugin.test_schema` writes it.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import soperator_pulumi
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.plugin.live_kinds import KINDS
from soperator_pulumi.plugin.package_schema import COMPONENTS, _named_types_in, schema
from soperator_pulumi.plugin.platform_types import PLATFORM

FILE = Path(__file__).with_name("schema.json")
CLUSTER = "soperator-pulumi:index:SlurmCluster"


def written() -> str:
    return json.dumps({**schema(), "version": "recorded with each release"}, indent=1, sort_keys=True) + "\n"


def test_the_schema_is_the_recorded_one() -> None:
    assert FILE.read_text() == written(), "review the change, then run python -m tests.unit.plugin.test_schema"


def test_the_schema_has_the_version_of_the_package() -> None:
    assert schema()["version"] == soperator_pulumi.__version__


def test_the_packages_of_other_languages_have_the_names_of_the_release() -> None:
    """Without them, Pulumi gives a package the names of its own."""
    known = schema()
    assert known["namespace"] == known["language"]["java"]["basePackage"] == soperator_pulumi.NAMESPACE
    assert known["repository"] == soperator_pulumi.REPOSITORY
    assert "pulumi" not in known["namespace"].split("-")


def properties(found: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for section in ("inputProperties", "properties"):
        for name, value in found.get(section, {}).items():
            yield f"{path}.{name}", value


def referred(described: dict[str, Any]) -> dict[str, Any]:
    """Return the type that a reference names, directly or as the last form of a union."""
    if "oneOf" in described:
        return referred(described["oneOf"][-1])
    found: dict[str, Any] = schema()["types"][described["$ref"].removeprefix("#/types/")]
    return found


def test_every_key_of_a_component_is_described() -> None:
    known = schema()
    objects = {name: known["resources"][name] for name in (CLUSTER, PLATFORM.token)} | known["types"]
    every = {path: entry for name, found in objects.items() for path, entry in properties(found, name)}
    assert len(every) > 120
    assert not [path for path, entry in every.items() if len(entry.get("description", "")) < 5]


def test_every_reference_leads_to_a_type() -> None:
    text = json.dumps(schema())
    types = {part.partition('"')[0] for part in text.split('"#/types/')[1:]}
    assert types == schema()["types"].keys()


def test_free_keys_are_maps() -> None:
    known = schema()
    labels = known["resources"][CLUSTER]["inputProperties"]["labels"]
    assert labels["additionalProperties"]["type"] == "string"
    extra = known["types"]["soperator-pulumi:index:Slurm"]["properties"]["extra"]
    assert extra["additionalProperties"]["oneOf"] == [
        {"type": "string", "plain": True},
        {"type": "number", "plain": True},
    ]


def test_a_word_in_place_of_a_description_is_a_value_of_its_own() -> None:
    known = schema()
    accounting = known["resources"][CLUSTER]["inputProperties"]["accounting"]
    described, word = (referred(item) for item in accounting["oneOf"])
    assert "unknownUsers" in described["properties"]
    assert word == {"type": "string", "enum": [{"name": "None", "value": "none"}]}
    assert "$ref" not in accounting["oneOf"][1], "beside an enumeration, Go takes no description"


def test_a_value_that_is_one_of_several_words_is_an_enumeration_in_every_language() -> None:
    """The text below a value lists the words: "One of `a`, `b`."."""
    known = schema()
    objects = {name: known["resources"][name] for name in (CLUSTER, PLATFORM.token)} | known["types"]
    listed = 0
    for path, entry in (found for name, part in objects.items() for found in properties(part, name)):
        texts = re.search(r"(?:One of|Only) ((?:`[^`]+`(?:, )?)+)\.", entry["description"])
        type_ = entry.get("items", entry)
        if texts is None or type_.get("type") == "object":  # the keys of a map, which no language lists
            continue
        listed += 1
        assert [word["value"] for word in referred(type_)["enum"]] == re.findall("`([^`]+)`", texts[1]), path
    assert listed > 20


def test_a_word_has_a_name_that_every_language_takes() -> None:
    words = [word for type_ in schema()["types"].values() for word in type_.get("enum", [])]
    assert {"value": "24.11", "name": "V24_11"} in words
    assert {word["name"] for word in words if not re.fullmatch(r"[A-Z]\w*", word["name"])} == set()


def test_a_name_stands_for_one_type() -> None:
    known = [type_ for component in COMPONENTS for type_ in _named_types_in(component.inputs)]
    assert len({item.name.removesuffix("Args") for item in known}) == len({*known})


def test_a_kubeconfig_is_secret_wherever_it_is_given() -> None:
    known = schema()
    places = [*known["resources"].values(), known["provider"]]
    assert all(place["inputProperties"]["kubeconfig"]["secret"] for place in places)
    assert known["config"]["variables"]["kubeconfig"]["secret"]


def test_all_that_acts_on_a_cluster_is_served() -> None:
    assert {kind.resource for kind in KINDS} == {*LiveResource.__subclasses__()}
    assert {kind.token for kind in KINDS} == schema()["resources"].keys() - {CLUSTER, PLATFORM.token}
    for kind in KINDS:
        assert kind.provider.__name__ == f"{kind.resource.__name__}Provider"


if __name__ == "__main__":
    FILE.write_text(written())
