"""Acts of users, admins, machines and daemons meanwhile, each as one small event.

An event says what it did, or nothing if it did not apply. What it does to a node is noted for `Watch`, which excuses
what no one could have known.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from tests.fakes.slurmctld import Job
from tests.fakes.workers import OWNER, Pod
from tests.unit.faults.invariants import ours
from tests.unit.faults.world import World

_FOREVER = float("inf")
_RUNS_SECONDS = (600.0, 5.0, 90.0, 600.0)
_COMPLETES_SECONDS = (0.0, 0.0, 4.0, 60.0, _FOREVER)
_CRASH_SECONDS = (3.0, 15.0, 90.0, 600.0)
_REASONS = (
    "disk",
    None,  # by REST: the text that is there stays
    f"soperator-pulumi {OWNER}: scale-down 1a2b3c and its disk is broken",
    "soperator-pulumi prod-other: scale-down 1a2b3c",
    "",
)

T = TypeVar("T")
Event = Callable[[World, int], str]


def submit(world: World, byte: int) -> str:
    """A user submits a job."""
    shape = byte >> 2
    job = Job(
        0,
        width=1 + (shape & 1),
        seconds=_RUNS_SECONDS[byte & 3],
        completing_seconds=_COMPLETES_SECONDS[(shape >> 1) % 5],
        configuring_seconds=10.0 * (shape >> 3 & 1),
        requeue=not shape >> 4 & 1,
        batch=not shape >> 5 & 1,
        limit_seconds=600.0,
    )
    world.slurm.submit(job)
    return f"job {job.job_id} {job.seconds:.0f} s on {job.nodes or 'nothing yet'}, requeue {job.requeue and job.batch}"


def _submit_for_a_node(world: World, byte: int) -> str:
    name = _one_of(sorted(world.slurm.nodes), byte)
    if name is None:
        return ""
    world.watch.counted_on[name] = world.watch.happens()
    job = world.slurm.submit(Job(0, seconds=20.0, required=frozenset({name})))
    return f"job {job.job_id} asks for {name}, on {job.nodes or 'nothing yet'}"


def _job_ends(world: World, byte: int) -> str:
    job = _one_of([job for job in world.slurm.jobs.values() if job.state == "RUNNING"], byte)
    if job is None:
        return ""
    world.slurm.end(job, "FAILED")
    job.by_others = True
    return f"job {job.job_id}"


def _suspend(world: World, byte: int) -> str:
    job = _one_of([job for job in world.slurm.jobs.values() if job.state == "RUNNING" and not job.configuring], byte)
    if job is None or not world.slurm.up:
        return ""
    world.slurm.suspend(job)
    return f"job {job.job_id}"


def _unsuspend(world: World, byte: int) -> str:
    job = _one_of([job for job in world.slurm.jobs.values() if job.state == "SUSPENDED"], byte)
    if job is None or not world.slurm.up:
        return ""
    world.slurm.unsuspend(job)
    return f"job {job.job_id}"


def _crash(world: World, byte: int) -> str:
    seconds = _CRASH_SECONDS[byte % 4]
    world.slurm.crash(seconds)
    return f"for {seconds:.0f} s"


def _crash_and_forget(world: World, byte: int) -> str:
    names = world.slurm.forget_newest()
    _disturb(world, names)
    for name in names:
        world.watch.imposed[name] = _note_lifted(world, name)
    return f"{_crash(world, byte)}, forgets {names}"


def _note_lifted(world: World, name: str) -> int:
    """Note that a node loses its drain now, whosever it is, and return when that is."""
    moment = world.watch.lifted[name] = world.watch.happens()
    if (node := world.slurm.nodes.get(name)) and not ours(node.reason):
        world.watch.lifted_of_others[name] = moment
    return moment


def _lose_state(world: World, _byte: int) -> str:
    for name in world.slurm.nodes:
        _note_lifted(world, name)
    _disturb(world, list(world.slurm.nodes))
    world.slurm.lose_state()
    return "nothing is known"


def _admin_drains(world: World, byte: int) -> str:
    name = _one_of(sorted(world.slurm.nodes), byte)
    reason = _REASONS[(byte >> 3) % len(_REASONS)]
    if name is None or not world.slurm.up:
        return ""
    world.slurm.drain([name], reason)
    world.watch.imposed[name] = world.watch.happens()
    _disturb(world, [name])
    return f"{name}, {world.slurm.nodes[name].reason!r}"


def _admin_fails(world: World, byte: int) -> str:
    name = _one_of(sorted(name for name, node in world.slurm.nodes.items() if not node.drain), byte)
    if name is None or not world.slurm.up:
        return ""
    world.slurm.fail(name)
    world.slurm.nodes[name].reason = "broken"
    world.watch.imposed[name] = world.watch.happens()
    _disturb(world, [name])
    return name


def _admin_resumes(world: World, byte: int) -> str:
    name = _one_of(sorted(name for name, node in world.slurm.nodes.items() if node.drain), byte)
    if name is None or not world.slurm.up:
        return ""
    _note_lifted(world, name)
    world.slurm.resume([name], undrain=bool(byte & 1))
    _disturb(world, [name])
    return name


def _admin_deletes_record(world: World, byte: int) -> str:
    name = _one_of(sorted(world.slurm.nodes), byte)
    if name is None or not world.slurm.up or world.slurm.delete(name):
        return ""
    world.watch.lifted[name] = world.watch.happens()
    _disturb(world, [name])
    return name


def _reserve(world: World, byte: int) -> str:
    name = _one_of(sorted(world.slurm.nodes), byte)
    if name is None or not world.slurm.up:
        return ""
    world.slurm.reservations[f"maint-{name}"] = frozenset({name})
    world.watch.counted_on[name] = world.watch.happens()
    return name


def _release(world: World, _byte: int) -> str:
    count = len(world.slurm.reservations)
    world.slurm.reservations.clear()
    return f"{count} reservations" if count else ""


def _to_a_pod(world: World, byte: int, act: Callable[[Pod], object]) -> str:
    pod = _one_of(_pods(world), byte)
    if pod is None:
        return ""
    _disturb(world, [pod.name])
    act(pod)
    return pod.name


def _pod_deleted(world: World, byte: int) -> str:
    return _to_a_pod(world, byte, lambda pod: world.kubernetes.tell_to_go([pod]))


def _machine_lost(world: World, byte: int) -> str:
    return _to_a_pod(world, byte, world.kubernetes.die)


def _slurmd_crashes(world: World, byte: int) -> str:
    return _to_a_pod(world, byte, world.kubernetes.restart_slurmd)


def _scaled_by_hand(world: World, byte: int) -> str:
    owner = _one_of(list(world.kubernetes.sets.values()), byte >> 2)
    if owner is None:
        return ""
    owner.replicas = max(0, owner.replicas + (1, -1, 2, -2)[byte & 3])
    owner.generation += 1
    _disturb(world, [f"{owner.name}-{ordinal}" for ordinal in range(8)])
    return f"{owner.name} to {owner.replicas}"


def _machines_full(world: World, _byte: int) -> str:
    world.kubernetes.new_pods_fit = not world.kubernetes.new_pods_fit
    return "new pods fit" if world.kubernetes.new_pods_fit else "new pods do not fit"


def _requeues_fail(world: World, _byte: int) -> str:
    world.slurm.requeue_fails = not world.slurm.requeue_fails
    return str(world.slurm.requeue_fails)


def _time_passes(world: World, byte: int) -> str:
    seconds = (10.0, 40.0, 120.0)[byte % 3]
    world.advance(seconds)
    return f"{seconds:.0f} s"


EVENTS: dict[str, Event] = {
    "job": submit,
    "job for a node": _submit_for_a_node,
    "job ends": _job_ends,
    "suspend": _suspend,
    "unsuspend": _unsuspend,
    "crash": _crash,
    "crash and forget": _crash_and_forget,
    "state lost": _lose_state,
    "admin drains": _admin_drains,
    "admin fails": _admin_fails,
    "admin resumes": _admin_resumes,
    "admin deletes record": _admin_deletes_record,
    "reserve": _reserve,
    "release": _release,
    "pod deleted": _pod_deleted,
    "machine lost": _machine_lost,
    "slurmd crashes": _slurmd_crashes,
    "scaled by hand": _scaled_by_hand,
    "machines full": _machines_full,
    "requeues fail": _requeues_fail,
    "time passes": _time_passes,
}

USUAL = ("job", "job for a node", "job ends", "suspend", "admin drains", "admin resumes", "reserve", "time passes")
"""Events that happen more often than the rest."""


def mend(world: World) -> None:
    """Let others put right what only they can: after that our code has to come to its end."""
    world.slurm.up, world.slurm.requeue_fails, world.kubernetes.new_pods_fit = True, False, True
    world.kubernetes.controller = True
    world.slurm.reservations.clear()
    world.slurm.unstick()
    for job in list(world.slurm.jobs.values()):
        if job.required and job.state == "PENDING":
            world.slurm.end(job, "CANCELLED")
        elif job.state == "SUSPENDED":
            world.slurm.unsuspend(job)
        job.seconds = min(job.seconds, 20.0)
    for pod in _pods(world):
        if pod.slurmd and pod.name not in world.slurm.nodes:
            world.kubernetes.restart_slurmd(pod)
    world.advance(60.0)


def _pods(world: World) -> list[Pod]:
    return [pod for pod in world.kubernetes.pods.values() if pod.going_since is None]


def _one_of(options: Sequence[T], byte: int) -> T | None:
    return options[byte % len(options)] if options else None


def _disturb(world: World, names: Sequence[str]) -> None:
    world.watch.disturbed |= set(names)
