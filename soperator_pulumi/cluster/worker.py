"""The pods of a node set: slurmd with its rights, volumes and resources.

Jobs leave the worker's own root for the jail before any of their code runs. A second barrier keeps them from running
outside of it, as they find nothing there that they can execute: the image's programs are for root only, and every
volume is mounted so that nothing in it can be executed. The plugin lifts that for a job's view of the jail.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from pulumi_kubernetes.core.v1 import (
    ContainerArgs,
    ContainerPortArgs,
    ExecActionArgs,
    LifecycleArgs,
    LifecycleHandlerArgs,
)

from soperator_pulumi.cluster import mounts
from soperator_pulumi.cluster.container_images import local_images, published_images
from soperator_pulumi.cluster.containers import (
    HEALTH_CONFIG_MAP,
    INIT,
    LAST_WORDS,
    USERS_CONFIG_MAP,
    asks,
    connects,
    give_modes,
    hardened,
    mounting_profile,
    munge_socket,
    prepare,
    requirements,
)
from soperator_pulumi.cluster.identity import account_name, job_token
from soperator_pulumi.cluster.mounts import Mount, spool_mib, temporary_directories, with_submounts, worker_memory_mib
from soperator_pulumi.cluster.pod_template import Parts, Role
from soperator_pulumi.cluster.worker_scripts import start_command, started_command, stop_command
from soperator_pulumi.render import layout
from soperator_pulumi.render.gres import start_arguments
from soperator_pulumi.render.jail import jail_binds
from soperator_pulumi.render.slurm_conf import node_conf
from soperator_pulumi.spec.job_hooks import HooksSpec, has_whole_gpus
from soperator_pulumi.spec.node_set import NCCL_TOPOLOGY_PATH, NETWORKS_ANNOTATION, NodeSetSpec
from soperator_pulumi.spec.submount import SubmountRole
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts

CAPABILITIES = ("SETUID", "SETGID", "CHOWN", "FOWNER", "KILL", "DAC_OVERRIDE")
"""Capabilities of slurmd, found by bisection: to become the user (SETUID, SETGID), hand over batch scripts (CHOWN), for
sbcast (FOWNER) and scancel (KILL), and for PMIx's files in a directory that is the user's already, as well as
directories in a cgroup v1 hierarchy, which have the mode 0555 (DAC_OVERRIDE)."""

JAIL_CAPABILITIES = ("SYS_ADMIN", "SYS_CHROOT", "SETPCAP")
"""Capabilities to move a job into the jail: mounting, changing the root, and giving up these three for good."""

CGROUP_CAPABILITIES = ("SYS_NICE",)
"""Capability to limit jobs to their resources: it binds a task that already runs as the user to its CPUs. Without it
every task fails with `task_g_set_affinity: Operation not permitted` (measured). Pods also have it with
`slurm.constrain: none`, as a change of the setting reaches running slurmds through their configuration, before any pod
is recreated."""

LIMIT_CAPABILITIES = ("SYS_RESOURCE",)
"""Capability to raise a hard limit, for jobs that lock memory: start.sh has it, and takes it from slurmd, its steps and
all jobs for good before slurmd starts. The container's first process keeps it, as do programs executed there."""

_LOG_DIR = "/var/log/slurm"

_LOG_SIZE = "1Gi"
"""Size of the directory for logs. slurmd and its steps log to the container's output, and write nothing there."""

_OWN_DIRECTORIES = (layout.RUN_DIR, layout.SPOOL_DIR, _LOG_DIR)
"""slurmd's own directories, closed to users; other empty directories are open to all users."""


def worker_role(parts: Parts, node_set: NodeSetSpec, owner: str) -> Role:
    """Return the role of a node set's pods.

    Args:
        parts: Parts of the cluster.
        node_set: The node set.
        owner: Stack and component that the cluster belongs to: drains of the pods carry it.
    """
    spec = parts.spec
    guaranteed = node_set.pod_resources is None
    places = with_submounts(_mounts(parts, node_set), spec, SubmountRole.WORKER, node_set.name)
    open_directories = [place for place in places if place.needs_mode and place.path not in _OWN_DIRECTORIES]
    own_directories = [place for place in places if place.path in _OWN_DIRECTORIES]
    return Role(
        component="worker",
        node_set=node_set.name,
        daemon=_slurmd(parts, node_set, owner, places),
        mounts=places,
        scheduling=node_set,
        taints=node_set.taints,
        runtime_class=node_set.runtime_class,
        annotations={NETWORKS_ANNOTATION: ",".join(node_set.networks)} if node_set.networks else {},
        prepare=prepare(
            spec,
            spec.images.worker,
            give_modes(open_directories, own_directories),
            [*open_directories, *own_directories],
            guaranteed=guaranteed,
        ),
        guaranteed=guaranteed,
        grace_seconds=int(node_set.drain.grace.total_seconds()),
        service_account=account_name(node_set, node_set.name),
    )


