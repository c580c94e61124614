"""Fixtures of the tests of policies."""

from collections.abc import Iterator

import pytest

from tests.rendered.policy.packs import OURS, Pack, running


@pytest.fixture(scope="session")
def prod() -> Iterator[Pack]:
    """The pack of this repository for a stack of prod."""
    with running(OURS, "prod") as pack:
        yield pack
