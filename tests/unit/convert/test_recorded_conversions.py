"""Real files of other projects become the stack files and reports that were read and found right.

UPDATE_GOLDEN=1 writes them.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from soperator_pulumi import SlurmCluster
from soperator_pulumi.convert import Converted, Fate, convert
from soperator_pulumi.convert.conversion import TO_ADD
from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.cluster import parse_cluster
from soperator_pulumi.testing import deploy
from tests.unit.convert.conversions import DATA, INPUTS, completed, files

MARKS = ("marked-as-secret", "bWFya2VkLWFzLXNlY3Jld")
"""Beginnings of what stands in the Secrets of the recorded files, plain and in base64."""


@pytest.fixture(scope="module", params=INPUTS)
def case(request: pytest.FixtureRequest) -> tuple[str, Converted]:
    return request.param, convert(files(request.param))


@pytest.mark.parametrize("suffix", ["stack.yaml", "report.txt"])
def test_the_output_is_the_golden_one(case: tuple[str, Converted], suffix: str) -> None:
    name, conversion = case
    text = conversion.stack_file() if suffix == "stack.yaml" else conversion.report()
    golden = DATA / "golden" / f"{name}.{suffix}"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


def paths_of(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of all values, with an empty mapping or list as one; read apart from the converter."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            shown = f".{key}" if str(key).replace("-", "").replace("_", "").isalnum() else f'["{key}"]'
            yield from paths_of(item, f"{path}{shown}")
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from paths_of(item, f"{path}[{index}]")
    else:
        yield path.lstrip(".")


def all_paths(name: str) -> list[str]:
    found = []
    for file in files(name):
        for document in filter(None, yaml.safe_load_all(file.read_text())):
            before = f"{file.name}: " if len(files(name)) > 1 else ""
            if "apiVersion" in document:
                before += f"{document['kind']}/{document['metadata']['name']}: "
            found += [f"{before}{path}" for path in paths_of(document)]
    return found


def test_every_value_of_the_input_is_in_exactly_one_class(case: tuple[str, Converted]) -> None:
    name, conversion = case
    given = [entry for entry in conversion.entries if not entry.leaf.is_default]
    whole = Counter(entry.leaf.path for entry in given if not entry.leaf.path.endswith(")"))
    parts = {entry.leaf.path.rpartition(" (")[0] for entry in given if entry.leaf.path.endswith(")")}

    assert not whole.keys() & parts
    assert sorted([*whole.elements(), *parts]) == sorted(all_paths(name))
    assert max(Counter(entry.leaf.path for entry in given).values()) == 1


def test_whatever_is_not_taken_over_has_a_reason(case: tuple[str, Converted]) -> None:
    for entry in case[1].entries:
        if entry.fate is Fate.TAKEN:
            assert entry.targets
            assert not entry.text
        elif entry.fate is not Fate.UNKNOWN:
            assert entry.text, entry.leaf.path


def test_our_spec_misses_the_additions_and_nothing_else(case: tuple[str, Converted]) -> None:
    conversion = case[1]
    with pytest.raises(SpecError) as error:
        parse_cluster(conversion.cluster)

    assert sorted(problem.path for problem in error.value.problems) == sorted(
        addition.path for addition in conversion.additions
    )


def test_the_stack_file_holds_what_was_converted_with_a_comment_before_each_addition(
    case: tuple[str, Converted],
) -> None:
    conversion = case[1]
    text = conversion.stack_file()

    assert yaml.safe_load(text) == {"config": {"soperator:defaults": {}, "soperator:cluster": conversion.cluster}}
    lines = text.splitlines()
    for place in [place for place, line in enumerate(lines) if line.endswith(TO_ADD)]:
        comment = place - 1
        while lines[comment - 1].lstrip().startswith("# ") and "# ADD " not in lines[comment]:
            comment -= 1
        assert "# ADD " in lines[comment]
    assert max(map(len, lines)) <= 120


def test_the_completed_stack_deploys(case: tuple[str, Converted]) -> None:
    cluster = completed(case[1])
    spec = parse_cluster(cluster)
    deployment = deploy(lambda: SlurmCluster(cluster["name"], cluster))

    sets = {node_set.name: node_set.replicas for node_set in spec.node_sets}
    found = {
        resource.inputs["metadata"]["name"]: resource.inputs["spec"]["replicas"]
        for resource in deployment.resources("StatefulSet")
    }
    assert sets.items() <= found.items()
    assert found["login"] == spec.login.replicas


def test_nothing_of_a_secret_is_written(case: tuple[str, Converted]) -> None:
    name, conversion = case
    inputs = "".join(file.read_text() for file in files(name))
    outputs = conversion.stack_file() + conversion.report() + repr(conversion.additions)

    assert not [mark for mark in MARKS if mark in outputs]
    if name == "slinky-resources":
        assert MARKS[1] in inputs


def test_the_recorded_files_name_their_licence() -> None:
    notes = (DATA / "README.md").read_text()

    assert notes.count("SPDX-License-Identifier: Apache-2.0") == 2
    assert [
        file.name for file in Path(DATA).glob("*/*.yaml") if "golden" not in file.parts and file.name not in notes
    ] == []
