"""The schema of a stack's file, and the models that read one."""

import copy
import json
import re
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from hypothesis import given, settings
from jsonschema import Draft7Validator
from pydantic import BaseModel

from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.cluster import ClusterSpec, parse_cluster
from soperator_pulumi.spec.validation.descriptions import field_descriptions
from tests.strategies import Data, a_cluster, cluster_data
from tests.unit.spec.mutations import MUTATIONS, Mutation
from tools import paths
from tools.docs import configuration_page, stack_schema

STACKS = sorted((paths.ROOT / "stacks").glob("**/*.yaml"))
REFERENCE = {"from_stack": "organization/storage/prod", "output": "class"}
WRONG_FORM = re.compile(r"unknown key|needs (text|a list|a mapping|true or false)|needs a (whole )?number")


@cache
def validator() -> Draft7Validator:
    return Draft7Validator(json.loads(stack_schema.FILE.read_text()))


def takes(**values: Any) -> bool:
    """Return True if the schema takes a stack's file with these values under `soperator:`."""
    return bool(validator().is_valid({"config": {f"soperator:{key}": value for key, value in values.items()}}))


def models(model: type[BaseModel] = ClusterSpec) -> list[type[BaseModel]]:
    return list(dict.fromkeys(configuration_page._models(model)))


def test_the_schema_is_what_the_specification_describes() -> None:
    assert stack_schema.FILE.read_text() == stack_schema.text(), "run `make docs`"


def test_the_schema_is_one_of_draft_7_whose_patterns_every_language_reads() -> None:
    schema = json.loads(stack_schema.FILE.read_text())
    Draft7Validator.check_schema(schema)
    patterns = [
        *re.findall(r'"pattern": "(.*)"', stack_schema.FILE.read_text()),
        *(name for definition in schema["definitions"].values() for name in definition.get("patternProperties", {})),
    ]
    assert len(patterns) > 20
    assert not [pattern for pattern in patterns if re.search(r"\(\?(?![:=!])", pattern)]


@settings(max_examples=40)
@given(cluster_data())
def test_a_description_that_the_models_take_is_one_for_the_schema(data: Data) -> None:
    parse_cluster(data)
    assert takes(cluster=data)
    assert takes(clusters={"hpc": data})


def spoilt(mutation: Mutation) -> tuple[Data, str]:
    """A description with one thing made wrong, and the problem that the models report."""
    node_sets = [{"name": name, "cpus": 4, "memory_gib": 8} for name in ("za", "zb", "zc")]
    data = copy.deepcopy(a_cluster(node_sets=node_sets))
    path = mutation.spoil(data)
    with pytest.raises(SpecError) as caught:
        parse_cluster(data)
    return data, next(problem.text for problem in caught.value.problems if problem.path == path)


