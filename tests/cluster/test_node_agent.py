"""The Go code: its own tests, and the tools that judge it."""

import pytest

from tests.cluster import go_code
from tools.kube.binaries import GO, NODE
from tools.kube.process import output

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("package", go_code.TESTED)
def test_the_node_agent_passes_its_own_tests(package: str) -> None:
    output([go_code.compiled_tests() / f"{package}.test"], cwd=GO / NODE.name / package, timeout_seconds=500)


def test_vet_finds_nothing() -> None:
    go_code.vet()


def test_sources_are_formatted() -> None:
    assert go_code.unformatted() == []
