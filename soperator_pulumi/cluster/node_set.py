"""Node sets: worker pods that register themselves with slurmctld as dynamic nodes.

Jobs leave the worker's own root for the jail before anything of theirs runs. That nothing of theirs could run outside
of it has a second reason: nothing that they could execute is there. The image's programs are root's alone, and every
volume is mounted so that nothing in it can be executed; the plugin takes that away for what a job sees in the jail.
"""

from collections.abc import Sequence

import pulumi
from pulumi_kubernetes.apps.v1 import StatefulSet, StatefulSetSpecArgs, StatefulSetUpdateStrategyArgs
from pulumi_kubernetes.core.v1 import ContainerArgs, ContainerPortArgs
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.containers import (
    INIT,
    LAST_WORDS,
    asks,
    give_modes,
    hardened,
    mounting_profile,
    munge_socket,
    prepare,
    requirements,
)
from soperator_pulumi.cluster.disruption import never_evicted
from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.cluster.options import NOT_AWAITED, Scope
from soperator_pulumi.cluster.parts import Parts
from soperator_pulumi.cluster.pods import NODES_SERVICE, Role, pod_template
from soperator_pulumi.cluster.submounts import with_submounts
from soperator_pulumi.cluster.users import USERS_CONFIG_MAP
from soperator_pulumi.lifecycle import NodesReady
from soperator_pulumi.render import jail_binds, layout, node_conf
from soperator_pulumi.spec import Constrain, NodeSetSpec, PodResources, ResourceAmounts, SubmountRole

CAPABILITIES = ("SETUID", "SETGID", "CHOWN", "FOWNER", "KILL", "DAC_OVERRIDE")
"""What slurmd needs, bisected: to become the user (SETUID, SETGID), hand over batch scripts (CHOWN), sbcast
(FOWNER), scancel (KILL), and PMIx's files in a directory that is the user's already, as directories in a cgroup v1
hierarchy, which have the mode 0555 (DAC_OVERRIDE)."""

JAIL_CAPABILITIES = ("SYS_ADMIN", "SYS_CHROOT", "SETPCAP")
"""What moving a job into the jail takes: mounting, changing the root, and giving up these three for good."""

CGROUP_CAPABILITIES = ("SYS_NICE",)
"""What it needs besides to hold jobs to their resources: binding a task that is the user's already to its CPUs. Without
it every task fails with `task_g_set_affinity: Operation not permitted` (measured)."""

_LOG_DIR = "/var/log/slurm"
_CGROUPS = "/sys/fs/cgroup"
_CONTROLLER = f"{layout.CONTROLLER_HOST}:{layout.SLURMCTLD_PORT}"

_OWN_DIRECTORIES = (layout.RUN_DIR, layout.SPOOL_DIR, _LOG_DIR)
"""slurmd's own, closed to users; other empty directories are everybody's."""

_CLOSE = """\
close() {
    mount -o "remount,bind,$1" "$2" && return
    echo "slurmd is not started, as jobs could run programs in $2 outside of the jail." \\
        "Where machines have AppArmor, set jail.app_armor: unconfined." >&2
    exit 1
}
"""

_CLOSED = "nosuid=recursive,nodev=recursive,noexec=recursive"
"""How volumes are mounted in the worker: also what is mounted inside a directory of the machine."""


