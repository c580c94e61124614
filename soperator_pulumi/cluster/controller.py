"""The controller: slurmctld with its state."""

import pulumi
from pulumi_kubernetes.apps.v1 import StatefulSet
from pulumi_kubernetes.core.v1 import (
    ConfigMap,
    ConfigMapKeySelectorArgs,
    ContainerArgs,
    ContainerPortArgs,
    EnvVarArgs,
    EnvVarSourceArgs,
)
from pulumi_kubernetes.policy.v1 import PodDisruptionBudget

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.containers import (
    INIT,
    JWT_SECRET_DIR,
    connects,
    hardened,
    jwt_key,
    key_version,
    merged_users,
    munge_socket,
    prepare,
    requirements,
    script_of_image,
    users_sidecar,
)
from soperator_pulumi.cluster.daemon import create_daemon, create_disruption_budget
from soperator_pulumi.cluster.pod_template import Parts, Role, pod_template
from soperator_pulumi.cluster.scope import Scope
from soperator_pulumi.cluster.slurm_releases import version_mark, version_of_spec
from soperator_pulumi.lifecycle import SLURM_CONFIG_MAP, PodsReady
from soperator_pulumi.render import layout
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.slurm_parameters import CONNECTIONS
from soperator_pulumi.spec.storage_findings import StateProperty

SLURM_FILES = "/etc/slurm-config"

_STATE_IN_VOLUME = "slurmctld"

_PREPARE = f"""\
if [ "$(stat -c %u {layout.STATE_DIR})" != {layout.SLURM_UID} ]; then
    chmod 0700 {layout.STATE_DIR}
    chown {layout.SLURM_UID}:{layout.SLURM_UID} {layout.STATE_DIR}
fi
: > {layout.NODE_GRES}
rm -f {layout.RUN_DIR}/{layout.JWT_KEY}
if [ -e {JWT_SECRET_DIR}/{layout.JWT_KEY} ]; then
    cat {JWT_SECRET_DIR}/{layout.JWT_KEY} > {layout.RUN_DIR}/{layout.JWT_KEY}
else
    head -c 32 /dev/urandom > {layout.RUN_DIR}/{layout.JWT_KEY}
fi
chmod 0400 {layout.RUN_DIR}/{layout.JWT_KEY}
chown {layout.SLURM_UID}:{layout.SLURM_UID} {layout.RUN_DIR}/{layout.JWT_KEY}
"""
"""Owner of the state, in place of the pod's `fsGroup`: by that, the kubelet would change the group of the jail as well.
And an empty file for a node's generic resources: slurmctld looks into all files that gres.conf includes, and waits a
minute for one that is missing (`s_p_parse_file` in src/common/parse_config.c, measured). And the key that signs tokens,
with the owner that slurmctld demands: where the REST API is only being switched on, a key of the pod's own, which signs
no token, until the pod has the cluster's."""


class Controller(pulumi.ComponentResource):
    """slurmctld: one pod, `controller-0`, which holds the queue. Jobs keep running while it is replaced."""

    stateful_set: StatefulSet
    """The StatefulSet `controller`, of one replica."""

    ready: PodsReady
    """Waits until slurmctld answers, and reports the reason if it does not."""

    disruption_budget: PodDisruptionBudget
    """Refuses every eviction."""

    state_in_use: ConfigMap
    """Tells later starts of slurmctld that there is a state, and on which claim."""

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
        self.stateful_set, self.ready = create_daemon(
            name,
            own,
            parts.spec,
            "controller",
            pod_template(own, parts, _role(parts)),
            annotations=version_mark(parts.spec),
        )
        self.disruption_budget = create_disruption_budget(name, own, "controller")
        self.state_in_use = ConfigMap(
            f"{name}-state-in-use",
            # A destroy deletes it, with the claim kept or not: a later `up` could not create it again.
            metadata=own.metadata(layout.STATE_IN_USE),
            data={layout.STATE_IN_USE: pulumi.Output.concat("on the claim ", parts.state.name)},
            opts=own.behind(self.ready).options(),
        )
        self.register_outputs({})


def _role(parts: Parts) -> Role:
    spec = parts.spec
    # A directory of the volume, as the root of many volumes is open to all users, or to root only.
    state = mounts.claim("state", parts.state.name, layout.STATE_DIR, _STATE_IN_VOLUME)
    run = mounts.memory("run", layout.RUN_DIR, "1Mi")
    places = [
        munge_socket(),
        mounts.config_files(SLURM_CONFIG_MAP, SLURM_FILES),
        merged_users(),
        mounts.memory("tmp", layout.TEMPORARY_DIR, "16Mi"),
        run,
        state,
    ]
    key = jwt_key(parts.keys)
    users, users_mounts = users_sidecar(spec, parts.jail.name, writes_tree=True)
    daemon = ContainerArgs(
        name="slurmctld",
        image=spec.images.controller,
        image_pull_policy=spec.images.pull_policy,
        # Not /etc/slurm: `scontrol` in the pod asks slurmctld for the configuration in force, so no probe fails for a
        # new file that is wrong.
        command=[*INIT, *script_of_image("controller", "start-slurmctld"), f"{SLURM_FILES}/slurm.conf"],
        env=[
            EnvVarArgs(name="SLURM_CONF_SERVER", value=f"{layout.CONTROLLER_HOST}:{layout.SLURMCTLD_PORT}"),
            version_of_spec(spec),
            *_state_in_use(spec),
            EnvVarArgs(name="ANSWERS_PORT", value=str(layout.ANSWERS_PORT)),
            EnvVarArgs(name="CONNECTIONS_MAX", value=str(CONNECTIONS)),
            EnvVarArgs(name="ENVIRONMENT_MAX", value=str(spec.slurm.max_environment_kib * 1024)),
            EnvVarArgs(name="HOSTLIST_MAX", value=str(spec.slurm.hosts_in_a_list)),
        ],
        ports=[ContainerPortArgs(name="slurmctld", container_port=layout.SLURMCTLD_PORT)],
        security_context=hardened(uid=layout.SLURM_UID),
        resources=requirements(spec.controller.pod_resources),
        # Recovery of a large state takes minutes.
        startup_probe=connects(layout.ANSWERS_PORT, period=1, failures=600),
        readiness_probe=connects(layout.ANSWERS_PORT, period=2, failures=1),
        # None for liveness: the container's watch (daemon_watch) ends a slurmctld that takes no jobs.
        volume_mounts=[place.in_container() for place in places],
    )
    return Role(
        component="controller",
        daemon=daemon,
        mounts=[*places, *key, *users_mounts],
        scheduling=spec.controller,
        prepare=prepare(spec, spec.images.controller, _PREPARE, [run, state, *key], capabilities=["CHOWN"]),
        sidecars=[users],
        annotations=key_version(spec),
        grace_seconds=60,  # slurmctld saves its state on SIGTERM
    )


def _state_in_use(spec: ClusterSpec) -> list[EnvVarArgs]:
    """Return the variables by which slurmctld's start knows an empty state from a lost one."""
    told = ConfigMapKeySelectorArgs(name=layout.STATE_IN_USE, key=layout.STATE_IN_USE, optional=True)
    accepted = spec.storage.state.accept.get(StateProperty.EMPTIED)
    return [
        EnvVarArgs(name="STATE_IN_USE", value_from=EnvVarSourceArgs(config_map_key_ref=told)),
        *([EnvVarArgs(name=layout.STATE_LOSS_ACCEPTED, value=accepted)] if accepted else []),
    ]
