"""Node sets: groups of equal worker pods, which are Slurm nodes."""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, NamedTuple

from pydantic import Field, StrictBool

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.devices import Devices
from soperator_pulumi.spec.drain import DrainSpec, RollingUpdateSpec
from soperator_pulumi.spec.slurm import Constrain
from soperator_pulumi.spec.types.environment import Environment, NcclTopology
from soperator_pulumi.spec.types.int_or_percent import Share
from soperator_pulumi.spec.types.machine_size import NUMBER_OF_MACHINE
from soperator_pulumi.spec.types.names import NetworkName, SlurmName
from soperator_pulumi.spec.types.quantity import MIB_PER_GIB, PodResources
from soperator_pulumi.spec.user_pods import UserPods
from soperator_pulumi.spec.validation.base import Matches, Model, number, whole
from soperator_pulumi.spec.validation.partial import known

_PROCESSES, _PROCESSES_PER_CPU = 4096, 256

_ROOM_SHARE, _LEAST_ROOM_MIB, _MOST_ROOM_MIB, _MOST_ROOM_SHARE = 32, 64, 1024, 4
"""Memory of a pod left for slurmd and what it starts: a 32nd of the memory, from 64 MiB to 1 GiB, and never more than
a quarter. With Slurm 24.11, slurmd and the helpers of its start use 24 MiB (measured, cgroup v2, without jobs); health
checks and hooks need memory as well. slurmstepd counts towards its job."""

MOST_CPUS = 65533
LEAST_GIB, MOST_GIB = 0.125, 1_000_000

FEWEST_PROCESSES = 64
"""Smallest limit of a user's processes: with fewer, no login and no useful job is possible."""

NCCL_TOPOLOGY_VARIABLE = "NCCL_TOPO_FILE"
NCCL_TOPOLOGY_PATH = "/run/slurm/job-files/nccl/topology.xml"
"""Topology file of NCCL in jobs; NCCL finds it by a variable (NCCL's manual, Environment Variables)."""

NETWORKS_ANNOTATION = "k8s.v1.cni.cncf.io/networks"
"""Annotation by which a pod names its secondary networks (Kubernetes Network Custom Resource Definition De-facto
Standard, 4.1)."""

_TRUE = {"yes", "true", "up", "1"}
"""Values that Slurm reads as YES (`s_p_handle_boolean`)."""

JOB_TOKEN_DIR, JOB_TOKEN_FILE = "/run/slurm/job-files/identity", "token"
"""Folder and name of the token in jobs."""

MAX_NAME = 52
"""Length of a label, 63, minus the ten characters and the `-` that Kubernetes appends to a StatefulSet's name."""

_WITH_PODS = {
    "accounting": "slurmdbd's pod has this name",
    "accounting-database": "the pods of mariadb-operator have this name",
    "admin": "the admin shell's pod has this name",
    "controller": "the controller's pods have this name",
    "database": "the database's pod has this name",
    "login": "the login pods have this name",
    "metrics": "the exporter's pod has this name",
    "rest": "the REST API's pods have this name",
}
"""Names of the cluster's own StatefulSets, whose pods would be named like nodes."""

RESERVED = {
    **_WITH_PODS,
    "nodes": "the Service of all Slurm pods has this name",
    "all": "Slurm takes it for every node of the cluster",
}

NodeSetName = Annotated[
    str,
    Matches(
        r"[a-z]([a-z0-9-]*[a-z0-9])?",
        "needs lower case letters, digits and '-', a letter first, no '-' at the end.",
    ),
]


class CpuLayout(NamedTuple):
    """Layout of a machine's CPUs, as Slurm counts them."""

    sockets: int
    cores_per_socket: int
    threads_per_core: int


class JobTokenSpec(Model):
    """A token of the pods' ServiceAccount, which jobs can read."""

    audience: Annotated[str, Matches(r"[!-~]+", 'needs an audience: one word, such as "sts.amazonaws.com".', 253)]
    """Recipient of the token, which refuses tokens for others: `sts.amazonaws.com`, `api://AzureADTokenExchange`, or
    `//iam.googleapis.com/projects/...` for a provider of a workload identity pool."""
    expiration_seconds: Annotated[int, whole(600, 86_400)] = 3600
    """Lifetime of the token in seconds, from ten minutes to a day; the kubelet replaces the file after 80 % of it.
    Default: an hour."""