class NodeSet(pulumi.ComponentResource):
    """Worker pods of one kind, one StatefulSet whatever their number. Pod = Slurm node = `<name>-<ordinal>`.

    A changed pod template restarts nothing by itself (`OnDelete`), as jobs run in the pods.
    """

    stateful_set: StatefulSet
    """The workers' StatefulSet."""

    ready: NodesReady
    """Waits until the nodes have joined Slurm, and says what each missing one lacks."""

    def __init__(
        self,
        name: str,
        *,
        scope: Scope,
        parts: Parts,
        node_set: NodeSetSpec,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("soperator-pulumi:index:NodeSet", name, {}, opts)
        own = scope.within(self)
        self.stateful_set = StatefulSet(
            name,
            # Pulumi would wait for every pod, also for those that cannot start now. `ready` waits, and says why.
            metadata=own.metadata(node_set.name, "worker", node_set.name, NOT_AWAITED),
            spec=StatefulSetSpecArgs(
                service_name=NODES_SERVICE,
                replicas=node_set.replicas,
                pod_management_policy="Parallel",
                update_strategy=StatefulSetUpdateStrategyArgs(type="OnDelete"),
                selector=LabelSelectorArgs(match_labels=own.selector("worker", node_set.name)),
                template=pod_template(own, parts, _role(parts, node_set)),
            ),
            opts=own.options(),
        )
        self.disruption_budget = never_evicted(name, own, "worker", node_set.name)
        self.ready = NodesReady(
            f"{name}-ready",
            namespace=scope.namespace,
            node_set=node_set.name,
            replicas=node_set.replicas,
            selector=own.selector("worker", node_set.name),
            timeout_seconds=node_set.ready_timeout_seconds,
            connection=parts.connection,
            opts=own.options(depends_on=[self.stateful_set]),
        )
        self.register_outputs({})


def _role(parts: Parts, node_set: NodeSetSpec) -> Role:
    spec = parts.spec
    constrained = spec.slurm.constrain is Constrain.CGROUP
    guaranteed = node_set.pod_resources is None
    places = with_submounts(_mounts(parts), spec, SubmountRole.WORKER)
    cgroups = [mounts.machine_directory("cgroup", _CGROUPS, _CGROUPS)] if constrained else []
    added = (*JAIL_CAPABILITIES, *(CGROUP_CAPABILITIES if constrained else ()))
    daemon = ContainerArgs(
        name="slurmd",
        image=spec.images.worker,
        image_pull_policy=spec.images.pull_policy,
        command=[
            *(*INIT, "/bin/sh", "-ec", _start(places, jail_binds(spec, SubmountRole.WORKER)), "slurmd"),
            # -b: the node's boot is the pod's start, not the machine's, or a resumed node waits for a reboot.
            *("-D", "-b", "-Z", "--conf-server", _CONTROLLER),
            *("--conf", node_conf(spec, node_set)),
        ],
        ports=[ContainerPortArgs(name="slurmd", container_port=layout.SLURMD_PORT)],
        security_context=hardened(capabilities=[*CAPABILITIES, *added], app_armor=mounting_profile(spec)),
        resources=requirements(node_set.pod_resources or _all_of(node_set)),
        startup_probe=asks("scontrol", "show", "slurmd", period=1, failures=300),
        readiness_probe=asks("scontrol", "show", "slurmd", period=10, failures=3),
        # Restarting the container kills its jobs: only after Slurm itself has given the node up (SlurmdTimeout).
        liveness_probe=asks("scontrol", "show", "slurmd", period=30, failures=20, timeout=20),
        termination_message_path=LAST_WORDS,
        volume_mounts=[place.in_container() for place in [*places, *cgroups]],
    )
    open_directories = [place for place in places if place.needs_mode and place.path not in _OWN_DIRECTORIES]
    own_directories = [place for place in places if place.path in _OWN_DIRECTORIES]
    return Role(
        component="worker",
        node_set=node_set.name,
        daemon=daemon,
        mounts=[*places, *cgroups],
        scheduling=node_set,
        prepare=prepare(
            spec,
            spec.images.worker,
            give_modes(open_directories, own_directories),
            [*open_directories, *own_directories],
            guaranteed=guaranteed,
        ),
        guaranteed=guaranteed,
    )


def _start(places: Sequence[Mount], binds: Sequence[str]) -> str:
    """Return the script that starts slurmd.

    Before that it makes every volume one from which nothing is executed, and notes what a job on this node sees of its
    volumes: a pod that has not been replaced since the spec changed goes on with what it has.
    """
    remounts = [f"close {'ro=recursive,' if place.read_only else ''}{_CLOSED} {place.path}\n" for place in places]
    note = f"printf '%s\\n' {' '.join(binds)} > {layout.JAIL_BINDS}\n"
    return _CLOSE + "".join(remounts) + note + 'exec slurmd "$@"\n'


def _all_of(node_set: NodeSetSpec) -> PodResources:
    """Return requests and limits of what Slurm schedules, which is what makes a pod Guaranteed."""
    amounts = ResourceAmounts(cpu=str(node_set.cpus), memory=f"{node_set.memory_mib}Mi")
    return PodResources(requests=amounts, limits=amounts)


def _mounts(parts: Parts) -> list[Mount]:
    return [
        munge_socket(),
        mounts.config_files(USERS_CONFIG_MAP, layout.USER_FILES),
        mounts.claim("jail", parts.jail.name, layout.JAIL_DIR),
        mounts.claim("jail", parts.jail.name, layout.HOMES_DIR, layout.HOMES_IN_JAIL),
        mounts.scratch("tmp", layout.TEMPORARY_DIR),
        # The runtime's own is 64 MiB, too small for MPI between the tasks of a node.
        mounts.memory("shm", layout.SHARED_MEMORY_DIR, None),
        mounts.memory("run", layout.RUN_DIR, "16Mi"),
        mounts.scratch("spool", layout.SPOOL_DIR),
        mounts.scratch("log", _LOG_DIR),
    ]