def _slurmd(parts: Parts, node_set: NodeSetSpec, owner: str, places: Sequence[Mount]) -> ContainerArgs:
    spec = parts.spec
    start = start_command(
        owner,
        node_conf(spec, node_set),
        places,
        [*jail_binds(spec, SubmountRole.WORKER, node_set.name), *_further_binds(parts, node_set)],
        processes=node_set.process_limit,
        lock_memory=node_set.locks_memory,
        containers_mib=spec.containers.writes_mib if spec.containers else None,
        gpus=start_arguments(node_set.gpus, node_set.layout),
        environment=node_set.job_environment,
        verify_new_nodes=spec.health.verify_new_nodes,
    )
    limits = LIMIT_CAPABILITIES if node_set.locks_memory else ()
    capabilities = [*CAPABILITIES, *JAIL_CAPABILITIES, *CGROUP_CAPABILITIES, *limits]
    return ContainerArgs(
        name="slurmd",
        image=spec.images.worker,
        image_pull_policy=spec.images.pull_policy,
        command=[*INIT, *start],
        lifecycle=LifecycleArgs(pre_stop=LifecycleHandlerArgs(exec_=ExecActionArgs(command=stop_command(owner)))),
        ports=[ContainerPortArgs(name="slurmd", container_port=layout.SLURMD_PORT)],
        security_context=hardened(capabilities=capabilities, app_armor=mounting_profile(spec)),
        resources=requirements(node_set.pod_resources or _all_of(node_set), node_set.device_resources),
        startup_probe=asks(*started_command(owner), period=1, failures=300, timeout=10),
        # None for liveness: the container has a watch of its own (slurmd_watch), which no flood of connections stops.
        readiness_probe=connects(layout.ANSWERS_PORT, period=3, failures=4),
        termination_message_path=LAST_WORDS,
        volume_mounts=[place.in_container() for place in places],
    )


def _further_binds(parts: Parts, node_set: NodeSetSpec) -> list[str]:
    places = [layout.JOB_FILES, *(mount.path for mount in published_images(parts))]
    local = [mount.path for mount in local_images(parts.spec, node_set)]
    return [*(f"bind={place}:ro" for place in places), *(f"bind={place}" for place in local)]


def _all_of(node_set: NodeSetSpec) -> PodResources:
    """Return equal requests and limits for everything that Slurm schedules, so that the pod is Guaranteed."""
    amounts = ResourceAmounts(cpu=str(node_set.cpus), memory=f"{node_set.memory_mib}Mi")
    return PodResources(requests=amounts, limits=amounts)


def topology_config_map(node_set: NodeSetSpec) -> str:
    """Return the name of the ConfigMap with a node set's topology for NCCL."""
    return f"nccl-topology-{node_set.name}"


def _mounts(parts: Parts, node_set: NodeSetSpec) -> list[Mount]:
    topology = str(PurePosixPath(NCCL_TOPOLOGY_PATH).parent)
    return [
        munge_socket(),
        mounts.config_files(USERS_CONFIG_MAP, layout.USER_FILES),
        mounts.config_files(HEALTH_CONFIG_MAP, layout.HEALTH_SETTINGS),
        mounts.claim("jail", parts.jail.name, layout.JAIL_DIR),
        mounts.claim("jail", parts.jail.name, layout.HOMES_DIR, layout.HOMES_IN_JAIL),
        *published_images(parts),
        *local_images(parts.spec, node_set),
        *temporary_directories(worker_memory_mib(node_set), shared_memory=True),
        mounts.memory("run", layout.RUN_DIR, "16Mi"),
        mounts.scratch("spool", layout.SPOOL_DIR, f"{spool_mib(node_set)}Mi"),
        mounts.scratch("log", _LOG_DIR, _LOG_SIZE),
        *_gpu_jobs(parts.spec.hooks, node_set),
        *([mounts.config_files(topology_config_map(node_set), topology)] if node_set.nccl_topology else []),
        *job_token(node_set),
    ]


def _gpu_jobs(hooks: HooksSpec | None, node_set: NodeSetSpec) -> list[Mount]:
    """Return the mount of the directory that dcgm-exporter reads. Whichever pod starts first creates it."""
    if hooks is None or hooks.job_mapping is None or not has_whole_gpus(node_set):
        return []
    return [mounts.machine_directory("gpu-jobs", hooks.job_mapping, layout.GPU_JOBS, kind="DirectoryOrCreate")]
