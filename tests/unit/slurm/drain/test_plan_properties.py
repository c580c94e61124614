"""Properties of every plan, whatever slurmctld answers."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.slurm.drain.plan import Plan, drained_for, plan
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.slurm.drain.request import DrainRequest
from soperator_pulumi.slurm.models import Job, Node, Reservation, Snapshot
from soperator_pulumi.spec.drain import DrainSpec
from tests.unit.slurm.drain.situation import EARLIER, HOUR, NOW, OWNER, RUN, job, reservation, snapshot

NAMES = [f"{node_set}-{ordinal}" for node_set in ("cpu", "gpu") for ordinal in range(4)]
HOURS = st.sampled_from([0, 0.5, 1, 2, 3, 200])

reasons = st.sampled_from(
    [
        "",
        "bad fan",
        str(RUN),
        str(EARLIER),
        str(replace(EARLIER, before="bad fan")),
        str(Marker(OWNER, Operation.POD_STOP)),
        str(Marker("dev", Operation.SCALE_DOWN, RUN.run)),
        f"{RUN} and more",
    ]
)
states = st.tuples(
    st.sampled_from(["IDLE", "MIXED", "ALLOCATED", "DOWN", "UNKNOWN"]),
    st.sets(st.sampled_from(["DRAIN", "FAIL", "UNDRAIN", "COMPLETING", "NOT_RESPONDING", "POWERING_UP"]), max_size=2),
).map(lambda parts: frozenset({parts[0], *parts[1]}))
nodes = st.lists(st.sampled_from(NAMES), unique=True).flatmap(
    lambda names: st.tuples(*(st.builds(Node, st.just(name), states, st.just(frozenset()), reasons) for name in names))
)
some_names = st.sets(st.sampled_from(NAMES), min_size=1, max_size=3).map(lambda names: ",".join(sorted(names)))
jobs = st.builds(
    job,
    st.integers(1, 9),
    some_names,
    state=st.sampled_from(["RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING+FAILED", "COMPLETED", "STAGE_OUT"]),
    ends_in=st.none() | st.floats(0, 9 * HOUR),
    requeueable=st.booleans(),
)
pending = st.builds(
    job, st.integers(10, 19), state=st.just("PENDING"), required_nodes=some_names.map(lambda item: frozenset({item}))
)
reservations = st.builds(reservation, st.sampled_from(["maint", "course"]), some_names)
said = st.builds(
    snapshot,
    nodes,
    st.lists(jobs | pending, max_size=4, unique_by=lambda item: item.job_id),
    st.lists(reservations, max_size=1),
)
policies = st.builds(
    DrainSpec,
    timeout=st.sampled_from(["0s", "1h", "2h"]),
    on_timeout=st.sampled_from(["abort", "requeue", "cancel", "wait"]),
    not_requeueable=st.sampled_from(["abort", "cancel"]),
    reservations=st.sampled_from(["report", "refuse"]),
    pending_jobs=st.sampled_from(["report", "refuse"]),
    wait=st.booleans(),
)
node_sets = st.tuples(
    *(
        st.builds(
            DrainRequest,
            st.just(node_set),
            st.just(tuple(f"{node_set}-{ordinal}" for ordinal in (2, 3))),
            st.just(tuple(f"{node_set}-{ordinal}" for ordinal in (0, 1))),
            policies,
            st.just(4),
            st.just(2),
            st.sampled_from([frozenset(), frozenset({f"{node_set}-3"})]),
        )
        for node_set in ("cpu", "gpu")
    )
)


def planned(sets: tuple[DrainRequest, ...], now: Snapshot, hours: float, treated: frozenset[int] = frozenset()) -> Plan:
    return plan(sets, now, RUN, elapsed_seconds=hours * HOUR, now=NOW, treated=dict.fromkeys(treated, 10.0))


def drained(now: Snapshot, made: Plan) -> Snapshot:
    """Return what slurmctld says once the plan's drains are in force."""
    marked = {
        name: replace(now.nodes[name], state=now.nodes[name].state - {"UNDRAIN"} | {"DRAIN"}, reason=reason)
        for reason, names in made.drain.items()
        for name in names
    }
    return replace(now, nodes={**now.nodes, **marked})


def foreign(node: Node) -> bool:
    return "FAIL" in node.state or ("DRAIN" in node.state and Marker.read(node.reason, OWNER) is None)


@given(node_sets, said, HOURS)
def test_a_free_node_is_drained_and_holds_no_job(sets: tuple[DrainRequest, ...], now: Snapshot, hours: float) -> None:
    never = frozenset().union(*(drain_request.never_started for drain_request in sets))
    for name in planned(sets, now, hours).free:
        assert not [item for item in now.jobs if item.active and name in item.node_names]
        if name not in now.nodes:
            assert name in never
        else:
            assert now.nodes[name].drained
            assert not now.nodes[name].busy_state
            assert foreign(now.nodes[name]) or str(Marker.read(now.nodes[name].reason, OWNER)).startswith(str(RUN))


