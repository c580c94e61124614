"""A thousand nodes of a real slurmctld: freed and forgotten in a handful of calls.

The nodes have no slurmd: slurmctld drains and deletes them as it does others.
"""

from collections.abc import Iterable, Iterator, Sequence

import pytest

from soperator_pulumi.errors import NodesNotDeletedError, UnknownNodeError
from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.kube_api import Cluster
from soperator_pulumi.operations.nodes.context import DrainContext
from soperator_pulumi.operations.nodes.draining import Draining
from soperator_pulumi.operations.nodes.node_cleanup import NodeCleanup
from soperator_pulumi.operations.progress import MachineClock
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.hostlist import compress
from soperator_pulumi.slurm.scontrol import ScontrolClient
from soperator_pulumi.slurm.transport import Answer, Transport
from soperator_pulumi.spec.drain import DrainSpec
from tests.cluster.slurm import Slurm

pytestmark = pytest.mark.cluster

NODES = 1000
NAMES = tuple(f"many-{ordinal}" for ordinal in range(NODES))
OWNER = "many"


class Counted:
    """Passes commands on, and writes down which."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.commands: list[str] = []

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        self.commands.append(" ".join(command[:3]))
        return self._transport.run(command, stdin=stdin, timeout_seconds=timeout_seconds)

    def calls(self, program: str) -> int:
        return sum(command.startswith(program) for command in self.commands)


@pytest.fixture(scope="module")
def cluster(slurm: Slurm) -> Cluster:
    return Cluster(Access(str(slurm.kubernetes.kubeconfig), slurm.kubernetes.target.context))


@pytest.fixture
def counted(slurm: Slurm, cluster: Cluster) -> Counted:
    return Counted(cluster.transport(slurm.namespace, "controller-0", "slurmctld"))


@pytest.fixture
def many(slurm: Slurm) -> Iterator[Slurm]:
    """The cluster with a thousand nodes more."""
    slurm.scontrol("create", f"nodename={compress(NAMES)}", "State=CLOUD", "Feature=many", "CPUs=1")
    yield slurm
    if left := many_of(node_names(slurm)):
        slurm.scontrol("delete", f"nodename={compress(left)}")


def node_names(slurm: Slurm) -> set[str]:
    words = slurm.scontrol("show", "nodes", "--oneliner").split()
    return {word.removeprefix("NodeName=") for word in words if word.startswith("NodeName=")}


def many_of(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith("many-")]


def free_and_forget(slurm: Slurm, cluster: Cluster, counted: Counted) -> dict[str, str]:
    """Do what a scale-down to no node does, with few calls; return why records stay."""
    client = ScontrolClient(counted)
    leaving = DrainRequest("many", NAMES, (), DrainSpec(), before=NODES, after=0)
    draining = Draining(DrainContext(client, OWNER, "many", print, MachineClock()))
    assert draining.free([leaving], Operation.SCALE_DOWN).free == {*NAMES}
    assert counted.calls("scontrol") <= 4, counted.commands
    kept = NodeCleanup(cluster, client, slurm.namespace, OWNER).remove(NAMES).kept
    leaves_them_to_their_pods = bool(kept)
    assert counted.calls("scontrol") <= 7 + leaves_them_to_their_pods, counted.commands
    return {**kept}


def test_a_thousand_idle_nodes_are_drained_and_deleted_in_a_handful_of_calls(
    many: Slurm, cluster: Cluster, counted: Counted
) -> None:
    others = node_names(many) - {*NAMES}
    assert free_and_forget(many, cluster, counted) == {}
    assert node_names(many) == others


def test_nodes_that_someone_counts_on_stay_and_are_named(many: Slurm, cluster: Cluster, counted: Counted) -> None:
    many.scontrol("update", "nodename=many-7", "state=drain", "reason=bad DIMM")
    many.scontrol("create", "reservation=maint", "nodes=many-8", "starttime=now+1day", "duration=60", "users=alice")
    try:
        kept = free_and_forget(many, cluster, counted)
    finally:
        many.scontrol("delete", "reservation=maint")
    assert "bad DIMM" in kept["many-7"]
    assert "maint" in kept["many-8"]
    assert {*many_of(node_names(many))} == kept.keys() == {"many-7", "many-8"}
    assert "Reason=bad DIMM" in many.scontrol("show", "node", "many-7", "--oneliner")
    pod_stop = str(Marker(OWNER, Operation.POD_STOP))
    assert f"Reason={pod_stop}" in many.scontrol("show", "node", "many-8", "--oneliner"), "its pod undoes it"


def test_a_list_with_a_node_that_slurmctld_does_not_know_is_acted_on_and_refused(many: Slurm, counted: Counted) -> None:
    client = ScontrolClient(counted)
    with pytest.raises(UnknownNodeError):
        client.drain(["many-0", "many-2", "nosuch-0"], "a test")
    assert {node.name for node in client.nodes() if node.drained} == {"many-0", "many-2"}, "those that it knows"
    with pytest.raises(NodesNotDeletedError) as raised:
        client.delete_nodes(["many-0", "nosuch-0"])
    assert raised.value.left == {"nosuch-0"}
    assert "many-0" not in node_names(many)


def test_a_drain_that_is_taken_back_leaves_state_and_reason_as_they_were(many: Slurm, counted: Counted) -> None:
    client = ScontrolClient(counted)
    many.scontrol("update", "nodename=many-[1-2]", "state=down", "reason=fan")
    before = {node.name: node for node in client.nodes()}
    for reason, names in (("", ["many-0"]), ("fan", ["many-1", "many-2"])):
        client.drain(names, "soperator-pulumi many: scale-down 1a2b3c")
        client.undrain(names, reason)
    after = {node.name: node for node in client.nodes()}
    for name in ("many-0", "many-1", "many-2"):
        assert after[name].reason == before[name].reason
        assert after[name].state - {"NOT_RESPONDING"} == before[name].state - {"NOT_RESPONDING"}
