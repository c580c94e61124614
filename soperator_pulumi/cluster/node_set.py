"""Node sets: worker pods that register themselves with slurmctld as dynamic nodes."""

import pulumi
from pulumi_kubernetes.apps.v1 import StatefulSet, StatefulSetSpecArgs, StatefulSetUpdateStrategyArgs
from pulumi_kubernetes.core.v1 import ContainerArgs, ContainerPortArgs
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.containers import INIT, asks, hardened, munge_socket, prepare, requirements
from soperator_pulumi.cluster.controller import USER_FILES
from soperator_pulumi.cluster.disruption import never_evicted
from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.cluster.options import NOT_AWAITED, Scope
from soperator_pulumi.cluster.parts import Parts
from soperator_pulumi.cluster.pods import NODES_SERVICE, Role, pod_template
from soperator_pulumi.cluster.storage import HOMES_DIRECTORY, SHARED_DIR, Claims
from soperator_pulumi.lifecycle import NodesReady
from soperator_pulumi.render import layout, node_conf
from soperator_pulumi.spec import ClusterSpec, Constrain, NodeSetSpec, PodResources, ResourceAmounts

CAPABILITIES = ("SETUID", "SETGID", "CHOWN", "FOWNER", "KILL")
"""What slurmd needs, bisected: to become the user (SETUID, SETGID), hand over batch scripts (CHOWN), sbcast
(FOWNER) and scancel (KILL)."""

CGROUP_CAPABILITIES = ("DAC_OVERRIDE", "SYS_NICE")
"""What it needs besides to hold jobs to their resources: directories in a cgroup v1 hierarchy, which has the mode 0555
(DAC_OVERRIDE), and binding a task that is the user's already to its CPUs (SYS_NICE; without it every task fails with
`task_g_set_affinity: Operation not permitted`, measured)."""

_LOG_DIR = "/var/log/slurm"
_CONTROLLER = f"{layout.CONTROLLER_HOST}:{layout.SLURMCTLD_PORT}"

_PREPARE = f"""\
chmod 1777 /tmp
chmod 0755 {layout.RUN_DIR} {layout.SPOOL_DIR} {_LOG_DIR}
install -d -m 0755 -o root -g root {SHARED_DIR}/{HOMES_DIRECTORY}
"""


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
                template=pod_template(own, parts, _role(parts.spec, node_set, parts.claims)),
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


def _role(spec: ClusterSpec, node_set: NodeSetSpec, claims: Claims) -> Role:
    constrained = spec.slurm.constrain is Constrain.CGROUP
    guaranteed = node_set.pod_resources is None
    places = _mounts(claims, constrained=constrained)
    daemon = ContainerArgs(
        name="slurmd",
        image=spec.images.worker,
        image_pull_policy=spec.images.pull_policy,
        # -b: the node's boot is the pod's start, not the machine's, or a resumed node waits for a reboot.
        command=[
            *(*INIT, "slurmd", "-D", "-b", "-Z", "--conf-server", _CONTROLLER),
            *("--conf", node_conf(spec, node_set)),
        ],
        ports=[ContainerPortArgs(name="slurmd", container_port=layout.SLURMD_PORT)],
        security_context=hardened(capabilities=[*CAPABILITIES, *(CGROUP_CAPABILITIES if constrained else ())]),
        resources=requirements(node_set.pod_resources or _all_of(node_set)),
        startup_probe=asks("scontrol", "show", "slurmd", period=1, failures=300),
        readiness_probe=asks("scontrol", "show", "slurmd", period=10, failures=3),
        # Restarting the container kills its jobs: only after Slurm itself has given the node up (SlurmdTimeout).
        liveness_probe=asks("scontrol", "show", "slurmd", period=30, failures=20, timeout=20),
        volume_mounts=[place.in_container() for place in places],
    )
    unprepared = [place for place in places if place.name in {"tmp", "run", "spool", "log"}]
    shared = mounts.claim("shared", claims.shared, SHARED_DIR)
    return Role(
        component="worker",
        node_set=node_set.name,
        daemon=daemon,
        mounts=[*places, shared],
        scheduling=node_set,
        prepare=prepare(spec, spec.images.worker, _PREPARE, [*unprepared, shared], guaranteed=guaranteed),
        guaranteed=guaranteed,
    )


def _all_of(node_set: NodeSetSpec) -> PodResources:
    """Return requests and limits of what Slurm schedules, which is what makes a pod Guaranteed."""
    amounts = ResourceAmounts(cpu=str(node_set.cpus), memory=f"{node_set.memory_mib}Mi")
    return PodResources(requests=amounts, limits=amounts)


def _mounts(claims: Claims, *, constrained: bool) -> list[Mount]:
    cgroups = [mounts.machine_directory("cgroup", "/sys/fs/cgroup")] if constrained else []
    return [
        munge_socket(),
        mounts.config_files("users", USER_FILES),
        mounts.claim("shared", claims.shared, "/home", sub_path=HOMES_DIRECTORY),
        mounts.scratch("tmp", mounts.TMP),
        mounts.memory("run", layout.RUN_DIR, "16Mi"),
        mounts.scratch("spool", layout.SPOOL_DIR),
        mounts.scratch("log", _LOG_DIR),
        *cgroups,
    ]
