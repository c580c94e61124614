"""The controller: slurmctld with its state, and what keeps it from being evicted."""

import pulumi
from pulumi_kubernetes.apps.v1 import StatefulSet, StatefulSetSpecArgs
from pulumi_kubernetes.core.v1 import ContainerArgs, ContainerPortArgs, EnvVarArgs
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.cluster_inputs import Parts
from soperator_pulumi.cluster.containers import INIT, asks, hardened, munge_socket, prepare, requirements
from soperator_pulumi.cluster.disruption import never_evicted
from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.cluster.pods import NODES_SERVICE, Role, pod_template
from soperator_pulumi.cluster.scope import NOT_AWAITED, Scope
from soperator_pulumi.cluster.users import merged_users, users_sidecar
from soperator_pulumi.lifecycle import SLURM_CONFIG_MAP, PodsReady
from soperator_pulumi.render import layout

SLURM_FILES = "/etc/slurm-config"

_STATE_IN_VOLUME = "slurmctld"

_PREPARE = f"""\
if [ "$(stat -c %u {layout.STATE_DIR})" != {layout.SLURM_UID} ]; then
    chmod 0700 {layout.STATE_DIR}
    chown {layout.SLURM_UID}:{layout.SLURM_UID} {layout.STATE_DIR}
fi
"""
"""Not by the pod's `fsGroup`: the kubelet would give the jail, which the pod mounts as well, to that group too."""


class Controller(pulumi.ComponentResource):
    """slurmctld: one pod, `controller-0`, that holds the queue. Running jobs go on while it is replaced."""

    stateful_set: StatefulSet
    """The controller's StatefulSet, of one replica."""

    ready: PodsReady
    """Waits until slurmctld answers, and says why it does not."""

    def __init__(
        self,
        name: str,
        *,
        scope: Scope,
        parts: Parts,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("soperator-pulumi:index:Controller", name, {}, opts)
        own = scope.within(self)
        self.stateful_set = StatefulSet(
            name,
            # The workers start at the same time: `ready` waits.
            metadata=own.metadata("controller", "controller", annotations=NOT_AWAITED),
            spec=StatefulSetSpecArgs(
                service_name=NODES_SERVICE,
                replicas=1,
                selector=LabelSelectorArgs(match_labels=own.selector("controller")),
                template=pod_template(own, parts, _role(parts)),
            ),
            opts=own.options(),
        )
        self.ready = PodsReady(
            f"{name}-ready",
            cluster=own.connection("controller"),
            stateful_set="controller",
            opts=own.options(depends_on=[self.stateful_set]),
        )
        self.disruption_budget = never_evicted(name, own, "controller")
        self.register_outputs({})


def _role(parts: Parts) -> Role:
    spec = parts.spec
    # One directory of the volume, since the root of many volumes is open to everybody, or to root alone.
    state = mounts.claim("state", parts.state.name, layout.STATE_DIR, _STATE_IN_VOLUME)
    places = [*_mounts(), state]
    users, users_mounts = users_sidecar(parts, writes_tree=True)
    daemon = ContainerArgs(
        name="slurmctld",
        image=spec.images.controller,
        image_pull_policy=spec.images.pull_policy,
        # Not /etc/slurm: `scontrol` beside it asks slurmctld for the configuration that is in force, so a file that is
        # new, and perhaps wrong, makes no probe fail.
        command=[*INIT, "slurmctld", "-D", "-f", f"{SLURM_FILES}/slurm.conf"],
        env=[EnvVarArgs(name="SLURM_CONF_SERVER", value=f"{layout.CONTROLLER_HOST}:{layout.SLURMCTLD_PORT}")],
        ports=[ContainerPortArgs(name="slurmctld", container_port=layout.SLURMCTLD_PORT)],
        security_context=hardened(uid=layout.SLURM_UID),
        resources=requirements(spec.controller.pod_resources),
        # Recovering a large state takes minutes; nothing is restarted for it.
        startup_probe=asks("scontrol", "ping", period=1, failures=600),
        readiness_probe=asks("scontrol", "ping", period=5, failures=3),
        liveness_probe=asks("scontrol", "ping", period=10, failures=6),
        volume_mounts=[place.in_container() for place in places],
    )
    return Role(
        component="controller",
        daemon=daemon,
        mounts=[*places, *users_mounts],
        scheduling=spec.controller,
        prepare=prepare(spec, spec.images.controller, _PREPARE, [state], capabilities=["CHOWN"]),
        sidecars=[users],
        grace_seconds=60,  # slurmctld saves its state when it is told to stop
    )


def _mounts() -> list[Mount]:
    return [
        munge_socket(),
        mounts.config_files(SLURM_CONFIG_MAP, SLURM_FILES),
        merged_users(),
        mounts.memory("run", layout.RUN_DIR, "1Mi"),
        mounts.memory("tmp", layout.TEMPORARY_DIR, "16Mi"),
    ]
