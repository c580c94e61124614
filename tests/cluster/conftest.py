"""Clusters of the cluster tier: one for everything that leaves it as it was, new ones for the rest."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import together
from tests.cluster.slurm import JAIL, Slurm, a_cluster, a_jail, a_node_set, bring_images, unique
from tests.cluster.workers import put_back
from tests.conftest import Kubernetes

FEW_PROCESSES = 100
"""Share of a user on the nodes of the node set `big`."""


_alive: dict[str, Slurm] = {}
"""Clusters that tests share, by the fixture that made them."""


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Destroy a shared cluster after the last test that uses it: one that stands idle takes a sixth of a processor."""
    if nextitem is None or together.group_of(nextitem) != together.group_of(item):
        destroy_shared(together.group_of(item))


def destroy_shared(fixture: str) -> None:
    """Destroy the cluster that a fixture made, if it is there."""
    if cluster := _alive.pop(fixture, None):
        cluster.destroy()


@pytest.fixture(scope="session")
def built_images(kubernetes: Kubernetes) -> None:
    """Build the images and bring them to the cluster, once."""
    bring_images(kubernetes)


@pytest.fixture(scope="session")
def slurm(kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A cluster of two node sets, each with a partition of its own, for tests that leave it as it was."""
    data = tmp_path_factory.mktemp("data")
    data.chmod(0o1777)
    local = {"host_path": str(tmp_path_factory.mktemp("local")), "node_sets": ["big"], "free_percent": 1}
    cluster = a_cluster(
        name=unique("shared"),
        node_sets=[
            a_node_set("cpu", replicas=2, partitions=["main"]),
            a_node_set("big", partitions=["big"], memory_gib=2, max_processes=FEW_PROCESSES),
        ],
        partitions=[{"name": "main", "default": True}, {"name": "big", "options": {"MaxTime": "01:00:00"}}],
        users=[
            {"name": "alice", "uid": 2001},
            {"name": "bob", "uid": 2002},
            # who does what disturbs others: processes are counted by user on the whole machine
            {"name": "greedy", "uid": 2666},
        ],
        containers={"writes_mib": 64, "images_gib": 0.02, "local": local},
        jail=a_jail(
            JAIL,
            admin_shell=True,
            submounts=[
                {"path": "/data", "host_path": str(data)},
                {"path": "/mnt/reference", "host_path": str(data), "read_only": True},
                {"path": "/mnt/local", "scratch_gib": 1, "roles": ["worker"]},
                {"path": "/dev/shm", "memory_gib": 0.25, "roles": ["worker"]},
            ],
        ),
    )
    shared = Slurm(kubernetes, tmp_path_factory.mktemp("shared"), cluster)
    _alive["slurm"] = shared
    shared.up()
    yield shared
    destroy_shared("slurm")


@pytest.fixture(scope="session")
def admin(slurm: Slurm) -> Callable[[str], str]:
    """Run a command as root in the admin shell's pod, and return what it prints; a failure fails the test."""
    slurm.wait_for_the_admin_shell()
    return lambda command: slurm.exec("admin-0", "admin", "/bin/sh", "-c", command)


@pytest.fixture(scope="session")
def three_workers(
    kubernetes: Kubernetes, built_images: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Slurm]:
    """The cluster behind `workers`."""
    cluster = a_cluster(name=unique("workers"), node_sets=[a_node_set("cpu", replicas=3)])
    slurm = Slurm(kubernetes, tmp_path_factory.mktemp("workers"), cluster)
    _alive["three_workers"] = slurm
    slurm.up()
    yield slurm
    destroy_shared("three_workers")


@pytest.fixture
def workers(three_workers: Slurm) -> Iterator[Slurm]:
    """A cluster of three idle workers, `cpu-[0-2]`, for tests that scale it. What a test changes is put back."""
    described = copy.deepcopy(three_workers.cluster)
    yield three_workers
    is_back = False
    try:
        put_back(three_workers, described)
        is_back = True
    finally:
        if not is_back:  # one test that breaks it is not to break those after it
            three_workers.destroy()
            three_workers.cluster = {**described, "name": unique("workers")}
            three_workers.up()


@pytest.fixture
def new_slurm(kubernetes: Kubernetes, built_images: None, tmp_path: Path) -> Iterator[Callable[..., Slurm]]:
    """Make clusters that are not deployed yet, each in a namespace of its own, and destroy them afterwards."""
    made: list[Slurm] = []

    def make(**changes: object) -> Slurm:
        name = unique("test")
        made.append(Slurm(kubernetes, tmp_path / name, a_cluster(**{"name": name, **changes})))
        return made[-1]

    yield make
    for item in made:
        item.destroy()
