"""Any change of a real file is converted or refused in words: no traceback, no value without an account."""

import contextlib
import copy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soperator_pulumi.convert import Converted, convert
from soperator_pulumi.errors import ConversionError, SpecError
from soperator_pulumi.spec.cluster import parse_cluster
from tests.unit.convert.conversions import INPUTS, files, written

JUNK: tuple[Any, ...] = (
    None, "", "x", "No Name!", "5Gi", "PartitionName=a Nodes=ALL Default=YES", 0, -1, 7, 1.5, True, [], {}, ["x"],
    [{"name": "x"}], {"name": "x"}, {"a": {"b": ["c"]}}, 10**9,
)  # fmt: skip


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Return container and key of all values, of mappings and lists as well."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in pairs for place in [(value, key), *places_in(item)]]


def problems_of(cluster: Any) -> set[str]:
    try:
        parse_cluster(cluster)
    except SpecError as error:
        return {problem.path for problem in error.problems}
    return set()


def check(conversion: Converted) -> None:
    assert set(Counter(entry.leaf for entry in conversion.entries).values()) == {1}
    assert problems_of(conversion.cluster) == {addition.path for addition in conversion.additions}
    assert yaml.safe_load(conversion.stack_file())["config"]["soperator:cluster"] == conversion.cluster
    assert conversion.report()


@pytest.mark.parametrize(
    "name", ["soperator-flux-slurm-cluster", "soperator-resources", "slinky-tpu", "slinky-resources"]
)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.integers(0, 9999), st.integers(0, len(JUNK) - 1)), min_size=1, max_size=4))
def test_changed_files_are_converted_or_refused(tmp_path: Path, name: str, changes: list[tuple[int, int]]) -> None:
    documents = [item for file in files(name) for item in yaml.safe_load_all(file.read_text()) if item]
    for place, junk in changes:
        places = places_in(documents)
        container, key = places[place % len(places)]
        container[key] = copy.deepcopy(JUNK[junk])
    file = written(tmp_path, yaml.safe_dump_all(documents))

    with contextlib.suppress(ConversionError):
        check(convert([file]))


def test_there_is_an_input_for_each_kind() -> None:
    assert {name.partition("-")[0] for name in INPUTS} == {"soperator", "slinky"}
