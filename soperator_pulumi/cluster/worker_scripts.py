"""Commands of a worker's container: scripts of its image (`images/worker/scripts`) with their arguments."""

from collections.abc import Mapping, Sequence

from soperator_pulumi.cluster.containers import script_of_image
from soperator_pulumi.cluster.mounts import Mount
from soperator_pulumi.render import layout
from soperator_pulumi.slurm.drain.reason import SET_BY_RUNS, Marker, Operation

CGROUPS = "/sys/fs/cgroup"
"""A worker container's own cgroup."""

NEWCOMER_SECONDS = 120
"""Time that a new node stays drained unless a run admits it: from a run's last look until the pod is deleted.
Kubernetes' controller removes a thousand pods in less than a minute (20 calls a second)."""

_SWEPT = (layout.TEMPORARY_DIR, layout.SHARED_MEMORY_DIR)


def start_command(
    owner: str,
    conf: str,
    places: Sequence[Mount],
    binds: Sequence[str],
    *,
    processes: int,
    lock_memory: bool,
    containers_mib: int | None = None,
    gpus: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    verify_new_nodes: bool = False,
) -> list[str]:
    """Return the command that starts slurmd.

    Args:
        owner: Stack and component that the cluster belongs to.
        conf: The record with which the node registers.
        places: The volumes.
        binds: Directories of the container that jobs see, as arguments of the plugin.
        processes: Number of processes that a user may have. Jobs inherit it; slurmd and its steps are root's.
        lock_memory: True if jobs may lock memory without a limit; the container has SYS_RESOURCE until slurmd starts.
        containers_mib: Memory in MiB for what a task changes in its container. Default: jobs may have no containers.
        gpus: GPUs that the pod must have, as arguments of start.sh.
        environment: Variables of jobs. Default: none.
        verify_new_nodes: True if a new node stays drained until long checks have passed.
    """
    return [
        *script_of_image("worker", "start.sh"),
        f"controller={layout.CONTROLLER_HOST}:{layout.SLURMCTLD_PORT}",
        f"conf={conf}",
        *(f"volume={place.path}{':ro' if place.read_only else ''}" for place in places),
        *binds,
        # A directory of a claim or of the machine may be in use elsewhere.
        *(f"own={place.path}" for place in places if place.path in _SWEPT and place.source.empty_dir is not None),
        f"processes={processes}",
        f"pod_start={Marker(owner, Operation.POD_START)}",
        *([f"not_verified={layout.NOT_VERIFIED}"] if verify_new_nodes else []),
        f"newcomer_seconds={NEWCOMER_SECONDS}",
        f"ours={_reasons(owner)}{f'|{layout.NOT_VERIFIED}(, .*)?' if verify_new_nodes else ''}",
        *([f"containers={containers_mib}"] if containers_mib else []),
        *gpus,
        # Kubernetes replaces $(NAME) in a command, and takes $$ for $.
        *(f"environment={name}={value.replace('$', '$$')}" for name, value in sorted((environment or {}).items())),
        *(["lock_memory"] if lock_memory else []),
    ]


def started_command(owner: str) -> list[str]:
    """Return the startup probe: slurmd answers, and the drains of the pod's own scripts are undone."""
    return [
        f"{layout.IMAGE_SCRIPTS}/started.sh",
        str(Marker(owner, Operation.POD_STOP)),
        str(Marker(owner, Operation.POD_START)),
    ]


def stop_command(owner: str) -> list[str]:
    """Return the preStop command: it drains the node."""
    return [f"{layout.IMAGE_SCRIPTS}/drain_on_stop.sh", str(Marker(owner, Operation.POD_STOP))]


def _reasons(owner: str) -> str:
    """Return the reasons of drains that a recreated pod ends, as an extended regular expression."""
    prefix = str(Marker(owner, Operation.POD_STOP)).removesuffix(Operation.POD_STOP).replace(".", "[.]")
    of_pods = "|".join(operation for operation in Operation if operation.of_a_pod)
    of_runs = "|".join(sorted(SET_BY_RUNS))
    return f"{prefix}({of_pods}|({of_runs}) [0-9a-f]{{6}}( [(]was: .*[)])?)"
