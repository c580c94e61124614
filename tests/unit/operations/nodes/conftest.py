"""Fixtures of tests of draining."""

from collections.abc import Iterator

import pytest

from soperator_pulumi.operations.progress import CANCELLED
from tests.unit.operations.nodes.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def cancelled() -> Iterator[None]:
    """Someone has cancelled the run of this process."""
    CANCELLED.set()
    yield
    CANCELLED.clear()
