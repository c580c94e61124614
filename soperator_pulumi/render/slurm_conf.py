"""slurm.conf: configless, with dynamic nodes, which NodeSets find by feature.

No line depends on the number of nodes, so scaling changes no file.
"""

from collections.abc import Mapping
from itertools import count

from soperator_pulumi.render import layout
from soperator_pulumi.render.communication import communication_lines, token_lines
from soperator_pulumi.render.gres import gres_types, job_defaults
from soperator_pulumi.render.job_hooks import hook_flags, hook_parameters
from soperator_pulumi.render.layout import HEADER, lines
from soperator_pulumi.render.node_health import health_parameters
from soperator_pulumi.render.slurmdbd_conf import QUEUED_MESSAGES, accounting_lines
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.node_set import NodeSetSpec
from soperator_pulumi.spec.partition import PartitionSpec
from soperator_pulumi.spec.slurm import Constrain
from soperator_pulumi.spec.types.quantity import MIB, amount

_CONNECTIONS = "conmgr_max_connections=4096"
"""Connections that slurmctld handles at once, by default 50, before it accepts no more. 24.11 does not end silent ones.
"""

_MERGED = {
    "SlurmctldParameters": f"enable_configless,{_CONNECTIONS}",
    "SlurmdParameters": "",
    "JobSubmitPlugins": "lua",
}
"""Comma-separated lists that contain an entry of the package; the user's entries are added."""

_CONSTRAIN = {
    Constrain.CGROUP: {
        "ProctrackType": "proctrack/cgroup",
        "TaskPlugin": "task/cgroup,task/affinity",
        "JobAcctGatherType": "jobacct_gather/cgroup",
    },
    Constrain.NONE: {
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/linux",
    },
}

DEFAULTS: Mapping[str, tuple[str, str]] = {
    "ReturnToService": ("2", "a worker pod that comes back, with whatever address, takes jobs again at once"),
    "SlurmdTimeout": (
        "120",
        "a replaced pod is back in 2 to 4 s; longer, a lost machine's jobs would be shown as running for as long",
    ),
    "MessageTimeout": ("30", "a look-up on a dead name server takes 10 s, Slurm's own default"),
    "KillWait": ("30", "seconds between SIGTERM and SIGKILL at the time limit"),
    "UnkillableStepTimeout": ("180", "at least 5 times MessageTimeout, else nodes are drained for nothing"),
    "EnforcePartLimits": ("ALL", "a job that can never run is refused when it is submitted"),
    "PropagateResourceLimits": ("NONE", "the limits of a login pod are not those of workers"),
    "SelectTypeParameters": ("CR_Core_Memory", "cores and memory are what jobs get"),
    "MailProg": (
        "/usr/bin/true",
        "the images have no mail program, and slurmctld logs an error for one that is missing",
    ),
}
"""Defaults that differ from Slurm's or need a reason, with the reason. `slurm.extra` replaces them."""

MPI: Mapping[str, str] = {"24.11": "pmix", "26.05": "pmi2"}
"""Plugin, by version, with which srun starts all ranks of an MPI program. Debian's 26.05 has no pmix."""

_USUAL_TREE_WIDTH = 16
"""Slurm's own TreeWidth, with which a message reaches 4368 nodes by three hops (slurm.conf(5))."""

_QUEUE = "records of some 20,000 jobs wait for a slurmdbd that is down; beyond, slurmctld discards records"


def slurm_conf(spec: ClusterSpec) -> str:
    """Return slurm.conf."""
    extra = dict(spec.slurm.extra)
    merged = _merged(spec, extra)
    mpi = (MPI[spec.slurm.version], "srun ./program is one MPI program of all tasks; with none, each would be alone")
    queue = {"MaxDBDMsgs": (str(QUEUED_MESSAGES), _QUEUE)} if spec.accounting else {}
    defaults = [
        line
        for name, (value, reason) in {**DEFAULTS, "MpiDefault": mpi, **queue, **_tree(spec.slurm.max_nodes)}.items()
        if name not in extra
        for line in (f"# {reason}", f"{name}={value}")
    ]
    return lines(
        HEADER,
        *_fixed(spec, merged),
        "",
        *defaults,
        *(["", "# slurm.extra"] if extra else []),
        *(f"{name}={quoted(extra[name])}" for name in sorted(extra)),
        "",
        "# Nodes register themselves, with the name of their node set as a feature.",
        f"MaxNodeCount={spec.slurm.max_nodes}",
        *(f"NodeSet={node_set.name} Feature={node_set.name}" for node_set in spec.node_sets),
        "",
        *(_partition(partition, spec.node_sets) for partition in spec.all_partitions),
    )


def _tree(nodes: int) -> dict[str, tuple[str, str]]:
    """Return the smallest TreeWidth with which slurmctld reaches all nodes by three hops, if Slurm's own is smaller.

    The cube root of the number of nodes is what Slurm's Large Cluster Administration Guide recommends.
    """
    width = next(width for width in count(_USUAL_TREE_WIDTH) if width + width**2 + width**3 >= nodes)
    if width == _USUAL_TREE_WIDTH:
        return {}
    return {"TreeWidth": (str(width), f"messages reach {nodes} nodes by three hops: a hop that hangs delays the rest")}


