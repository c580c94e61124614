"""Only what talks may talk."""

import shlex
from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.cluster.isolated import Outside, outside
from tests.cluster.slurm import Slurm
from tests.cluster.strangers import PROBE, Source, a_stranger, reached
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

DAEMONS = [("controller-0", 6817), ("cpu-0", 6818), ("login-0", 2222), ("login-0", 60001), ("cpu-0", 60001)]
"""Those that listen, and ports that are open for them."""


@pytest.fixture(scope="module")
def stranger(slurm: Slurm) -> Iterator[Source]:
    """A pod in a namespace that has nothing to do with the cluster."""
    with a_stranger(slurm) as pod:
        yield pod


def test_the_probe_sees_an_open_port(slurm: Slurm) -> None:
    """From where one may: otherwise a broken probe would make the other test pass."""
    assert "controller-0:6817" in reached(slurm, (slurm.namespace, "login-0", "sshd"), DAEMONS)


def test_a_pod_of_another_namespace_reaches_no_daemon(slurm: Slurm, stranger: Source) -> None:
    assert reached(slurm, stranger, DAEMONS) == set()


# What leaves


GREETED = (8080, 2379, 6443, 10250)
"""Ports of the neighbour, who is no machine of the cluster: all but the first are those of machines."""


@pytest.fixture(scope="module")
def neighbour() -> Iterator[Outside]:
    """A machine outside of the cluster, with a link-local address as well."""
    with outside(number=1) as made, made.greets(*GREETED):
        yield made


@pytest.fixture(scope="module")
def places(neighbour: Outside) -> dict[str, tuple[str, int]]:
    """Where someone answers all who reach it."""
    return {
        **{f"outside:{port}": (neighbour.address, port) for port in GREETED},
        "link-local:8080": (neighbour.link_local, 8080),
    }


def opened(run: Callable[[str], str], places: Mapping[str, tuple[str, int]]) -> set[str]:
    """Return which of the places are reached, all tried at once."""
    probes = (PROBE.format(address=address, port=port, name=name) for name, (address, port) in places.items())
    return set(run(f"{' '.join(probes)} wait").split())


def test_jobs_sessions_and_admins_reach_the_outside_but_no_metadata_service_and_no_ports_of_machines(
    slurm: Slurm, stranger: Source, places: dict[str, tuple[str, int]], admin: Callable[[str], str]
) -> None:
    def unbound(script: str) -> str:
        return slurm.kubernetes.exec(*stranger, "bash", "-c", script)

    def job(script: str) -> str:
        return slurm.ssh(f"srun --overlap --overcommit --mem=1 bash -c {shlex.quote(script)}").stdout

    def session(script: str) -> str:
        return slurm.ssh(f"bash -c {shlex.quote(script)}").stdout

    def as_root(script: str) -> str:
        return admin(f"bash -c {shlex.quote(script)}")

    assert opened(unbound, places) == set(places)  # or silence would prove nothing
    assert opened(job, places) == opened(session, places) == opened(as_root, places) == {"outside:8080"}


def test_egress_opens_what_it_names_and_closes_the_rest_and_slurm_continues(
    slurm: Slurm, neighbour: Outside, places: dict[str, tuple[str, int]]
) -> None:
    def worker(script: str) -> str:
        return slurm.exec("cpu-0", "slurmd", "bash", "-c", script)

    slurm.cluster["network"] = {"egress": [f"{neighbour.link_local}/32"]}
    try:
        slurm.up()
        wait_until(lambda: opened(worker, places) == {"link-local:8080"}, "the policy is in force")
        assert sorted(slurm.ssh("srun -N2 --overcommit --mem=1 hostname").stdout.split()) == ["cpu-0", "cpu-1"]
    finally:
        del slurm.cluster["network"]
        slurm.up()
    wait_until(lambda: opened(worker, places) == {"outside:8080"}, "it is as before")
