"""What tests of draining start from."""

import pytest

from tests.unit.operations.nodes.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