def node_conf(spec: ClusterSpec, node_set: NodeSetSpec) -> str:
    """Return the registration of a node set's nodes: the value of slurmd's `--conf`."""
    if node_set not in spec.node_sets:
        raise ValueError(f"{node_set.name} is not a node set of {spec.name}")
    features = ",".join((node_set.name, *node_set.features))
    gres = f" Gres={node_set.gpus.gres}" if node_set.gpus else ""
    reserved = f" CoreSpecCount={node_set.reserved_cores}" if node_set.reserved_cores else ""
    cpus = f"CPUs={node_set.cpus}{_layout(node_set)}{reserved}"
    return f"Feature={features} {cpus} RealMemory={node_set.scheduled_memory_mib}{gres}"


def _layout(node_set: NodeSetSpec) -> str:
    """Return the sockets, cores and threads of a registration. Without them, every CPU is a socket for Slurm."""
    if node_set.layout is None:
        return ""
    sockets, cores, threads = node_set.layout
    return f" Sockets={sockets} CoresPerSocket={cores} ThreadsPerCore={threads}"


def quoted(value: str) -> str:
    """Return a value in the form of slurm.conf: in quotes if it has a blank."""
    return f'"{value}"' if " " in value else value


def _fixed(spec: ClusterSpec, merged: Mapping[str, str]) -> list[str]:
    settings = {
        "ClusterName": spec.name,
        "SlurmctldHost": layout.CONTROLLER_HOST,
        "SlurmctldPort": str(layout.SLURMCTLD_PORT),
        "SlurmdPort": str(layout.SLURMD_PORT),
        "SrunPortRange": "{}-{}".format(*layout.SRUN_PORTS),
        "SlurmUser": "slurm",
        "AuthType": "auth/munge",
        "CredType": "cred/munge",
        **token_lines(spec.rest, layout.RUN_DIR),
        **merged,
        "StateSaveLocation": layout.STATE_DIR,
        "SlurmdSpoolDir": layout.SPOOL_DIR,
        "SlurmctldPidFile": f"{layout.RUN_DIR}/slurmctld.pid",
        "SlurmdPidFile": f"{layout.RUN_DIR}/slurmd.pid",
        "DisableRootJobs": "YES",
        **accounting_lines(spec),
        "SelectType": "select/cons_tres",
        **_CONSTRAIN[spec.slurm.constrain],
        **health_parameters(spec.health),
        **hook_parameters(spec),
        **({"GresTypes": ",".join(kinds)} if (kinds := gres_types(spec)) else {}),
    }
    return [f"{name}={value}" for name, value in settings.items()]


def _merged(spec: ClusterSpec, extra: dict[str, str]) -> dict[str, str]:
    """Return the lists with entries of the package, and remove them from `extra`."""
    ours = {**_MERGED, **hook_flags(spec), **communication_lines(spec)}
    sizes = {"max_script_size": spec.slurm.max_script_kib, "max_submit_line_size": spec.slurm.max_arguments_kib}
    bounds = [f"{name}={kib * 1024}" for name, kib in sizes.items()]
    ours["SchedulerParameters"] = ",".join(filter(None, [ours.get("SchedulerParameters"), *bounds]))
    if any(_is_smaller(node_set) for node_set in spec.node_sets):
        # Slurm schedules by the spec. The machine may be smaller.
        ours["SlurmdParameters"] = "config_overrides"
    every = {name: [*own.split(","), *extra.pop(name, "").split(",")] for name, own in ours.items()}
    return {name: ",".join(filter(None, dict.fromkeys(entries))) for name, entries in every.items() if any(entries)}


def _is_smaller(node_set: NodeSetSpec) -> bool:
    """Return True if the machines of a set may have less than Slurm schedules on them.

    A pod's requests are what its machine has at least. A layout is the machine's own, with CPUs that no pod requests.
    """
    if node_set.pod_resources is None:
        return False
    asked = node_set.pod_resources.requests
    cpu, memory = amount(asked.cpu or "0"), amount(asked.memory or "0")
    return (node_set.layout is None and cpu < node_set.cpus) or memory < node_set.memory_mib * MIB


def _partition(partition: PartitionSpec, node_sets: tuple[NodeSetSpec, ...]) -> str:
    """Return a partition's line."""
    members = [node_set for node_set in node_sets if partition.name in node_set.partitions]
    options = {
        "Nodes": ",".join(node_set.name for node_set in members),
        "Default": "YES" if partition.default else "NO",
        "State": "UP",
        "MaxTime": "INFINITE",
        **_shares(partition, members),
        **partition.options,
    }
    return " ".join(
        [f"PartitionName={partition.name}", *(f"{name}={quoted(value)}" for name, value in options.items())]
    )


def _shares(partition: PartitionSpec, members: list[NodeSetSpec]) -> dict[str, str]:
    """Return the shares of a node for jobs that request none: by GPU, else by CPU. Without them a job gets all memory.

    One setting of memory in the partition's options replaces all of the package's.
    """
    by_cpu = min(max(1, node_set.scheduled_memory_mib // node_set.job_cpus) for node_set in members)
    shares = {"DefMemPerCPU": str(by_cpu), **job_defaults(members)}
    if partition.options.keys() & {"DefMemPerCPU", "DefMemPerNode", "DefMemPerGPU"}:
        return {name: value for name, value in shares.items() if not name.startswith("DefMem")}
    return shares
