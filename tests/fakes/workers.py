"""Workers as Kubernetes runs them: StatefulSets (Parallel, OnDelete), their pods, and slurmd with preStop in them.

What it leaves out: pods deleted by force, whose processes may go on though the API server says that they are gone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from soperator_pulumi.cluster import worker_scripts
from soperator_pulumi.slurm.drain.reason import Marker, Operation
from soperator_pulumi.spec.drain import DrainSpec
from tests.fakes.slurmctld import NOT_RESPONDING, Slurmctld

OWNER = "dev-hpc"
POD_STOP = str(Marker(OWNER, Operation.POD_STOP))
POD_START = str(Marker(OWNER, Operation.POD_START))

START_SECONDS = 2.0
STOP_SECONDS = 1.0


@dataclass
class Set:
    """A StatefulSet of workers."""

    name: str
    uid: str
    replicas: int
    template: str
    identity: str
    grace_seconds: float
    policy: str
    """Drain policy of the node set, as JSON."""
    generation: int = 1
    observed: int = 0
    revision: str = ""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations that runs have written, in addition to the program's."""


@dataclass
class Pod:
    """A worker's pod."""

    name: str
    uid: str
    node_set: str
    revision: str
    born_at: float
    grace_seconds: float
    schedulable: bool = True
    slurmd: bool = False
    """True while slurmd runs."""
    ran: bool = False
    """True once it has run."""
    restarts: int = 0
    registered: bool = False
    registered_at: float = 0.0
    going_since: float | None = None
    stopped_at: float | None = None
    """When its slurmd was told to end."""

    @property
    def ordinal(self) -> int:
        return int(self.name.rpartition("-")[2])

    @property
    def ready(self) -> bool:
        return self.slurmd and self.registered


@dataclass
class Workers:
    """StatefulSets and pods, and the controllers and kubelets behind them."""

    slurm: Slurmctld = field(default_factory=Slurmctld)
    on_leave: Callable[[list[Pod]], None] = lambda _pods: None
    """Called when pods are told to go, before anything happens to them."""
    on_pod: Callable[[Pod], None] = lambda _pod: None
    """Called when a pod was made, has registered, or has drained its node."""
    sets: dict[str, Set] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    new_pods_fit: bool = True
    now: float = 0.0
    uids: int = 0

    # -- what runs by itself ------------------------------------------------------------------------------------

    def step(self, now: float) -> None:
        """Let time come to `now`."""
        self.now = now
        for owner in self.sets.values():
            self._reconcile(owner)
        orphans = [pod for pod in self.pods.values() if pod.node_set not in self.sets and pod.going_since is None]
        self.tell_to_go(orphans)
        for pod in list(self.pods.values()):
            if pod.going_since is not None:
                self._stop(pod, pod.going_since)
            else:
                self._run(pod)

    def answers_slurmd(self, name: str) -> bool:
        """Return True for a slurmd of this name that is alive and has registered since it started."""
        pod = self.pods.get(name)
        return pod is not None and pod.slurmd and pod.registered

    def tell_to_go(self, pods: list[Pod]) -> None:
        """Begin the end of pods: preStop, then the kill at the end of their grace."""
        for pod in pods:
            pod.going_since = self.now

    def die(self, pod: Pod) -> None:
        """End a pod's processes and remove it."""
        self.pods.pop(pod.name, None)
        self.slurm.machine_gone(pod.name)

    def _reconcile(self, owner: Set) -> None:
        owner.revision, owner.observed = f"{owner.name}-{owner.template}", owner.generation
        own = [pod for pod in self.pods.values() if pod.node_set == owner.name]
        self.tell_to_go([pod for pod in own if pod.ordinal >= owner.replicas and pod.going_since is None])
        for ordinal in range(owner.replicas):
            name = f"{owner.name}-{ordinal}"
            if name not in self.pods:
                self.uids += 1
                uid = f"pod-{self.uids}"
                self.pods[name] = Pod(
                    name, uid, owner.name, owner.revision, self.now, owner.grace_seconds, self.new_pods_fit
                )
                self.on_pod(self.pods[name])

    def _run(self, pod: Pod) -> None:
        if not pod.schedulable and self.new_pods_fit:
            pod.schedulable, pod.born_at = True, self.now
        if not pod.schedulable or self.now < pod.born_at + START_SECONDS:
            return
        pod.slurmd = pod.ran = True
        if not pod.registered:
            pod.registered = self.slurm.register(pod.name, _weight(pod.ordinal), POD_START)
            pod.registered_at = self.now
            # The startup probe undoes exactly what this pod's preStop of before has set.
            if pod.registered:
                self._lift(pod, POD_STOP)
            self.on_pod(pod)
        if pod.registered and self.slurm.up and self.now >= pod.registered_at + worker_scripts.NEWCOMER_SECONDS:
            self._lift(pod, POD_START)

    def _lift(self, pod: Pod, reason: str) -> None:
        """Do as the pod's own scripts: undo a drain with exactly this reason."""
        record = self.slurm.nodes.get(pod.name)
        if record and record.drain and not record.fail and record.reason.removesuffix(NOT_RESPONDING) == reason:
            self.slurm.resume([pod.name])

    def _stop(self, pod: Pod, since: float) -> None:
        if not pod.slurmd:
            self.die(pod)
            return
        over = self.now >= since + pod.grace_seconds
        record = self.slurm.nodes.get(pod.name) if self.slurm.up else None
        if record and not record.drain:
            self.slurm.drain([pod.name], POD_STOP)
            self.on_pod(pod)
        waits = not self.slurm.up or bool(self.slurm.could_be_on(pod.name))
        if over:
            self.die(pod)
        elif not waits:
            pod.stopped_at = self.now if pod.stopped_at is None else pod.stopped_at
            if self.now >= pod.stopped_at + STOP_SECONDS:
                self.die(pod)

    def restart_slurmd(self, pod: Pod) -> None:
        """End a slurmd badly: its container starts again."""
        if pod.slurmd:
            pod.slurmd, pod.registered, pod.born_at, pod.restarts = False, False, self.now, pod.restarts + 1
            self.slurm.machine_gone(pod.name)

    # -- what the engine does -----------------------------------------------------------------------------------

    def put_set(self, name: str, replicas: int, template: str, identity: str, policy: DrainSpec) -> None:
        """Create a StatefulSet, or change it. One whose identity changes must be deleted first."""
        found, grace, written = self.sets.get(name), policy.grace.total_seconds(), policy.model_dump_json()
        if found is None:
            self.uids += 1
            self.sets[name] = Set(name, f"set-{self.uids}", replicas, template, identity, grace, written)
            return
        assert found.identity == identity
        lost = [pod for pod in self.pods.values() if pod.node_set == name and pod.ordinal >= replicas]
        self.on_leave([pod for pod in lost if pod.going_since is None])
        found.generation += (found.replicas, found.template) != (replicas, template)
        found.replicas, found.template, found.grace_seconds, found.policy = replicas, template, grace, written

    def delete_set(self, name: str) -> None:
        """Delete a StatefulSet; its pods follow."""
        self.on_leave([pod for pod in self.pods.values() if pod.node_set == name and pod.going_since is None])
        self.sets.pop(name, None)


def _weight(ordinal: int) -> int:
    return (ordinal + 1).bit_length()
