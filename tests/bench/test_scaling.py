"""Cost of a scale-down: calls and time against one call a node, and whom it meets at work."""

import statistics
import time
from collections.abc import Iterator, Sequence

import pytest

from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.kube_api import Cluster
from soperator_pulumi.operations.nodes.context import DrainContext
from soperator_pulumi.operations.nodes.draining import Draining
from soperator_pulumi.operations.nodes.node_cleanup import NodeCleanup
from soperator_pulumi.operations.progress import MachineClock
from soperator_pulumi.slurm.client import SlurmClient
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.hostlist import compress
from soperator_pulumi.slurm.models import Node
from soperator_pulumi.slurm.scontrol import ScontrolClient
from soperator_pulumi.slurm.transport import Answer, Transport
from soperator_pulumi.spec.drain import DrainSpec
from tests.bench.ratios import Goal, report, seconds
from tests.bench.sizes import size
from tests.cluster.slurm import Slurm, a_cluster, a_node_set, bring_images, unique
from tests.conftest import Kubernetes
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

NODES = size(1000, 10)
NAMES = tuple(f"many-{ordinal}" for ordinal in range(NODES))
ROUNDS = size(5, 1)
SOME = NAMES[: size(20, 2)]
"""These are timed one by one: all would take minutes."""

WORKERS, LEAVING = size(24, 4), size(6, 1)
STREAMS = WORKERS // 2
"""Each has one job running on a node of its own at any time, of 2 to 8 seconds, one after the other."""
CHURN = f"""for stream in $(seq {STREAMS}); do
    (count=$stream; while :; do count=$((count + 5)); srun --quiet -N1 --exclusive sleep $((count % 7 + 2)); done) &
done; wait"""
SETTLE_SECONDS, WATCH_SECONDS = size(25, 1), size(40, 10)


class Counted:
    """Passes commands on and counts them."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.programs: list[str] = []

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        self.programs.append(command[0])
        return self._transport.run(command, stdin=stdin, timeout_seconds=timeout_seconds)

    def __str__(self) -> str:
        programs = self.programs
        return f"{programs.count('scontrol')} of scontrol and {programs.count('squeue')} of squeue"


@pytest.fixture(scope="module")
def slurm(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    bring_images(kubernetes)
    workers = a_cluster(name=unique("bench-scaling"), node_sets=[a_node_set("cpu", replicas=WORKERS)])
    made = Slurm(kubernetes, tmp_path_factory.mktemp("scaling"), workers)
    try:
        made.up()
        yield made
    finally:
        made.destroy()


@pytest.fixture(scope="module")
def cluster(slurm: Slurm) -> Cluster:
    return Cluster(Access(str(slurm.kubernetes.kubeconfig), slurm.kubernetes.target.context))


def make_nodes(slurm: Slurm, names: Sequence[str]) -> None:
    slurm.scontrol("create", f"nodename={compress(names)}", "State=CLOUD", "Feature=many", "CPUs=1")


def scale_down(client: SlurmClient, cleanup: NodeCleanup) -> None:
    """Do all that a scale-down asks and tells slurmctld."""
    leaving = DrainRequest("many", NAMES, (), DrainSpec(), before=NODES, after=0)
    draining = Draining(DrainContext(client, "bench", "bench", lambda _: None, MachineClock()))
    assert draining.free([leaving], Operation.SCALE_DOWN).free == {*NAMES}
    assert cleanup.remove(NAMES).removed == {*NAMES}


def drain_and_delete(client: SlurmClient, *parts: Sequence[str]) -> None:
    """Do the two for the nodes of each part, with a call each."""
    for names in parts:
        client.drain(names, str(Marker("bench", Operation.SCALE_DOWN, "1a2b3c")))
        client.delete_nodes(names)


def test_many_nodes_at_once_against_one_call_a_node(slurm: Slurm, cluster: Cluster) -> None:
    counted = Counted(cluster.transport(slurm.namespace, "controller-0", "slurmctld"))
    client = ScontrolClient(counted)
    cleanup = NodeCleanup(cluster, client, slurm.namespace, "bench")
    changes: list[float] = []
    whole: list[float] = []
    one_by_one: list[float] = []
    calls = ""
    for _ in range(ROUNDS):
        make_nodes(slurm, NAMES)
        counted.programs.clear()
        whole.append(seconds(lambda: scale_down(client, cleanup)))
        calls = str(counted)

        make_nodes(slurm, NAMES)
        changes.append(seconds(lambda: drain_and_delete(client, NAMES)))

        make_nodes(slurm, SOME)
        one_by_one.append(seconds(lambda: drain_and_delete(client, *zip(SOME))) * NODES / len(SOME))
    against = f"a drain and a deletion for each ({len(SOME)} of them, times {NODES // len(SOME)})"
    report(f"{NODES} nodes drained and deleted", changes, one_by_one, against, Goal(1 / 200))
    report(f"{NODES} nodes, with every look ({calls})", whole, one_by_one, f"{against}, without any look", Goal(1 / 20))


def test_how_many_leaving_nodes_are_idle_with_and_without_weights(slurm: Slurm, cluster: Cluster) -> None:
    client = ScontrolClient(cluster.transport(slurm.namespace, "controller-0", "slurmctld"))
    registered = {node.name: node.weight for node in client.nodes()}
    assert len({*registered.values()}) > 1, "the workers registered without weights"
    idle: dict[str, list[float]] = {"without": [], "with": []}
    with slurm.ssh_session(CHURN):
        wait_until(lambda: busy(client.nodes()) > STREAMS // 2, "a quarter of the nodes work", timeout_seconds=120)
        for _ in range(2):
            for which, weights in (("without", dict.fromkeys(registered, 1)), ("with", registered)):
                weigh(slurm, weights)
                idle[which] += watch(client)
    looks = f"{STREAMS} of {WORKERS} at work, {len(idle['with'])} looks"
    without, with_weights = ([statistics.mean(idle[which])] for which in ("without", "with"))
    what = f"idle nodes among the {LEAVING} that would leave, without weights"
    report(what, without, with_weights, f"with weights ({looks})", Goal(0.9), unit="of them")


def busy(nodes: Sequence[Node]) -> int:
    return sum(bool(node.busy_state) for node in nodes)


def weigh(slurm: Slurm, weights: dict[str, int]) -> None:
    by_weight: dict[int, list[str]] = {}
    for name, weight in weights.items():
        by_weight.setdefault(weight, []).append(name)
    for weight, names in by_weight.items():
        slurm.scontrol("update", f"nodename={compress(names)}", f"weight={weight}")


def watch(client: SlurmClient) -> list[float]:
    """Return, of many looks, which share of the nodes that would leave is idle; jobs of before have ended by then."""
    leaving = {f"cpu-{ordinal}" for ordinal in range(WORKERS - LEAVING, WORKERS)}
    began, shares = time.monotonic(), []
    while (passed := time.monotonic() - began) < SETTLE_SECONDS + WATCH_SECONDS:
        nodes = [node for node in client.nodes() if node.name in leaving]
        if passed > SETTLE_SECONDS:
            shares.append(1 - busy(nodes) / LEAVING)
        time.sleep(1)
    return shares