class NodeSetSpec(UserPods, Devices):
    """Equal worker pods. Pod, host and Slurm node have the same name, `<name>-<ordinal>`."""

    name: NodeSetName
    """Name of the node set, its StatefulSet and its Slurm feature: a DNS label of at most 52 characters."""
    replicas: Annotated[int, whole(0)] = 1
    """Number of nodes. 0 keeps the node set, but without nodes."""
    cpus: Annotated[int, whole(1, MOST_CPUS, why="It is what Slurm schedules on a node."), NUMBER_OF_MACHINE]
    """CPUs of a node that Slurm schedules. In the file of a stack, `all` or `all but 2` of what the machines have for a
    pod, until `soperator preflight FILE --write-sizes` replaces it (docs/placement.md)."""
    sockets: Annotated[int, whole(1, 1024, why="slurmd counts no more (xcpuinfo.c).")] | None = None
    """Sockets of a machine, so that Slurm keeps tasks, their memory, and their GPUs on one: `lscpu` prints them. With
    several NUMA nodes in a socket, give the number of NUMA nodes. Needs `cores_per_socket` and `threads_per_core`;
    their product is `cpus`. Default: every CPU counts as a socket with one core, and tasks may straddle sockets
    (docs/placement.md)."""
    cores_per_socket: Annotated[int, whole(1, 65533)] | None = None
    """Cores of a socket. Default: see `sockets`."""
    threads_per_core: Annotated[int, whole(1, 64)] | None = None
    """CPUs of a core. Slurm gives whole cores to jobs. 1 on a machine with two threads in a core schedules one of them,
    and leaves the other idle. Default: see `sockets`."""
    reserved_cores: Annotated[int, whole(0, 65532)] = 0
    """Cores of a node that no job gets. slurmd runs on them with what it starts outside of jobs: prologs, epilogs, and
    health checks, next to the watch of slurmd. Slurm takes the last core of the last socket, then that of the socket
    before, and so on. Fewer than the node has; needs `slurm.constrain: cgroup`. `cpus` counts them, and the pod has
    their time. Default: none (docs/placement.md)."""
    memory_gib: Annotated[
        float,
        number(LEAST_GIB, MOST_GIB, what="a number of GiB without a unit, such as 2 or 0.5,"),
        NUMBER_OF_MACHINE,
    ]
    """Memory of a node's pod, in GiB, or `all` or `all but 8` as for `cpus`. Slurm schedules less: a 32nd, from 64 MiB
    to 1 GiB but at most a quarter, is left for slurmd, so that jobs within their limits cannot end it. With
    `pod_resources`, Slurm schedules all of it."""
    partitions: tuple[SlurmName, ...] = ("main",)
    """Partitions of the nodes. A partition that is not declared has default settings."""
    features: tuple[SlurmName, ...] = ()
    """Slurm features of the nodes in addition to the node set's name, for `--constraint`."""
    pod_resources: PodResources | None = None
    """CPU and memory of the slurmd container. Default: requests and limits of exactly `cpus` and `memory_gib`, for a
    Guaranteed pod: if a machine runs out of memory, the kernel kills slurmd last."""
    networks: tuple[NetworkName, ...] = ()
    """Networks of the pods in addition to the pod network: names of existing NetworkAttachmentDefinitions, as
    `default/rail-0` if their namespace is not the cluster's. Multus gives a pod an interface per network, starting with
    `net1`. Addresses of nodes in Slurm stay those of the pod network. Default: none."""
    environment: Environment = Field(default_factory=dict)
    """Environment variables of jobs on the nodes, by name, such as settings of NCCL. A variable that a user or a job
    has set keeps its value. Jobs find the list in `/run/slurm/job-files/environment`."""
    job_token: JobTokenSpec | None = None
    """A token of the pods' ServiceAccount for jobs, at `/run/slurm/job-files/identity/token`, to prove to a cloud who
    they are. Every user with a job on the node set reads it, and can act as the ServiceAccount at its audience until it
    expires. Needs `service_account`. Default: none."""
    nccl_topology: NcclTopology | None = None
    """Topology of a node's GPUs and network cards for NCCL: the text of its XML file, which jobs then find through
    `NCCL_TOPO_FILE`. For a file in the jail, set `environment: {NCCL_TOPO_FILE: <path>}` instead. Default: NCCL detects
    the topology."""
    max_processes: Annotated[int, whole(FEWEST_PROCESSES, 4_194_304)] | None = None
    """Processes and threads of a user in jobs on a node (RLIMIT_NPROC; the kernel counts all pods of a machine
    together).
    Default: 256 per CPU, at least 4096."""
    lock_memory: StrictBool | None = None
    """Let jobs lock all their memory (RLIMIT_MEMLOCK), which RDMA needs. The container then starts with the capability
    SYS_RESOURCE, and drops it before slurmd starts. Default: if the nodes have `rdma`."""
    ready_timeout_seconds: Annotated[int, whole(1, 86_400)] = 600
    """Time in seconds for new nodes to join Slurm. Default: 10 minutes, enough for a large image and a new machine in
    most clouds."""
    max_unready: Share = Share(0)
    """Nodes that may be missing after that time: a number, or a percentage of the node set, rounded down. The
    deployment reports them and succeeds. Default: none."""
    wait_until_ready: StrictBool = True
    """Wait for new nodes. If false, pods that first need a machine from an autoscaler do not fail the deployment."""
    drain: DrainSpec = DrainSpec()
    """Drain of nodes before their pods are deleted."""
    rolling_update: RollingUpdateSpec = RollingUpdateSpec()
    """Recreation of nodes whose pods have changed."""

    @property
    def layout(self) -> CpuLayout | None:
        """Sockets, cores, and threads of a machine, or None if they are not declared."""
        if self.sockets is None or self.cores_per_socket is None or self.threads_per_core is None:
            return None
        return CpuLayout(self.sockets, self.cores_per_socket, self.threads_per_core)

    @property
    def cpus_per_core(self) -> int:
        """CPUs of a core, as Slurm counts cores: without a layout, every CPU is one."""
        return self.layout.threads_per_core if self.layout else 1

    @property
    def job_cpus(self) -> int:
        """CPUs of a node without those of reserved cores: what jobs get."""
        return self.cpus - self.reserved_cores * self.cpus_per_core

    @property
    def locks_memory(self) -> bool:
        """True if jobs may lock memory."""
        return self.rdma is not None if self.lock_memory is None else self.lock_memory

    @property
    def job_environment(self) -> dict[str, str]:
        """Variables that jobs get, unless they have set their own values."""
        topology = {} if self.nccl_topology is None else {NCCL_TOPOLOGY_VARIABLE: NCCL_TOPOLOGY_PATH}
        return {**self.environment, **topology}

    @property
    def process_limit(self) -> int:
        """Number of processes and threads of a user on a node."""
        if self.max_processes is not None:
            return self.max_processes
        return max(_PROCESSES, self.cpus * _PROCESSES_PER_CPU)

    @property
    def memory_mib(self) -> int:
        """Memory of a node, in MiB."""
        return int(self.memory_gib * MIB_PER_GIB)

    @property
    def scheduled_memory_mib(self) -> int:
        """Memory of a node that Slurm schedules, in MiB."""
        if self.pod_resources is not None:
            return self.memory_mib
        room = min(max(self.memory_mib // _ROOM_SHARE, _LEAST_ROOM_MIB), _MOST_ROOM_MIB)
        return self.memory_mib - min(room, self.memory_mib // _MOST_ROOM_SHARE)


def problems(node_sets: tuple[NodeSetSpec, ...], max_nodes: int) -> Iterator[Problem]:
    """Yield problems between node sets."""
    first_with: dict[str, int] = {}
    for index, node_set in enumerate(node_sets):
        path = f"node_sets[{index}]"
        if not known(node_set.name):
            continue
        yield from _name_problems(node_set.name, f"{path}.name")
        if node_set.name in first_with:
            yield Problem(
                f"{path}.name",
                f'"{node_set.name}" is also the name of node_sets[{first_with[node_set.name]}]. '
                "Node sets need distinct names.",
            )
        first_with.setdefault(node_set.name, index)
    for index, node_set in enumerate(node_sets):
        yield from _clashes_with_others(node_set, f"node_sets[{index}]", first_with)
    yield from _too_many(node_sets, max_nodes)


def layout_problems(node_sets: tuple[NodeSetSpec, ...]) -> Iterator[Problem]:
    """Yield CPU layouts that are incomplete, do not match `cpus`, or lack a socket of a GPU."""
    for index, node_set in enumerate(node_sets):
        path = f"node_sets[{index}]"
        parts = {name: getattr(node_set, name) for name in CpuLayout._fields}
        if not known(*parts.values()):
            continue
        given = [name for name, value in parts.items() if value is not None]
        for name in [name for name in parts if given and name not in given]:
            yield Problem(
                f"{path}.{name}",
                f"missing: Slurm needs {', '.join(CpuLayout._fields)} together, and only {', '.join(given)} is given. "
                f"Add it, as `lscpu` on the machine prints it, or remove {', '.join(given)}.",
            )
        layout = node_set.layout
        if layout and known(node_set.cpus) and math.prod(layout) != node_set.cpus:
            yield Problem(
                f"{path}.cpus",
                f"got {node_set.cpus}, but {' * '.join(CpuLayout._fields)} is {' * '.join(map(str, layout))} = "
                f"{math.prod(layout)}. Make them equal. Leave CPUs to the machine's daemons by pod_resources.",
            )
        if known(node_set.gpus) and node_set.gpus and known(node_set.gpus.sockets) and node_set.gpus.sockets:
            yield from _sockets_of_gpus(node_set.gpus.sockets, layout, f"{path}.gpus.sockets")


def reserved_core_problems(
    node_sets: tuple[NodeSetSpec, ...], constrain: Constrain, extra: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield reserved cores that leave none for jobs, or that jobs would use anyway."""
    allowed = known(extra) and extra.get("AllowSpecResourcesUsage", "").lower() in _TRUE
    for index, node_set in enumerate(node_sets):
        path, reserved = f"node_sets[{index}].reserved_cores", node_set.reserved_cores
        parts = (node_set.sockets, node_set.cores_per_socket, node_set.threads_per_core)
        if not known(reserved, node_set.cpus, *parts) or not reserved:
            continue
        cores = node_set.cpus // node_set.cpus_per_core
        if reserved >= cores:
            text = f"got {reserved}, which leaves no core for jobs: a node has {cores} in all. Lower it."
            yield Problem(path, text)
        if known(constrain) and constrain is not Constrain.CGROUP:
            yield Problem(
                path,
                f"got {reserved}, but with slurm.constrain: {constrain} Slurm binds no job to CPUs, and jobs would use "
                "these cores. Set slurm.constrain: cgroup, or remove this.",
            )
        if allowed:
            yield Problem(
                path,
                f"got {reserved}, but with slurm.extra.AllowSpecResourcesUsage any user takes these cores by "
                "--core-spec. Remove that parameter, or this.",
            )


def _sockets_of_gpus(sockets: tuple[int, ...], layout: CpuLayout | None, path: str) -> Iterator[Problem]:
    if layout is None:
        names = ", ".join(CpuLayout._fields)
        yield Problem(path, f"needs the layout of the machine's CPUs. Add {names} to the node set, or remove this.")
    elif known(*sockets) and max(sockets) >= layout.sockets:
        yield Problem(
            path,
            f"got socket {max(sockets)}, but the node set has {layout.sockets}, counted from 0. Lower it to at most "
            f"{layout.sockets - 1}.",
        )


def environment_problems(node_sets: tuple[NodeSetSpec, ...]) -> Iterator[Problem]:
    """Yield job variables and pod annotations that another part of the cluster sets as well."""
    for index, node_set in enumerate(node_sets):
        if known(node_set.networks, node_set.annotations) and node_set.networks:
            key = f"node_sets[{index}].annotations.{NETWORKS_ANNOTATION}"
            if NETWORKS_ANNOTATION in node_set.annotations:
                yield Problem(key, "networks sets it as well. Remove one.")
        if not known(node_set.environment, node_set.nccl_topology):
            continue
        path = f"node_sets[{index}].environment"
        if node_set.nccl_topology is not None and NCCL_TOPOLOGY_VARIABLE in node_set.environment:
            yield Problem(f"{path}.{NCCL_TOPOLOGY_VARIABLE}", "nccl_topology sets it as well. Remove one.")


def token_problems(node_sets: tuple[NodeSetSpec, ...]) -> Iterator[Problem]:
    """Yield job tokens that would belong to another ServiceAccount, or give access to the Kubernetes API."""
    for index, node_set in enumerate(node_sets):
        token, path = node_set.job_token, f"node_sets[{index}].job_token"
        if not known(token) or token is None:
            continue
        if known(node_set.service_account) and node_set.service_account is None:
            yield Problem(path, "needs a ServiceAccount of the node set's own. Add service_account, or remove this.")
        if known(token.audience) and "kubernetes.default.svc" in token.audience:
            yield Problem(
                f"{path}.audience",
                f'got "{token.audience}", the Kubernetes API: every user could call it. Name the cloud\'s service.',
            )


def _name_problems(name: str, path: str) -> Iterator[Problem]:
    if len(name) > MAX_NAME:
        yield Problem(
            path,
            f'got "{name}", {len(name)} characters long; at most {MAX_NAME} are allowed, as Kubernetes labels the pods '
            "with the name, a '-' and ten more characters, and a label has 63. Shorten it.",
        )
    if name in RESERVED:
        yield Problem(path, f'got "{name}", which is reserved: {RESERVED[name]}. Choose another name.')
    owner, _, ordinal = name.rpartition("-")
    if owner in _WITH_PODS and ordinal.isdecimal():
        yield Problem(path, f'got "{name}", which is the name of a {owner} pod. Choose another name.')


def _clashes_with_others(node_set: NodeSetSpec, path: str, first_with: dict[str, int]) -> Iterator[Problem]:
    """Yield names that are also nodes of another node set, and features that would move nodes into another one."""
    if known(node_set.name):
        base, _, ordinal = node_set.name.rpartition("-")
        if ordinal.isdecimal() and base in first_with:
            yield Problem(
                f"{path}.name",
                f'got "{node_set.name}", which is also a node of node_sets[{first_with[base]}] ("{base}"): '
                "Slurm needs distinct names of node sets and nodes. Choose another name.",
            )
    for position, feature in enumerate(node_set.features):
        if known(feature) and feature in first_with:
            yield Problem(
                f"{path}.features[{position}]",
                f'got "{feature}", the name of node_sets[{first_with[feature]}]: Slurm would take '
                "these nodes for nodes of that set. Choose another feature.",
            )
    for field, values in (("partitions", node_set.partitions), ("features", node_set.features)):
        ordered = sorted((value, position) for position, value in enumerate(values))
        for (value, _), (again, position) in pairwise(ordered):
            if value == again:
                yield Problem(f"{path}.{field}[{position}]", f'"{again}" is listed twice. Remove one.')
    if known(node_set.partitions) and not node_set.partitions:
        yield Problem(f"{path}.partitions", "empty: no job could reach these nodes. Name at least one partition.")


def _too_many(node_sets: tuple[NodeSetSpec, ...], max_nodes: int) -> Iterator[Problem]:
    counts = [node_set.replicas for node_set in node_sets]
    if known(max_nodes, *counts) and sum(counts) > max_nodes:
        yield Problem(
            "node_sets",
            f"{sum(counts)} nodes in all, but slurm.max_nodes is {max_nodes}. "
            "Lower the replicas or raise slurm.max_nodes.",
        )
