"""A worker's container for the tests of its scripts."""

from pathlib import Path

import pytest

from tests.unit.cluster.worker_container import Worker


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    return Worker(tmp_path)