def test_what_is_misspelt_or_of_a_wrong_type_is_refused_by_both() -> None:
    """Null is the exception: in a stack's file it removes a key."""
    tried = [(mutation, *spoilt(mutation)) for mutation in MUTATIONS if not mutation.name.endswith("= None")]
    wrong = [(mutation, data) for mutation, data, problem in tried if WRONG_FORM.search(problem)]

    assert len(wrong) > 80
    assert not [mutation for mutation, data in wrong if takes(cluster=data) and "nan" not in mutation.name]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"clutser": a_cluster()}, False),
        ({"cluster": a_cluster(), "kubconfig": "x"}, False),
        ({"cluster": a_cluster(), "clusters": {}}, False),
        ({"policy": {"environment": "dev"}}, False),
        ({"cluster": "hpc"}, False),
        ({"clusters": {}}, False),
        ({"cluster": {}, "policy": {"environment": "dev", "exceptions": {"kept-data": {"reason": "a trial"}}}}, True),
        ({"cluster": {}, "policy": {"environment": "test"}}, False),
        ({"cluster": {}, "policy": {"exceptions": {"kept-data": {}}}}, False),
        ({"cluster": {}, "policy": {"settings": {"scale-down": {"at_most": 4}}}}, True),
        ({"cluster": {}, "policy": {"settings": {"scale-down": {"at_mots": 4}}}}, False),
        ({"cluster": {}, "policy": {"settings": {"one-of-yours": {"limit": 4}}}}, True),
        ({"cluster": {}, "local": {"user": "demo"}}, True),
        ({"cluster": {}, "local": {"usr": "demo"}}, False),
        ({"cluster": {}, "kubeconfig": "~/.kube/config", "context": "prod"}, True),
        ({"cluster": {}, "kubeconfig": {"secure": "v1:abc"}}, True),
        ({"cluster": {}, "kubeconfig": REFERENCE}, True),
        ({"cluster": {}, "kubeconfig": {"from_stack": "storage", "output": "x"}}, False),
        ({"cluster": {"images": None, "login": {"service": None}, "slurm": {"extra": {"KillWait": None}}}}, True),
        ({"cluster": {"labels": {"team": None}, "jail": {"source": None, "storage": {"size_gib": None}}}}, True),
        ({"cluster": {"node_sets": [{"name": "cpu", "cpus": None, "memory_gib": 2}]}}, False),
        ({"cluster": {"node_sets": [{"name": "cpu", "cpus": 2}]}}, False),
        ({"cluster": {"node_sets": [{"name": "cpu", "cpus": "all", "memory_gib": "all but 8"}]}}, True),
        ({"cluster": {"node_sets": [{"name": "cpu", "cpus": "most", "memory_gib": 2}]}}, False),
        ({"cluster": {"node_sets": [{"name": "cpu", "cpus": "all but", "memory_gib": 2}]}}, False),
        ({"cluster": {"jail": {"storage": {"storage_class": REFERENCE}}}}, True),
        ({"cluster": {"jail": {"submounts": [{"path": "/data", "existing_claim": REFERENCE}]}}}, True),
        ({"cluster": {"images": {"worker": REFERENCE, "pull_secrets": [REFERENCE]}}}, True),
        ({"cluster": {"namespace": REFERENCE}}, False),
        ({"cluster": {"images": {"jail": REFERENCE}}}, False),
        ({"cluster": {"jail": {"storage": {"storage_class": {**REFERENCE, "field": "x"}}}}}, False),
        ({"cluster": {"labels": {"no label": "x"}}}, False),
        ({"cluster": {"accounting": "none"}}, True),
        ({"cluster": {"accounting": "off"}}, False),
        ({"cluster": {"accounting": {"cluster_id": 1}}}, True),
    ],
)
def test_a_stack_s_file_is_valid_or_not(values: dict[str, Any], *, expected: bool) -> None:
    assert takes(**values) is expected


def test_keys_of_other_programs_are_theirs() -> None:
    config = {"soperator:cluster": {}, "aws:region": "eu-central-1", "kubernetes:context": "x"}
    assert validator().is_valid({"config": config, "encryptionsalt": "v1:x", "secretsprovider": "awskms://x"})


@pytest.mark.parametrize("file", STACKS, ids=lambda file: file.name)
def test_every_stack_here_is_valid_and_leads_editors_to_the_schema(file: Path) -> None:
    first = file.read_text().partition("\n")[0].removeprefix("# yaml-language-server: $schema=")
    assert (file.parent / first).resolve() == stack_schema.FILE
    assert [error.message for error in validator().iter_errors(yaml.safe_load(file.read_text()))] == []


def properties() -> Iterator[tuple[type[BaseModel], str, Data]]:
    """Every field of the models, with its schema in each form of the model."""
    definitions = json.loads(stack_schema.FILE.read_text())["definitions"]
    for model in models():
        forms = [definitions[name] for name in (model.__name__, f"{model.__name__}OverDefaults") if name in definitions]
        assert forms, model
        for form in forms:
            assert form["properties"].keys() == model.model_fields.keys()
            for name, described in form["properties"].items():
                yield model, name, described


def test_every_field_has_its_meaning_and_its_default() -> None:
    for model, name, described in properties():
        assert described["description"] == " ".join(field_descriptions(model)[name].split())
        default = model.model_fields[name].get_default()
        if isinstance(default, (bool, int, float, str)):
            assert described["default"] == default, (model, name)


def test_exactly_the_fields_that_may_be_an_output_may_be_a_reference() -> None:
    for model, name, described in properties():
        may_be = any(part is pulumi.Output for part in _origins(model.model_fields[name].annotation))
        assert ('"#/definitions/Reference"' in json.dumps(described)) == may_be, (model, name)


def _origins(annotation: object) -> Iterator[object]:
    yield typing.get_origin(annotation)
    for argument in typing.get_args(annotation):
        yield from _origins(argument)


def test_an_editor_s_words_for_a_choice_are_those_of_the_models() -> None:
    definitions = json.loads(stack_schema.FILE.read_text())["definitions"]
    assert definitions["OnTimeout"]["enum"] == ["abort", "requeue", "cancel", "wait"]
    assert definitions["DrainSpec"]["properties"]["timeout"]["default"] == "2h"
    assert definitions["NetworkSpecOverDefaults"]["properties"]["closed_ports"]["default"] == [
        "2379-2381",
        6443,
        "10248-10259",
    ]
