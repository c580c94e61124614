"""Clusters of the cluster tier: one for everything that leaves it as it was, new ones for the rest."""

import itertools
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.slurm import Slurm, a_cluster, a_node_set
from tests.conftest import Kubernetes


@pytest.fixture(scope="session")
def built_images(kubernetes: Kubernetes) -> None:
    """Build the images and bring them to the cluster, once."""
    kubernetes.load_images()


@pytest.fixture(scope="session")
def slurm(kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A cluster of two node sets, each with a partition of its own, for tests that leave it as it was."""
    cluster = a_cluster(
        name="shared",
        node_sets=[
            a_node_set("cpu", replicas=2, partitions=["main"]),
            a_node_set("big", partitions=["big"], memory_gib=2),
        ],
        partitions=[{"name": "main", "default": True}, {"name": "big", "options": {"MaxTime": "01:00:00"}}],
        users=[{"name": "alice", "uid": 2001}, {"name": "bob", "uid": 2002}],
    )
    shared = Slurm(kubernetes, tmp_path_factory.mktemp("shared"), cluster)
    shared.up()
    yield shared
    shared.destroy()


_numbers = itertools.count()


@pytest.fixture
def new_slurm(kubernetes: Kubernetes, built_images: None, tmp_path: Path) -> Iterator[Callable[..., Slurm]]:
    """Make clusters that are not deployed yet, each in a namespace of its own, and destroy them afterwards."""
    made: list[Slurm] = []

    def make(**changes: object) -> Slurm:
        name = f"test-{next(_numbers)}-{secrets.token_hex(3)}"
        made.append(Slurm(kubernetes, tmp_path / name, a_cluster(**{"name": name, **changes})))
        return made[-1]

    yield make
    for each in made:
        each.destroy()