@given(node_sets, said, HOURS)
def test_every_leaving_node_is_free_or_waited_for_and_no_other_is_touched(
    sets: tuple[DrainRequest, ...], now: Snapshot, hours: float
) -> None:
    made = planned(sets, now, hours)
    leaving = {name for drain_request in sets for name in drain_request.names}

    assert made.free | made.waiting.keys() == leaving
    assert not made.free & made.waiting.keys()
    assert {name for names in made.drain.values() for name in names} <= leaving & now.nodes.keys()


@given(node_sets, said, HOURS)
def test_no_plan_touches_a_drain_of_someone_else(sets: tuple[DrainRequest, ...], now: Snapshot, hours: float) -> None:
    after = drained(now, planned(sets, now, hours))
    others = {name for name, node in now.nodes.items() if foreign(node)}

    assert {name: after.nodes[name] for name in others} == {name: now.nodes[name] for name in others}
    assert not drained_for({*Operation}, NAMES, after, OWNER) & others


@given(node_sets, said, HOURS)
def test_putting_back_finds_exactly_what_was_drained_and_the_reason_of_before(
    sets: tuple[DrainRequest, ...], now: Snapshot, hours: float
) -> None:
    fresh = replace(now, nodes={name: node for name, node in now.nodes.items() if not node.state & {"DRAIN", "FAIL"}})
    made = planned(sets, fresh, hours)
    after = drained(fresh, made)

    back = drained_for({RUN.operation}, NAMES, after, OWNER)

    assert back == {name for names in made.drain.values() for name in names}
    for name in back:
        ours, before = Marker.read(after.nodes[name].reason, OWNER), fresh.nodes[name].reason
        assert ours is not None
        earlier = Marker.read(before, OWNER)
        assert ours.before == (earlier.before if earlier else before)


@given(node_sets, said, HOURS)
def test_what_is_drained_once_is_not_drained_again(sets: tuple[DrainRequest, ...], now: Snapshot, hours: float) -> None:
    """Target 6: no oscillation."""
    after = drained(now, planned(sets, now, hours))

    assert planned(sets, after, hours).drain == {}


@given(node_sets, said, HOURS)
def test_who_stops_does_nothing_else(sets: tuple[DrainRequest, ...], now: Snapshot, hours: float) -> None:
    made = planned(sets, now, hours)

    assert not made.stop or (made.drain, made.requeue, made.cancel, made.done) == ({}, (), (), False)


@given(node_sets, said, HOURS, st.frozensets(st.integers(1, 9)))
def test_no_job_is_treated_that_a_policy_protects(
    sets: tuple[DrainRequest, ...], now: Snapshot, hours: float, treated: frozenset[int]
) -> None:
    made = planned(sets, now, hours, treated)
    by_id = {item.job_id: item for item in now.jobs}

    for job_id in (*made.requeue, *made.cancel):
        where = [drain_request for drain_request in sets if by_id[job_id].node_names & {*drain_request.names}]
        assert where
        assert job_id not in treated
        assert all(drain_request.policy.on_timeout in {"requeue", "cancel"} for drain_request in where)
        assert all(drain_request.policy.timeout.total_seconds() <= hours * HOUR for drain_request in where)
        assert not by_id[job_id].node_names & {name for names in made.drain.values() for name in names}
    for job_id in made.requeue:
        assert by_id[job_id].requeueable


@given(node_sets, said, HOURS, st.data())
def test_the_order_of_slurm_s_answer_does_not_matter(
    sets: tuple[DrainRequest, ...], now: Snapshot, hours: float, data: st.DataObject
) -> None:
    shuffled = replace(now, jobs=tuple(data.draw(st.permutations(now.jobs))))
    one, other = planned(sets, now, hours), planned(sets, shuffled, hours)

    assert (one.free, one.drain, one.requeue, one.cancel) == (other.free, other.drain, other.requeue, other.cancel)
    assert {*one.stop} == {*other.stop}


@given(st.lists(jobs, max_size=3), st.lists(reservations, max_size=1))
def test_idle_nodes_take_two_looks(jobs_elsewhere: list[Job], reserved: list[Reservation]) -> None:
    sets = (DrainRequest("gpu", ("gpu-9",), (), DrainSpec(), 1, 0),)
    now = snapshot([Node("gpu-9", frozenset({"IDLE"}), frozenset())], jobs_elsewhere, reserved)
    first = planned(sets, now, 0)

    assert not first.done
    assert planned(sets, drained(now, first), 0).done
