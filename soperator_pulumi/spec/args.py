"""Descriptions of a cluster and of a platform as typed dictionaries.

They are for editors, type checkers, and the schema of other languages. `make docs` writes this module from the models
next to it, which check the values. A value that may be an Output is a `pulumi.Input` here and a `Maybe` there. A value
that is one of several words is annotated with them.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pulumi

from soperator_pulumi.spec.accounting import Enforce, StoredPart, UnknownUsers
from soperator_pulumi.spec.drain import NotRequeueable, OnTimeout, Reaction
from soperator_pulumi.spec.health_checks import HealthAction, NodeUse, UndrainRule
from soperator_pulumi.spec.images import PullPolicy
from soperator_pulumi.spec.jail import Changes
from soperator_pulumi.spec.job_hooks import HookAction
from soperator_pulumi.spec.login import ServiceType
from soperator_pulumi.spec.node_health import HealthCheckNodeState
from soperator_pulumi.spec.platform.cilium import CiliumMode
from soperator_pulumi.spec.platform.gpu_operator import DriverSource, MigStrategy
from soperator_pulumi.spec.platform.network_operator import NetworkKind
from soperator_pulumi.spec.platform.platform_spec import KubernetesKind
from soperator_pulumi.spec.platform.storage_systems import StorageSystem
from soperator_pulumi.spec.scheduling import TaintEffect, TolerationOperator
from soperator_pulumi.spec.slurm import Constrain
from soperator_pulumi.spec.submount import SubmountRole
from soperator_pulumi.spec.user_pods import Unsatisfiable


class SlurmArgs(TypedDict, total=False):
    """Settings of Slurm for the whole cluster."""

    version: Annotated[str, Literal["24.11", "26.05"]]
    """Version of Slurm in the images. A later version upgrades a running cluster; an earlier one is refused then. Only
    `24.11`, `26.05`. Default: 24.11."""
    constrain: Annotated[str, Constrain]
    """Enforcement of jobs' CPU and memory limits. Default: by cgroups; workers do not start on machines without them.
    One of `cgroup`, `none`."""
    max_nodes: int
    """Nodes that the cluster may grow to without a change of slurm.conf. Default: 4096. Every node uses memory of
    slurmctld."""
    max_jobs_per_user: int
    """Waiting and running jobs that a user may have at a time; tasks of an array count. Default: 5000, half of Slurm's
    MaxJobCount, so that no single user prevents others from submitting."""
    max_script_kib: int
    """Size of a batch job's script in KiB. Default: 256. With `max_environment_kib` and `max_jobs_per_user`, one user
    fills at most 4 GiB of `storage.state`."""
    max_environment_kib: int
    """Size of a batch job's environment in KiB, as a program gets it. Default: 512, a quarter of what Linux gives a
    program."""
    max_arguments_kib: int
    """Size in KiB of a batch job's arguments, of its variables for plugins (SPANK), and of the command line that
    submits a job or starts a step. slurmctld keeps them in memory. At most `max_environment_kib` counts. Default:
    128."""
    extra: Mapping[str, str | float]
    """Further parameters of slurm.conf, checked against Slurm's own. They replace this project's defaults. Parameters
    on which the cluster is built are refused."""


class TolerationArgs(TypedDict, total=False):
    """A taint of machines that the pods tolerate, as in a pod's `tolerations`."""

    key: str
    """The taint's key. Without it, and with operator Exists: every taint."""
    operator: Annotated[str, TolerationOperator]
    """Comparison of key and value. One of `Equal`, `Exists`. Default: Equal."""
    value: str
    """The taint's value, with operator Equal."""
    effect: Annotated[str, TaintEffect]
    """The taint's effect. Without it: every effect. One of `NoSchedule`, `PreferNoSchedule`, `NoExecute`."""
    toleration_seconds: int
    """Seconds that a pod stays after a NoExecute taint appears. Without it: for ever."""


class ScheduledArgs(TypedDict, total=False):
    """Placement and priority of every role's pods."""

    node_selector: Mapping[str, str]
    """Required labels of a machine. Default: any machine."""
    tolerations: Sequence[TolerationArgs]
    """Taints that the pods tolerate. Default: none."""
    affinity: Mapping[str, Any]
    """A pod's `affinity` as in a Kubernetes manifest, with keys in camelCase. Default: the role's own."""
    priority_class: str
    """Name of an existing PriorityClass. Default: the cluster's own default priority."""


class ResourceAmountsArgs(TypedDict, total=False):
    """Amounts of a container's resources."""

    cpu: str | float
    """CPUs. Default: no request, or no limit."""
    memory: str
    """Memory. Default: no request, or no limit."""


class PodResourcesArgs(TypedDict, total=False):
    """Requests and limits of a pod's main container."""

    requests: ResourceAmountsArgs
    """Amounts that the scheduler reserves for the pod."""
    limits: ResourceAmountsArgs
    """Amounts beyond which CPU is throttled, and the container is killed for memory."""


class ControllerArgs(ScheduledArgs, total=False):
    """The pod that runs slurmctld."""

    pod_resources: PodResourcesArgs
    """Resources of the slurmctld container. Default: half a CPU and 1 GiB, at most 4 GiB of memory, and no CPU limit: a
    throttled controller delays every job."""


class TopologySpreadArgs(TypedDict):
    """A constraint of a pod's `topologySpreadConstraints`, which counts the role's own pods."""

    topology_key: str
    """Label of machines whose values are the places, such as `topology.kubernetes.io/zone`."""
    max_skew: NotRequired[int]
    """Largest difference in pods between two places. Default: 1."""
    when_unsatisfiable: NotRequired[Annotated[str, Unsatisfiable]]
    """`ScheduleAnyway`: prefer an even spread. `DoNotSchedule`: leave a pod pending rather than uneven. Default:
    ScheduleAnyway."""


class HostAliasArgs(TypedDict):
    """Names for an address in `/etc/hosts` of pods, sessions and jobs."""

    ip: str
    """The address."""
    hostnames: Sequence[str]
    """Names of the address."""


class ServiceAccountArgs(TypedDict, total=False):
    """ServiceAccount of the pods, for the identity that a cloud gives them. It has no rights in Kubernetes."""

    name: str
    """Name of the ServiceAccount, as policies of the cloud have it. Default: the node set's name, or `login`."""
    create: bool
    """Create it. If false, it must exist in the namespace. Default: true."""
    annotations: Mapping[str, str]
    """Annotations of the created ServiceAccount that name the cloud's identity, such as `eks.amazonaws.com/role-arn`,
    `iam.gke.io/gcp-service-account` or `azure.workload.identity/client-id`."""


class UserPodsArgs(ScheduledArgs, total=False):
    """Pods in which users work."""

    labels: Mapping[str, str]
    """Further labels of the pods, in addition to the cluster's `labels`. A changed value recreates the pods."""
    annotations: Mapping[str, str]
    """Further annotations of the pods, in addition to the cluster's `annotations`. A changed value recreates the
    pods."""
    topology_spread: Sequence[TopologySpreadArgs]
    """Spread of the pods over zones, racks or machines. Default: none."""
    host_aliases: Sequence[HostAliasArgs]
    """Further lines of `/etc/hosts` in pods, sessions and jobs. Default: none."""
    service_account: ServiceAccountArgs
    """ServiceAccount of the pods, for cloud identities. Default: the namespace's own, without a token."""


class LoginPodsArgs(UserPodsArgs, total=False):
    """Equal pods that run sshd, behind one Service."""

    replicas: int
    """Number of login pods, all with the same host key. 0 refuses all logins. Default: 1."""
    groups: Sequence[str]
    """Groups whose members may log in here, all in the `groups` of the cluster. A changed list recreates the pods;
    changed members do not. Default: all users."""
    service: Annotated[str, ServiceType]
    """Access to ssh. Default: from inside the Kubernetes cluster only. One of `ClusterIP`, `NodePort`,
    `LoadBalancer`."""
    service_annotations: Mapping[str, str]
    """Annotations of the login Service, for the platform's load balancers."""
    load_balancer_class: str
    """Class of the Service's load balancer, such as `service.k8s.aws/nlb`. Kubernetes changes it on no existing
    LoadBalancer: for another one, set `service` to ClusterIP in an `up` between. Default: that of the platform."""
    node_port: int
    """Port of ssh on every machine, in the range of the Kubernetes (30000 to 32767 by default). Needs NodePort or
    LoadBalancer. Default: a port that Kubernetes chooses."""
    allowed_sources: Sequence[str]
    """Addresses that may connect to sshd. Default: only `kubectl port-forward`. NodePort and LoadBalancer need at least
    one address; `0.0.0.0/0` admits all."""
    max_processes: int
    """Processes and threads of a user in sessions on a login node (RLIMIT_NPROC). The kernel counts all pods of a
    machine together: if login nodes and workers share machines, set more than the node sets' `max_processes`, or users
    with large jobs there cannot log in. Default: 2048."""
    termination_grace: str
    """Time for the sessions of a login pod that is deleted, evicted, or replaced (`terminationGracePeriodSeconds`).
    Users see on their terminals how much is left. The pod ends once no user has a process on it. A deployment that
    replaces login pods waits as long, one pod after the other. A changed value recreates the pods. Default: 30
    seconds."""
    pod_resources: PodResourcesArgs
    """Resources of the sshd container, for all its sessions. Default: half a CPU and 1 GiB, at most 8 GiB of memory."""


class LoginArgs(LoginPodsArgs, total=False):
    """The pods that run sshd."""

    docs: str
    """Address of the documentation for users, shown at login. Default: Slurm's own."""
    pools: Mapping[str, LoginPodsArgs]
    """Further login nodes, by the pool's name, such as `gpu`: their pods are `login-gpu-<ordinal>`, behind the Service
    `login-gpu`. They take no setting from the others. Default: none."""


class GpusArgs(TypedDict, total=False):
    """GPUs of a node set's nodes. The pods request them; Slurm schedules them as the GRES `gpu`."""

    count: int
    """Whole GPUs of a node. Default: none, for nodes with only MIG instances."""
    type: str
    """Slurm's type of the whole GPUs, such as `h100`, for `--gpus=h100:2`. Default: none; users give only a number."""
    resource: str
    """Extended resource of one whole GPU, as its device plugin names it: of `nvidia.com/` or `amd.com/`. Default:
    nvidia.com/gpu."""
    mig: Mapping[str, int]
    """MIG instances of a node by profile, such as `1g.10gb: 7`. They are resources of the device plugin's strategy
    `mixed` (`nvidia.com/mig-1g.10gb`), and types of GPUs in Slurm: `--gpus=1g.10gb:1`."""
    shards_per_gpu: int
    """Jobs that may share a whole GPU by `--gres=shard:1`, without any isolation between them. Default: none."""
    sockets: Sequence[int]
    """Socket that every whole GPU is attached to, counted from 0, in the order of the device files, such as `[0, 0, 0,
    0, 1, 1, 1, 1]`. Set it if the machine hides it, as some virtual machines do. Needs `sockets` of the node set.
    Default: read from the machine when a pod starts (docs/placement.md)."""


class RdmaArgs(TypedDict):
    """RDMA devices of a node set's nodes: InfiniBand, RoCE or EFA."""

    resource: str
    """Extended resource, as its device plugin names it: `rdma/hca_shared_devices_a`, `nvidia.com/hostdev`,
    `vpc.amazonaws.com/efa`."""
    count: NotRequired[int]
    """Number of the resource that every pod requests. Default: one."""


class DevicesArgs(TypedDict, total=False):
    """Devices of a node set's nodes, and the runtime that provides them in pods."""

    gpus: GpusArgs
    """GPUs. Default: none."""
    rdma: RdmaArgs
    """RDMA devices. Jobs may then lock memory. Default: none."""
    extra_resources: Mapping[str, int]
    """Further extended resources of a pod and their numbers. Slurm does not schedule them: all jobs of a node share
    them."""
    runtime_class: str
    """Name of an existing RuntimeClass, such as `nvidia`, if the machines' default runtime adds no driver. Default: the
    machines' default runtime."""
    huge_pages: Mapping[str, str]
    """Huge pages of a pod by their size, such as `2Mi: 4Gi`. All jobs of a node share them."""


class JobTokenArgs(TypedDict):
    """A token of the pods' ServiceAccount, which jobs can read."""

    audience: str
    """Recipient of the token, which refuses tokens for others: `sts.amazonaws.com`, `api://AzureADTokenExchange`, or
    `//iam.googleapis.com/projects/...` for a provider of a workload identity pool."""
    expiration_seconds: NotRequired[int]
    """Lifetime of the token in seconds, from ten minutes to a day; the kubelet replaces the file after 80 % of it.
    Default: an hour."""


class DrainArgs(TypedDict, total=False):
    """Drain of nodes before their pods are deleted."""

    timeout: str
    """Time for running jobs to end, before `on_timeout` applies: `90s`, `10m`, `2h`, `7d`, `1h30m`. With `0s` they get
    none. Default: 2h."""
    on_timeout: Annotated[str, OnTimeout]
    """Reaction after `timeout`. `abort`: undrain all nodes, and fail. `requeue`, `cancel`: requeue or cancel the
    remaining jobs. `wait`: continue to wait until `max_wait`. Default: abort."""
    max_wait: str
    """With `on_timeout: wait`, total time before the deployment aborts. Default: 7d."""
    not_requeueable: Annotated[str, NotRequeueable]
    """With `on_timeout: requeue`, treatment of jobs that cannot be requeued (interactive ones, `--no-requeue`).
    `abort`: leave all jobs alone, and undrain all nodes. One of `abort`, `cancel`. Default: abort."""
    reservations: Annotated[str, Reaction]
    """Reaction to a reservation that names a leaving node. `report`: report it, and drain. `refuse`: drain nothing, and
    fail. Default: report."""
    pending_jobs: Annotated[str, Reaction]
    """The same for a pending job that requests a leaving node by name. One of `report`, `refuse`. Default: report."""
    wait: bool
    """Wait for the jobs. If false, the deployment drains the nodes and succeeds; nodes that are not free stay until a
    later deployment, and `timeout` and `on_timeout` have no effect. Default: true."""
    grace: str
    """Time for the jobs of a worker pod that is deleted outside Pulumi, before Kubernetes kills it
    (`terminationGracePeriodSeconds`). A changed value recreates the workers, like any change to their pods. Default:
    5m."""


class RollingUpdateArgs(TypedDict, total=False):
    """Recreation of workers whose pods have changed."""

    max_unavailable: int | str
    """Nodes out of service at a time: a number, or a percentage of the node set, rounded down, but at least one node.
    Default: 10%."""
    idle_wait: str
    """Time for nodes to become idle by themselves: `4h`, `2d`. Until it is over, only idle nodes are drained. Default:
    nodes with jobs are drained at once. Without effect if `drain.wait` is false."""


class NodeSetArgs(UserPodsArgs, DevicesArgs):
    """Equal worker pods. Pod, host and Slurm node have the same name, `<name>-<ordinal>`."""

    name: str
    """Name of the node set, its StatefulSet and its Slurm feature: a DNS label of at most 52 characters."""
    replicas: NotRequired[int]
    """Number of nodes. 0 keeps the node set, but without nodes. Default: 1."""
    cpus: int
    """CPUs of a node that Slurm schedules. In the file of a stack, `all` or `all but 2` of what the machines have for a
    pod, until `soperator preflight FILE --write-sizes` replaces it (docs/placement.md)."""
    sockets: NotRequired[int]
    """Sockets of a machine, so that Slurm keeps tasks, their memory, and their GPUs on one: `lscpu` prints them. With
    several NUMA nodes in a socket, give the number of NUMA nodes. Needs `cores_per_socket` and `threads_per_core`;
    their product is `cpus`. Default: every CPU counts as a socket with one core, and tasks may straddle sockets
    (docs/placement.md)."""
    cores_per_socket: NotRequired[int]
    """Cores of a socket. Default: see `sockets`."""
    threads_per_core: NotRequired[int]
    """CPUs of a core. Slurm gives whole cores to jobs. 1 on a machine with two threads in a core schedules one of them,
    and leaves the other idle. Default: see `sockets`."""
    reserved_cores: NotRequired[int]
    """Cores of a node that no job gets. slurmd runs on them with what it starts outside of jobs: prologs, epilogs, and
    health checks, next to the watch of slurmd. Slurm takes the last core of the last socket, then that of the socket
    before, and so on. Fewer than the node has; needs `slurm.constrain: cgroup`. `cpus` counts them, and the pod has
    their time. Default: none (docs/placement.md)."""
    memory_gib: float
    """Memory of a node's pod, in GiB, or `all` or `all but 8` as for `cpus`. Slurm schedules less: a 32nd, from 64 MiB
    to 1 GiB but at most a quarter, is left for slurmd, so that jobs within their limits cannot end it. With
    `pod_resources`, Slurm schedules all of it."""
    partitions: NotRequired[Sequence[str]]
    """Partitions of the nodes. A partition that is not declared has default settings."""
    features: NotRequired[Sequence[str]]
    """Slurm features of the nodes in addition to the node set's name, for `--constraint`."""
    pod_resources: NotRequired[PodResourcesArgs]
    """CPU and memory of the slurmd container. Default: requests and limits of exactly `cpus` and `memory_gib`, for a
    Guaranteed pod: if a machine runs out of memory, the kernel kills slurmd last."""
    networks: NotRequired[Sequence[str]]
    """Networks of the pods in addition to the pod network: names of existing NetworkAttachmentDefinitions, as
    `default/rail-0` if their namespace is not the cluster's. Multus gives a pod an interface per network, starting with
    `net1`. Addresses of nodes in Slurm stay those of the pod network. Default: none."""
    environment: NotRequired[Mapping[str, str]]
    """Environment variables of jobs on the nodes, by name, such as settings of NCCL. A variable that a user or a job
    has set keeps its value. Jobs find the list in `/run/slurm/job-files/environment`."""
    job_token: NotRequired[JobTokenArgs]
    """A token of the pods' ServiceAccount for jobs, at `/run/slurm/job-files/identity/token`, to prove to a cloud who
    they are. Every user with a job on the node set reads it, and can act as the ServiceAccount at its audience until it
    expires. Needs `service_account`. Default: none."""
    nccl_topology: NotRequired[str]
    """Topology of a node's GPUs and network cards for NCCL: the text of its XML file, which jobs then find through
    `NCCL_TOPO_FILE`. For a file in the jail, set `environment: {NCCL_TOPO_FILE: <path>}` instead. Default: NCCL detects
    the topology."""
    max_processes: NotRequired[int]
    """Processes and threads of a user in jobs on a node (RLIMIT_NPROC; the kernel counts all pods of a machine
    together). Default: 256 per CPU, at least 4096."""
    lock_memory: NotRequired[bool]
    """Let jobs lock all their memory (RLIMIT_MEMLOCK), which RDMA needs. The container then starts with the capability
    SYS_RESOURCE, and drops it before slurmd starts. Default: if the nodes have `rdma`."""
    ready_timeout_seconds: NotRequired[int]
    """Time in seconds for new nodes to join Slurm. Default: 10 minutes, enough for a large image and a new machine in
    most clouds."""
    max_unready: NotRequired[int | str]
    """Nodes that may be missing after that time: a number, or a percentage of the node set, rounded down. The
    deployment reports them and succeeds. Default: none."""
    wait_until_ready: NotRequired[bool]
    """Wait for new nodes. If false, pods that first need a machine from an autoscaler do not fail the deployment.
    Default: true."""
    drain: NotRequired[DrainArgs]
    """Drain of nodes before their pods are deleted."""
    rolling_update: NotRequired[RollingUpdateArgs]
    """Recreation of nodes whose pods have changed."""


class PartitionArgs(TypedDict):
    """A queue with the nodes of all node sets that name it."""

    name: str
    """Name of the partition, for `--partition`."""
    default: NotRequired[bool]
    """Use it for jobs that name no partition; false: never. Default: use the first partition without this key, if none
    has true. Without a default partition, Slurm refuses jobs that name none."""
    options: NotRequired[Mapping[str, str | float]]
    """Further options of slurm.conf's partition line, such as `MaxTime: 2-00:00:00`, checked against Slurm's
    options."""


class UserArgs(TypedDict):
    """A person who may log in and run jobs, with the home directory `/home/<name>`, created at the first login."""

    name: str
    """Login name, such as `jane.doe`: a lower case letter or '_' first, then lower case letters, digits, '_', '-' and
    '.', at most 32."""
    uid: int
    """Id of the user, the same on all nodes, which owns the files in the home directory: never change it."""
    gid: NotRequired[int]
    """Id of the user's own group, which is named after the user unless `groups` has the id. Default: the uid."""
    groups: NotRequired[Sequence[str]]
    """Names of further groups, which must be in the cluster's `groups`."""
    ssh_keys: NotRequired[Sequence[str]]
    """Public keys, as lines of authorized_keys, also with options such as `from="10.0.0.0/8"` or `cert-authority`.
    Without one the user exists but cannot log in."""
    accounts: NotRequired[Sequence[str]]
    """Accounts in the accounting database; the first one is for jobs that name none. Default:
    accounting.default_account."""
    shell: NotRequired[str]
    """Login shell. Default: /bin/bash."""


class GroupArgs(TypedDict):
    """A group that several users share."""

    name: str
    """Name of the group."""
    gid: int
    """Id of the group, the same on all nodes."""


class TarballArgs(TypedDict):
    """A tarball of a root filesystem, plain or compressed with gzip, xz, bzip2 or zstd."""

    url: pulumi.Input[str]
    """Address of the tarball: http or https, reachable from the cluster, without credentials."""
    sha256: str
    """SHA-256 of the tarball, in hex. A tree with another sum is never complete."""


class JailSourceArgs(TypedDict, total=False):
    """Source of the jail: exactly one of image and tarball."""

    image: str
    """A container image of any distribution, with or without Slurm. The tree's id is derived from this text, so moving
    a tag changes nothing: give a digest, or a new tag for new content."""
    tarball: TarballArgs
    """A tarball of a root filesystem."""


class JailVolumeArgs(TypedDict, total=False):
    """The shared volume (ReadWriteMany) with the jail's trees and the users' home directories."""

    size_gib: int
    """Size in GiB. Default: 100."""
    storage_class: pulumi.Input[str]
    """StorageClass of a new claim. Default: the Kubernetes cluster's default class, or none with a static_volume."""
    existing_claim: pulumi.Input[str]
    """Name of an existing claim in the namespace, which has its own size and class."""
    static_volume: pulumi.Input[str]
    """Name of the PersistentVolume of a new claim, if no class provisions volumes."""
    protect: bool
    """Refuse to delete a new claim from the stack, if `storage.keep` is true. Default: true; set it to false in an `up`
    before the one in which the claim leaves the stack. It stays in Kubernetes, with its data."""
    accept: Mapping[str, str]
    """Findings of the storage's probe to accept, with the reasons. Default: none, so that an unsuitable volume is
    refused before it is filled. One of `hard_links`, `case`, `characters`, `unlink_open`, `replace_open`, `execution`,
    `flock`, `record_locks`, `shared_locks`, `shared_map`, `hard_link_limit`, `symlink_links`, `name_length`,
    `fifos_and_sockets`, `user_attributes`, `access_lists`, `flush_latency`, `file_creation`, `emptied`."""


class SubmountArgs(TypedDict):
    """A volume at a path inside the jail: exactly one of existing_claim, host_path, scratch_gib and memory_gib."""

    path: str
    """Path in sessions and jobs, such as "/data". `/home`, `/tmp`, `/dev/shm` and (on workers) `/var/spool/slurmd`
    replace the default volumes. A volume below `/opt` or `/usr/local` is for programs: slurmd cannot enter these
    directories as the user, so no working directory or output of a job can be there."""
    roles: NotRequired[Sequence[Annotated[str, SubmountRole]]]
    """Pods with the submount. Default: ssh sessions and jobs. One of `login`, `worker`."""
    node_sets: NotRequired[Sequence[str]]
    """Node sets whose jobs have the submount, by name: other machines may lack the disk. Sessions have it by `roles`. A
    job elsewhere that starts in the path, or writes its output there, fails. Default: all node sets."""
    logins: NotRequired[Sequence[str]]
    """Login nodes whose sessions have the submount, as their pods' names begin: `login`, and `login-<name>` of a pool.
    Jobs have it by `roles`, and the admin shell has what all login nodes have. Default: all login nodes."""
    read_only: NotRequired[bool]
    """Refuse all writes. Default: false."""
    existing_claim: NotRequired[pulumi.Input[str]]
    """Name of a claim in the namespace, ReadWriteMany or ReadOnlyMany, because many pods mount it."""
    sub_path: NotRequired[str]
    """Directory of the claim to mount. Default: the whole claim."""
    host_path: NotRequired[str]
    """Existing directory of the machine: a local disk, or a filesystem that all machines mount."""
    scratch_gib: NotRequired[int]
    """An empty directory on the machine's disk per pod, of this size in GiB, deleted with the pod."""
    memory_gib: NotRequired[float]
    """An empty directory in memory per pod, of this size in GiB, deleted with the pod. Its content counts as memory of
    the pod."""


class JailIsolationArgs(TypedDict, total=False):
    """Isolation between jobs on a node, in addition to their users."""

    pid: bool
    """Limit the tasks of a step to the step's own processes. Otherwise they see all processes of their user on the
    node, but never those of other users. Default: false."""
    ipc: bool
    """Give the tasks of a step their own System V IPC and POSIX message queues. Default: they use those of the node.
    Files in /dev/shm are always the node's, protected by their modes."""
    user_namespaces: bool
    """Let jobs create user namespaces, as `unshare --map-root-user` does. This exposes more of the kernel to every user
    who may run a job. `srun --container-remap-root` needs it (docs/containers.md). podman, apptainer, and enroot start
    no container even so (docs/container-programs.md). Default: false."""


class PopulateArgs(ScheduledArgs, total=False):
    """The Job that fills a tree."""

    limit_mib_per_second: int
    """Limit of writes in MiB/s, to spare a volume that is in use. Default: none."""
    pod_resources: PodResourcesArgs
    """Resources of the Job's container. Default: one CPU and 512 MiB, at most 2 GiB of memory."""


class JailArgs(TypedDict, total=False):
    """The root filesystem of all sessions and jobs."""

    source: JailSourceArgs
    """Source of the root filesystem. A changed source fills a second tree next to the first, then switches to it;
    running sessions and jobs keep their tree. Default: images.jail."""
    active: str
    """Id of an older tree to switch back to. Default: the tree of the source."""
    keep_trees: int
    """Number of complete trees to keep, including the active one, in addition to trees that jobs or sessions use.
    Default: 2, to be able to switch back."""
    changes: Annotated[str, Changes]
    """Treatment of users' changes to the old tree in a switch. Default: list the changes, and do not switch. One of
    `refuse`, `carry_over`, `leave_behind`."""
    storage: JailVolumeArgs
    """The shared volume (ReadWriteMany) with the trees and, outside of them, the home directories."""
    submounts: Sequence[SubmountArgs]
    """Other volumes inside the jail."""
    isolation: JailIsolationArgs
    """Isolation of jobs on a node from each other."""
    populate: PopulateArgs
    """The Job that fills a tree."""
    admin_shell: bool
    """Keep the admin shell's pod running. Default: false; `make admin` starts it for one session."""
    app_armor: str
    """AppArmor profile of the slurmd and sshd containers, which mount the jail: `unconfined`, `localhost/<profile>` for
    a profile that is loaded on every machine, or `runtime` for the container runtime's, which forbids mounts on
    machines with AppArmor. Default: unconfined. Kubernetes 1.29 has no field for it, and needs `runtime`."""


class ImageRegistryArgs(TypedDict):
    """Settings of one registry of images for containers in jobs."""

    host: str
    """Host of the registry, as in image names."""
    mirrors: NotRequired[Sequence[str]]
    """Registries to try first, in this order; if none has the image, the registry itself is used. The mirror
    `registry.example.com/hub` of `docker.io` has `docker.io/library/ubuntu` as
    `registry.example.com/hub/library/ubuntu`."""
    authority: NotRequired[str]
    """PEM certificates of authorities to trust for this host, in addition to those of the jail."""
    insecure: NotRequired[bool]
    """Use HTTP, or do not verify its certificate: anyone on the network path can change images. Default: false."""


class RegistryProxyArgs(TypedDict):
    """A proxy to registries, for jobs that do not set `https_proxy` themselves."""

    url: str
    """Address of the proxy."""
    direct: NotRequired[Sequence[str]]
    """Hosts to reach without the proxy, including all hosts below them (`no_proxy`)."""


class LocalCopiesArgs(TypedDict):
    """Copies of images on the machines' own disks: tasks start from them, and not from the shared volume."""

    host_path: str
    """Existing directory of the machine, root's, on a local disk, for this cluster alone. Pods give it the mode 1777.
    Choose a disk that the kubelet does not use: users can fill it, and a full disk of the kubelet ends pods."""
    node_sets: NotRequired[Sequence[str]]
    """Node sets whose machines have the directory, by name. Default: all node sets."""
    images_gib: NotRequired[float]
    """Limit in GiB of a user's copies on a node. If it is exceeded, the copy that was least recently started is removed
    first; copies in use stay. An image that does not fit starts from the shared volume. Default: none."""
    unused_days: NotRequired[int]
    """Days after its last start when an unused copy is removed. Default: never."""
    free_percent: NotRequired[float]
    """Percentage of the disk that copies leave free. Default: 20, because the kubelet ends pods when 15 % are left on a
    disk that it uses."""


class ContainersArgs(TypedDict, total=False):
    """Containers in jobs: `srun --container-image=...`, with the options of Pyxis."""

    writes_mib: int
    """Limit in MiB of the changes that a task makes to its container's own files. They are in memory, count as the
    job's, and are discarded after the task. Default: 1 GiB."""
    images_gib: float
    """Limit in GiB of a user's unpacked images and named containers. If it is exceeded, the image that was least
    recently started is removed first; images in use and named containers stay. An image that does not fit is refused.
    Default: none."""
    unused_days: int
    """Days after its last start when an unused image is removed. Default: never."""
    images: Sequence[str]
    """Images that are shared by all users, on the jail's volume: users start them without a pull. Every user who may
    run jobs may start them, even without a password of the registry. An image that leaves the list is removed unless a
    task runs in it. Default: none."""
    images_secret: pulumi.Input[str]
    """Name of a Secret in the namespace, of the type `kubernetes.io/dockerconfigjson`, with the credentials for
    `images`. Default: none are needed."""
    registries: Sequence[ImageRegistryArgs]
    """Mirrors and authorities of registries. Default: none."""
    allowed_registries: Sequence[str]
    """Registries from which images may come, and parts of them: `nvcr.io`, `registry.example.com/team`. Users' own
    files are always allowed. Default: any."""
    proxy: RegistryProxyArgs
    """Proxy to registries. Default: none."""
    local: LocalCopiesArgs
    """Copies of images on the machines' own disks. The first start of an image on a node copies it there. Default: all
    nodes read the shared volume."""


class DatabaseVolumeArgs(TypedDict, total=False):
    """The volume (ReadWriteOnce) with the data of MariaDB."""

    size_gib: int
    """Size in GiB. Default: 20, room for some ten million jobs."""
    storage_class: pulumi.Input[str]
    """StorageClass of a new claim. Default: the Kubernetes cluster's default class, or none with a static_volume."""
    existing_claim: pulumi.Input[str]
    """Name of an existing claim in the namespace, which has its own size and class."""
    static_volume: pulumi.Input[str]
    """Name of the PersistentVolume of a new claim, if no class provisions volumes."""
    protect: bool
    """Refuse to delete a new claim from the stack, if `storage.keep` is true. Default: true; set it to false in an `up`
    before the one in which the claim leaves the stack. It stays in Kubernetes, with its data."""


class DatabasePasswordArgs(TypedDict):
    """A Secret that holds the password of slurmdbd's database user."""

    secret: pulumi.Input[str]
    """Name of the Secret."""
    key: NotRequired[str]
    """Key in the Secret's data. Default: password."""


class OwnDatabaseArgs(ScheduledArgs, total=False):
    """A MariaDB in the cluster's namespace."""

    storage: DatabaseVolumeArgs
    """The volume (ReadWriteOnce) with its data, kept in a `destroy` like those of `storage`."""
    password: DatabasePasswordArgs
    """Password of slurmdbd's user. Default: generated."""
    password_version: int
    """Number of the generated password. Another number generates another password, which replaces the former one
    without losing records. Default: 1."""
    pod_resources: PodResourcesArgs
    """Resources of MariaDB's container. Half of its memory limit is the buffer pool of InnoDB. Default: a quarter of a
    CPU and 1 GiB, at most 4 GiB of memory."""


class OperatorDatabaseArgs(TypedDict, total=False):
    """A MariaDB resource of mariadb-operator, which the platform installs, with Database, User and Grant."""

    size_gib: int
    """Size of its volume in GiB. Default: 20."""
    storage_class: pulumi.Input[str]
    """StorageClass of its volume. Default: the Kubernetes cluster's default class."""
    protect: bool
    """Refuse to delete the MariaDB from the stack, if `storage.keep` is true. Default: true; set it to false in an `up`
    before the one in which the MariaDB leaves the stack. It stays in Kubernetes, with its data."""
    replicas: int
    """Pods of MariaDB; several replicate with Galera. Default: 1."""
    max_connections: int
    """Connections of slurmdbd's user; the operator's default of 10 is too few. Default: 100."""
    pod_resources: PodResourcesArgs
    """Resources of MariaDB's container. Half of its memory limit is the buffer pool of InnoDB. Default: a quarter of a
    CPU and 1 GiB, at most 4 GiB of memory."""


class DatabaseAuthorityArgs(TypedDict):
    """A Secret that holds the certificate of the authority that signed the database's certificate."""

    secret: pulumi.Input[str]
    """Name of the Secret."""
    key: NotRequired[str]
    """Key in the Secret's data. Default: ca.crt."""


class ExternalDatabaseArgs(TypedDict):
    """An external MariaDB or MySQL, with a database and a user for slurmdbd."""

    host: pulumi.Input[str]
    """Host name or address of the database."""
    port: NotRequired[int]
    """Port of the database. Default: 3306."""
    database: NotRequired[str]
    """Database of slurmdbd, on which its user has all privileges. Default: slurm_acct_db."""
    user: NotRequired[str]
    """User of slurmdbd. Default: slurm."""
    password: DatabasePasswordArgs
    """Password of the user."""
    authority: NotRequired[DatabaseAuthorityArgs]
    """Authority of the database's certificate: slurmdbd then refuses a connection without TLS, but does not verify the
    certificate (Slurm has no setting for that). Default: no TLS."""


class DatabaseArgs(TypedDict, total=False):
    """The database of accounting, given by at most one key. Default: the cluster's own MariaDB."""

    own: OwnDatabaseArgs
    """A MariaDB in the cluster's namespace, from this project's image."""
    mariadb_operator: OperatorDatabaseArgs
    """A MariaDB of mariadb-operator in the cluster's namespace."""
    external: ExternalDatabaseArgs
    """An external MariaDB or MySQL."""


class PurgeArgs(TypedDict, total=False):
    """Ages at which slurmdbd deletes records, by kind. Default: never."""

    jobs: str
    """Age of jobs."""
    steps: str
    """Age of steps."""
    events: str
    """Age of node events."""
    reservations: str
    """Age of reservations."""
    suspends: str
    """Age of job suspensions."""
    transactions: str
    """Age of changes to accounts, users and limits."""
    usage: str
    """Age of the usage totals that sreport reads."""


class DumpVolumeArgs(TypedDict, total=False):
    """The volume (ReadWriteOnce) with the dumps."""

    size_gib: int
    """Size in GiB. Default: 20. A compressed dump takes a tenth of the database's size."""
    storage_class: pulumi.Input[str]
    """StorageClass of a new claim. Default: the Kubernetes cluster's default class, or none with a static_volume."""
    existing_claim: pulumi.Input[str]
    """Name of an existing claim in the namespace, which has its own size and class."""
    static_volume: pulumi.Input[str]
    """Name of the PersistentVolume of a new claim, if no class provisions volumes."""
    protect: bool
    """Refuse to delete a new claim from the stack, if `storage.keep` is true. Default: true; set it to false in an `up`
    before the one in which the claim leaves the stack. It stays in Kubernetes, with its data."""


class DumpArgs(ScheduledArgs, total=False):
    """Dumps of the database by a CronJob."""

    schedule: str
    """Schedule in cron's syntax, in UTC. Default: every day at 01:30."""
    keep: int
    """Number of dumps to keep. An old one is removed when a new one is complete and checked. Default: 14."""
    storage: DumpVolumeArgs
    """The volume (ReadWriteOnce) with the dumps, kept in a `destroy` like those of `storage`."""
    pod_resources: PodResourcesArgs
    """Resources of the container that dumps. Default: a tenth of a CPU and 128 MiB, at most 1 GiB of memory."""


class SlurmdbdArgs(ScheduledArgs, total=False):
    """The pod that runs slurmdbd."""

    pod_resources: PodResourcesArgs
    """Resources of slurmdbd's container. Default: a tenth of a CPU and 256 MiB, at most 2 GiB of memory."""


class AccountingArgs(TypedDict, total=False):
    """Accounting by slurmdbd."""

    database: DatabaseArgs
    """The database. Default: the cluster's own MariaDB."""
    enforce: Sequence[Annotated[str, Enforce]]
    """Rules by which slurmctld refuses or holds jobs (AccountingStorageEnforce). Default: none; jobs of all users run
    and are recorded. One of `associations`, `limits`, `qos`, `safe`, `wckeys`."""
    store: Sequence[Annotated[str, StoredPart]]
    """Parts of jobs to record in addition to their resources (AccountingStoreFlags). Default: none. One of
    `job_script`, `job_env`, `job_comment`, `job_extra`."""
    default_account: str
    """Account of users for whom neither the spec nor an administrator names another one. Default: "default"."""
    unknown_users: Annotated[str, UnknownUsers]
    """Treatment of users that were added inside the jail. Default: add. One of `add`, `refuse`."""
    purge: PurgeArgs
    """Ages at which records are deleted. Default: never."""
    dump: DumpArgs
    """Scheduled dumps of the cluster's own database to a volume. Default: none."""
    cluster_id: int
    """Id of this cluster in a database that already has records of its jobs, as given in slurmctld's message CLUSTER ID
    MISMATCH. It confirms that the records are this cluster's, for example after a restore. Default: slurmctld does not
    start on such a database."""
    slurmdbd: SlurmdbdArgs
    """The pod that runs slurmdbd."""


class CheckArgs(TypedDict, total=False):
    """Changes to one check. Keys that are left out keep the check's defaults (docs/health-checks.md)."""

    enabled: bool
    """Run the check. Default: true."""
    limit: float
    """Limit of the value, in the check's unit. Default: the check's own, for the GPU model if it has one."""
    action: Annotated[str, HealthAction]
    """Consequence of a failure: `log`, `drain`, or `drain_and_replace`."""
    undrain: Annotated[str, UndrainRule]
    """Rule that ends a drain by the check. `auto`: the check passes again. `verify`: a long check of the same hardware
    passes (docs/long-checks.md); without one, an administrator undrains the node. `never`: an administrator undrains
    the node."""
    failures: int
    """Consecutive failed rounds before the action."""
    passes: int
    """Consecutive passed rounds before the drain ends."""
    every: str
    """Time between two rounds of the check, at least `health.interval`."""
    node_use: Sequence[Annotated[str, NodeUse]]
    """Use of the node during which the check counts: `idle`, `busy`, or both."""


class HealthProgramArgs(TypedDict):
    """Your own check, in addition to the built-in ones: the check `program`. It runs as root outside the jail."""

    script: str
    """Script for /bin/sh in the worker's container. Status 0 means healthy, any other status failure, with the first
    printed line as the value in the reason. Do not start programs of the jail or of users in it: they would run as
    root."""
    timeout: NotRequired[str]
    """Time until the script is killed, which is a failure. Default: 5s."""


class LongCheckArgs(TypedDict, total=False):
    """A long check. Keys that are left out keep the check's defaults (docs/long-checks.md)."""

    enabled: bool
    """Run the check. Default: true."""
    schedule: str
    """Schedule of runs in cron's syntax, in UTC. A run checks idle nodes that are due. Default: every 15 minutes."""
    every: str
    """Time until a node that passed is checked again. Default: 1d."""
    nodes_per_run: int
    """Largest number of nodes per run. Default: 32."""
    group: int
    """Nodes of one job, for `ring_bandwidth`. A slow group is bisected to the slow node. Default: 4."""
    limit: float
    """Lowest value, in the check's unit. Default: the check's own: the one for boards with eight GPUs of the model, if
    there is one."""
    action: Annotated[str, HealthAction]
    """Consequence of a failure: `log` or `drain`. One of `log`, `drain`, `drain_and_replace`. Default: drain."""
    undrain: Annotated[str, UndrainRule]
    """Rule that ends a drain by the check. `auto`: a later run finds the node healthy. `never`: an administrator
    undrains. One of `auto`, `verify`, `never`. Default: auto."""
    time_limit: str
    """Time limit of a job. A job that takes longer has failed. Default: the check's own."""
    start_within: str
    """Time that a job may wait in the queue before it is cancelled. Default: 5m."""
    nice: int
    """Adjustment of the job's priority (sbatch --nice): lower than that of users' jobs. Default: 10000."""
    partition: str
    """Partition of the jobs: only its nodes are checked. Default: the first partition of the node."""
    qos: str
    """QoS of the jobs, such as one that others preempt. It must exist in the accounting database."""
    reservation: str
    """Reservation of the jobs, open to the user `soperator-health`: only its nodes are checked. Default: none."""
    image: str
    """Image of `containers.images` in which the check's program runs, from its PATH. Default: the program is the
    jail's."""
    arguments: Mapping[str, float]
    """Sizes in MiB, times in seconds, or a level of the program, under the names of the defaults."""


class HealthArgs(TypedDict, total=False):
    """Quick checks of the nodes. A node that fails one gets no further jobs; running jobs end as usual."""

    enabled: bool
    """Run the checks. If false, drains of earlier checks stay until you undrain their nodes. Default: true."""
    interval: str
    """Time between two rounds on a node (HealthCheckInterval). Default: 1m."""
    node_states: Sequence[Annotated[str, HealthCheckNodeState]]
    """Nodes on which rounds start (HealthCheckNodeState). If drained nodes are left out, no node undrains itself. One
    of `ANY`, `ALLOC`, `IDLE`, `MIXED`, `NONDRAINED_IDLE`."""
    spread: bool
    """Spread the rounds of the nodes over the interval, instead of starting them all at once
    (HealthCheckNodeState=CYCLE). Default: true."""
    timeout: str
    """Total time of a round. A program of a check gets half of it; taking longer is a failure. Default: 10s."""
    checks: Mapping[str, CheckArgs]
    """Changes to checks, by name (docs/health-checks.md). One of `gpu_tool`, `gpu_query`, `gpu_warnings`,
    `gpu_persistence`, `gpu_count`, `gpu_model`, `gpu_xid`, `gpu_xid_noted`, `gpu_recovery`, `gpu_ecc_uncorrected`,
    `gpu_ecc_contained`, `gpu_ecc_corrected`, `gpu_remap_failed`, `gpu_remap_pending`, `gpu_slowdown`,
    `gpu_temperature`, `gpu_memory_temperature`, `gpu_pcie_width`, `gpu_pcie_generation`, `gpu_pcie_replays`,
    `gpu_processes`, `gpu_memory_used`, `nvlink_fabric`, `nvlink_missing`, `nvlink_links`, `nvlink_errors`,
    `gpu_peer_access`, `network_ports`, `network_port_lost`, `network_rate`, `network_symbol_errors`, `network_flaps`,
    `network_receive_errors`, `memory_available`, `memory_uncorrected`, `memory_corrected`, `volumes`, `volume_space`,
    `volume_inodes`, `shared_memory_used`, `shared_volumes`, `jail`, `process_ids`, `users_process_ids`, `clock`,
    `kernel_network`, `kernel_disk`, `kernel_machine_check`, `kernel_killed_slurm`, `slurmd`, `program`."""
    program: HealthProgramArgs
    """Your own check. Default: none."""
    long_checks: Mapping[str, LongCheckArgs]
    """Long checks, by name (docs/long-checks.md): jobs on idle nodes. Default: none. One of `ring_bandwidth`,
    `memory_bandwidth`, `storage_bandwidth`, `tcp_bandwidth`, `rdma_bandwidth`, `nccl_bandwidth`, `nccl_pairs`,
    `gpu_diagnostics`."""
    verify_new_nodes: bool
    """Keep new nodes drained until all long checks of one node have passed there once, on their schedules. Default:
    false."""


class HookScriptArgs(TypedDict):
    """Your own script. It runs as root in the worker's container, outside the jail."""

    script: str
    """Script for /bin/sh, with the variables of slurmd's Prolog and Epilog (SLURM_JOB_ID, SLURM_JOB_UID, and so on).
    Status 0 means success, any other status failure, with the first printed line as the reason. Do not start programs
    of the jail or of users in it: they would run as root."""
    action: NotRequired[Annotated[str, HookAction]]
    """Consequence of a failure: `log`, `drain`, or before a job `requeue`. Default: drain."""
    timeout: NotRequired[str]
    """Time until the script is killed, which is a failure. Default: 30s."""


class OurHookArgs(TypedDict, total=False):
    """Changes to a built-in hook. Keys that are left out keep the hook's defaults (docs/job-hooks.md)."""

    enabled: bool
    """Run the hook."""
    action: Annotated[str, HookAction]
    """Consequence of a failure: `log`, `drain`, or before a job `requeue`."""
    timeout: str
    """Time until the hook counts as failed."""


class HooksArgs(TypedDict, total=False):
    """Hooks of jobs: built-in hooks, and scripts in the order of their names."""

    prolog: Mapping[str, HookScriptArgs]
    """Scripts before a job's first step on a node, by name. They run after the built-in hooks."""
    epilog: Mapping[str, HookScriptArgs]
    """Scripts after a job's last step on a node, by name. They run before the built-in hooks."""
    ours: Mapping[str, OurHookArgs]
    """Changes to the built-in hooks, by name (docs/job-hooks.md). One of `gpus_unused_before`, `map_gpus`,
    `unmap_gpus`, `gpus_unused_after`, `processes_ended`, `drop_page_cache`."""
    job_mapping: str
    """Directory on the machines with a file per GPU that names the GPU's job, which dcgm-exporter reads: the
    `job_mapping` of the platform's GPU operator. Pods of node sets with GPUs mount it. Default: none."""


class RestTlsArgs(TypedDict):
    """The certificate of the REST API."""

    secret: pulumi.Input[str]
    """Name of a Secret of the type kubernetes.io/tls in the cluster's namespace: `tls.crt` with the whole chain, and
    `tls.key`."""


class RestLimitsArgs(TypedDict, total=False):
    """Limits of the REST API, enforced by the proxy in front of slurmrestd, per pod."""

    body_kib: int
    """Size of a request's body in KiB: larger requests are refused with 413. Default: 1024."""
    connections: int
    """Connections of all clients together; further ones wait. Default: 100."""
    connections_per_client: int
    """Connections of one address; further ones are closed. Default: 20."""
    requests_per_client: int
    """Requests of one address in 10 seconds; further ones are refused with 429. Default: 200."""
    request_seconds: int
    """Time in seconds for a whole request to arrive, after which it is refused with 408. Default: 10."""


class RestArgs(ScheduledArgs, total=False):
    """The pods that run slurmrestd, and access to them."""

    replicas: int
    """Number of pods. Default: 1."""
    service: Annotated[str, ServiceType]
    """Access to the API. Default: from inside the Kubernetes cluster only. One of `ClusterIP`, `NodePort`,
    `LoadBalancer`."""
    service_annotations: Mapping[str, str]
    """Annotations of the Service, for the platform's load balancers."""
    allowed_sources: Sequence[str]
    """Addresses that may connect. Default: none."""
    allowed_namespaces: Sequence[str]
    """Namespaces whose pods may connect; the cluster's own name admits jobs and sessions. Default: none, so that only
    `kubectl port-forward` reaches it."""
    tls: RestTlsArgs
    """Certificate. Default: none; tokens and jobs are sent unencrypted."""
    max_token_lifetime: str
    """Longest lifetime of a token that a user may request. Default: 1d."""
    key_version: int
    """Number of the key that signs tokens. Another number generates another key (or reads your changed Secret again),
    and all earlier tokens are refused. Default: 1."""
    limits: RestLimitsArgs
    """Limits that keep clients from harming each other."""
    pod_resources: PodResourcesArgs
    """Resources of slurmrestd's container. Default: a tenth of a CPU and 128 MiB, at most 1 GiB of memory."""


class AlertsArgs(TypedDict, total=False):
    """Alert rules and recorded series of the cluster (docs/monitoring.md), as a PrometheusRule."""

    labels: Mapping[str, str]
    """Further labels of the PrometheusRule, if your Prometheus only selects rules with certain labels."""
    runbooks: str
    """Address of your copy of docs/runbooks.md, to which alerts then link (`runbook_url`)."""


class MetricsArgs(ScheduledArgs, total=False):
    """The pod that collects Slurm's metrics in the background, and serves them to Prometheus."""

    interval: str
    """Time between two rounds of three requests to slurmctld, independent of the number of scrapes. Default: 30s."""
    allowed_namespaces: Sequence[str]
    """Namespaces whose pods may read the metrics, which name users and jobs. Default: monitoring, as in
    `platform.kube_prometheus_stack`."""
    pod_monitor: bool
    """Create a PodMonitor, with which Prometheus' operator finds the pod. Otherwise, the pod only has the annotations
    `prometheus.io/scrape`, `port` and `path`. Default: false."""
    events: bool
    """Publish the start and end of drains by health checks as events on the pods of the nodes. The exporter's pod then
    has a service account that may create events in the cluster's namespace, and nothing else. Default: false."""
    node_conditions: bool
    """Show drains by health checks as a condition `SlurmNodeHealthy/<namespace>` of the machines. The exporter's pod
    then has a service account that may list all Kubernetes nodes and change their status, which are rights on the whole
    Kubernetes. Default: false."""
    alerts: AlertsArgs
    """Alert rules, for Prometheus' operator, which must exist. Default: none; `{}` for all rules."""
    dashboards: bool
    """Dashboards for Grafana, as ConfigMaps. Default: false."""
    pod_resources: PodResourcesArgs
    """Resources of the exporter's container. Default: a twentieth of a CPU and 64 MiB, at most 256 MiB of memory."""


class NetworkArgs(TypedDict, total=False):
    """Destinations of login, worker and admin pods, in addition to the cluster's own pods and name servers."""

    egress: Sequence[str]
    """Destinations: `internet` (all addresses that are not private), `private` (the ranges of RFC 1918, RFC 6598 and
    RFC 4193), `cluster` (pods of all namespaces) and addresses in CIDR notation. Metadata services, link-local
    addresses and the Kubernetes API stay closed, unless a CIDR names only such addresses. Default: all three
    keywords."""
    closed_ports: Sequence[int | str]
    """TCP ports closed at all of these addresses, except on the cluster's own pods. Default: those of etcd, the
    Kubernetes API, the kubelet and related components on every machine. An empty list closes none, for network plugins
    without port ranges (`endPort`)."""
    ipv6: bool
    """Let Slurm's daemons and commands use IPv6 addresses, in addition to IPv4 (`EnableIPv6` of
    `CommunicationParameters`). Needed if pods only have IPv6 addresses, or have them first; a preview then reports it.
    Set it in the first deployment: daemons keep the addresses on which they listen until they restart. Default:
    false."""
    api_servers: Sequence[str]
    """Closed addresses of the Kubernetes API. Default: those of the Service `kubernetes` and its EndpointSlices in the
    namespace `default` at the time of a deployment. Give ranges if they change."""


class StateVolumeArgs(TypedDict, total=False):
    """The volume (ReadWriteOnce) with slurmctld's state: the queue, jobs, drains, reservations."""

    size_gib: int
    """Size in GiB. Default: 10, several times the scripts and environments of 10,000 pending jobs."""
    storage_class: pulumi.Input[str]
    """StorageClass of a new claim. Default: the Kubernetes cluster's default class, or none with a static_volume."""
    existing_claim: pulumi.Input[str]
    """Name of an existing claim in the namespace, which has its own size and class."""
    static_volume: pulumi.Input[str]
    """Name of the PersistentVolume of a new claim, if no class provisions volumes."""
    protect: bool
    """Refuse to delete a new claim from the stack, if `storage.keep` is true. Default: true; set it to false in an `up`
    before the one in which the claim leaves the stack. It stays in Kubernetes, with its data."""
    accept: Mapping[str, str]
    """Findings to accept, with the reasons (docs/storage.md). Default: none, so that slurmctld does not start on a
    volume that has lost its state. One of `emptied`."""


class StorageArgs(TypedDict, total=False):
    """Data that outlives pods, in addition to the jail."""

    state: StateVolumeArgs
    """slurmctld's state."""
    keep: bool
    """Protect all claims, including the jail's, and their namespace, and keep them in a `destroy`. Default: true; set
    it to false only for trials."""


class ImagesArgs(TypedDict):
    """The images, built from `images/` by `make images`, which prints their references."""

    controller: pulumi.Input[str]
    """slurmctld and the client programs."""
    worker: pulumi.Input[str]
    """slurmd and the client programs."""
    login: pulumi.Input[str]
    """sshd and the client programs."""
    accounting: NotRequired[pulumi.Input[str]]
    """slurmdbd and the client programs. Required with accounting."""
    database: NotRequired[pulumi.Input[str]]
    """MariaDB. Required with the cluster's own database."""
    rest: NotRequired[pulumi.Input[str]]
    """slurmrestd and the proxy in front of it. Required with rest."""
    exporter: NotRequired[pulumi.Input[str]]
    """The exporter of metrics. Required with metrics."""
    munge: pulumi.Input[str]
    """munged, which runs next to all other daemons."""
    jail_tools: pulumi.Input[str]
    """Programs that fill and switch trees, merge users, and run the admin shell."""
    jail: NotRequired[str]
    """The root filesystem of sessions and jobs. Required without jail.source. A plain value, because the tree's id is
    derived from it."""
    pull_policy: NotRequired[Annotated[str, PullPolicy]]
    """When to pull images. Default: once, because tags are hashes of the content. One of `Always`, `IfNotPresent`,
    `Never`."""
    pull_secrets: NotRequired[Sequence[pulumi.Input[str]]]
    """Names of Secrets in the namespace with the registry's credentials."""


class SecretRefArgs(TypedDict):
    """A key of an existing Secret in the cluster's namespace."""

    secret: pulumi.Input[str]
    """Name of the Secret."""
    key: NotRequired[str]
    """Key in the Secret's data. Default: munge.key, or ssh_host_ed25519_key."""


class JwtKeyRefArgs(TypedDict):
    """A Secret that holds the key that signs tokens of the REST API: at least 32 bytes."""

    secret: pulumi.Input[str]
    """Name of the Secret."""
    key: NotRequired[str]
    """Key in the Secret's data. Default: jwt.key."""


class SecretsArgs(TypedDict, total=False):
    """Sources of the cluster's keys."""

    munge_key: SecretRefArgs
    """Key with which Slurm's daemons authenticate each other. Default: generated, 128 random letters and digits."""
    munge_key_version: int
    """Number of the generated munge key. Another number generates another key, which all daemons then start to use
    while jobs run. Not with `munge_key`. Default: 1."""
    ssh_host_key: SecretRefArgs
    """The login nodes' host key. Default: a generated ed25519 key."""
    ssh_host_key_version: int
    """Number of the generated host key. Another number generates another key, which users' ssh clients must be given.
    Not with `ssh_host_key`. Default: 1."""
    jwt_key: JwtKeyRefArgs
    """Key that signs tokens of the REST API (HS256). Default: generated; `rest.key_version` is its number."""


class ProvidedArgs(TypedDict, total=False):
    """Names that a platform offers, which are defaults of a cluster."""

    gpu_resource: str
    """Resource of whole GPUs. Default of `gpus.resource` of node sets."""
    rdma_resources: Sequence[str]
    """Resources of RDMA devices. A single one is the default of `rdma.resource` of node sets."""
    runtime_class: str
    """RuntimeClass of pods with GPUs. Default of `runtime_class` of node sets whose GPUs have the vendor of
    `gpu_resource`."""
    storage_class: pulumi.Input[str]
    """StorageClass of the shared volume. Default of `jail.storage.storage_class`."""
    static_volume: pulumi.Input[str]
    """PersistentVolume of the shared volume. Default of `jail.storage.static_volume`."""
    existing_claim: pulumi.Input[str]
    """Claim of the shared volume, in the cluster's namespace. Default of `jail.storage.existing_claim`."""
    size_gib: int
    """Size of the shared volume in GiB. Default of `jail.storage.size_gib`."""
    kube_prometheus_stack: bool
    """The platform installs the kinds of Prometheus' operator, so `metrics.pod_monitor` and `metrics.alerts` do not
    need them before. Default: false."""
    mariadb_operator: bool
    """The platform installs the kinds of MariaDB's operator, so `accounting.database.mariadb_operator` does not need
    them before. Default: false."""


class ClusterArgs(TypedDict, total=False):
    """A Slurm cluster on Kubernetes. Required: `name` (a component has a default), `node_sets` and `images`."""

    name: str
    """Slurm's name of the cluster: lower case letters, digits and '-', at most 40 characters."""
    namespace: str
    """Namespace of the cluster, which no other SlurmCluster may use. Default: the cluster's name."""
    owner: str
    """Mark on the cluster's own objects and drains. Default: `<project>.<stack>.<component>`. If you rename one of
    these, set the owner to its former value."""
    create_namespace: bool
    """Create the namespace. If false, it must exist. Default: true."""
    cluster_domain: str
    """DNS domain of the Kubernetes cluster (the kubelet's `clusterDomain`), in which Slurm's pods resolve their names.
    Default: cluster.local."""
    ready_timeout_seconds: int
    """Time in seconds for pods of the cluster to become ready, except workers, and for Jobs on the jail to get a
    machine and an image. Workers have `node_sets[].ready_timeout_seconds`. Default: 10 minutes, enough for a large
    image and a new machine in most clouds."""
    labels: Mapping[str, str]
    """Further labels of all objects."""
    annotations: Mapping[str, str]
    """Further annotations of all objects."""
    slurm: SlurmArgs
    """Slurm itself."""
    controller: ControllerArgs
    """The pod that runs slurmctld."""
    login: LoginArgs
    """The pods that run sshd."""
    node_sets: Sequence[NodeSetArgs]
    """The worker nodes: at least one node set."""
    partitions: Sequence[PartitionArgs]
    """Partitions with their own settings. A partition that only a node set names has default settings."""
    users: Sequence[UserArgs]
    """People who may log in and run jobs."""
    groups: Sequence[GroupArgs]
    """Groups of users. A user's own group needs no entry."""
    jail: JailArgs
    """The root filesystem of all sessions and jobs, on the same volume as the homes."""
    containers: ContainersArgs
    """Containers in jobs. Default: none; `--container-image` is refused."""
    accounting: AccountingArgs | Annotated[str, Literal["none"]]
    """Records of jobs, and limits of accounts, in a database: a mapping, or "none". Default: slurmdbd with the
    cluster's own MariaDB."""
    health: HealthArgs
    """Quick checks of the nodes."""
    hooks: HooksArgs
    """Hooks of jobs, before their first step on a node and after their last one. Default: none."""
    rest: RestArgs
    """The REST API. Default: none."""
    metrics: MetricsArgs
    """Metrics of Slurm for Prometheus, with alert rules and dashboards. Default: none."""
    network: NetworkArgs
    """Network destinations of jobs and sessions."""
    storage: StorageArgs
    """The volume of slurmctld's state, and the protection of volumes."""
    images: ImagesArgs
    """Container images."""
    secrets: SecretsArgs
    """Secrets with your own keys. Default: generated keys."""


class ChartSourceArgs(TypedDict, total=False):
    """Location of charts: exactly one of repository, oci and folder."""

    repository: str
    """Address of a chart repository."""
    oci: str
    """Folder in a registry that holds the charts under their names. This machine's Helm login applies."""
    folder: str
    """Folder with the charts as saved by `helm pull` (`gpu-operator-v26.7.0.tgz`), or unpacked under their names."""


class ChartPartArgs(TypedDict, total=False):
    """A part of a platform, installed by a chart."""

    exists: bool
    """Check an existing installation, and change nothing: versions, definitions, settings that jobs depend on. Default:
    false."""
    keep: bool
    """Keep the installation, with its namespace, when the part leaves the stack: in a `destroy`, or with exists: true,
    which hands it over. Default: false."""
    version: str
    """Version of the chart. Default: the tested version, listed in docs/platform.md."""
    source: ChartSourceArgs
    """Location of the chart. Default: the project's public location, or the platform's source."""
    namespace: str
    """Namespace of the chart. Default: the project's usual namespace."""
    create_namespace: bool
    """Create the namespace. If false, it must exist, with the labels of pod security. Default: true."""
    values: Mapping[str, Any]
    """Values of the chart, merged over the defaults here by key; null removes a default. Unknown keys are refused."""
    unchecked_values: Mapping[str, Any]
    """Values whose keys the tested version does not have, for another version of the chart."""
    timeout: str
    """Time until all pods of the chart are ready. Default: 15m."""


class CertManagerArgs(ChartPartArgs, total=False):
    """cert-manager. No other part needs it."""

    highly_available: bool
    """Run two replicas of the controller and of the CA injector, and three of the webhook. Default: false."""


class ApiServerAddressArgs(TypedDict):
    """Address of the Kubernetes API that works without kube-proxy."""

    host: str
    """Name or address."""
    port: NotRequired[int]
    """Port. Default: 6443."""


class CiliumArgs(ChartPartArgs, total=False):
    """Cilium. If the Kubernetes has it already (GKE Dataplane V2, AKS powered by Cilium, Nebius), set exists: true."""

    mode: Annotated[str, CiliumMode]
    """Role in the network of the Kubernetes. Required unless exists: a wrong mode disconnects every pod. One of `own`,
    `chained`, `eks_chained`, `eks`, `gke`, `aks`."""
    cni_config_map: str
    """ConfigMap in Cilium's namespace with the conflist (key `cni-config`) that ends with `cilium-cni`, for mode
    chained."""
    pod_cidr: str
    """Addresses of pods. Required in mode gke, which routes them natively; in mode own, Cilium's pool."""
    kube_proxy_replacement: ApiServerAddressArgs
    """Replace kube-proxy, which must be off. Default: keep kube-proxy."""
    hubble: bool
    """Show flows through Hubble's relay: `hubble observe --verdict DROPPED` lists packets that a policy dropped.
    Default: true."""
    monitors: bool
    """Let Prometheus scrape Cilium. Default: if the platform has kube_prometheus_stack."""


class MetricsVolumeArgs(TypedDict, total=False):
    """Volume of Prometheus."""

    size_gib: int
    """Size in GiB. Default: 100, about a month for a hundred machines."""
    storage_class: pulumi.Input[str]
    """StorageClass of block storage (ReadWriteOnce), never of the shared NFS. Default: the default class of the
    Kubernetes."""


class GrafanaArgs(TypedDict, total=False):
    """Grafana."""

    enabled: bool
    """Install Grafana. If false, dashboards still become ConfigMaps, for your own Grafana. Default: true."""
    admin_secret: str
    """Secret in the namespace with the keys `admin-user` and `admin-password`. Default: a generated password in the
    Secret `grafana-admin`."""


class KubePrometheusStackArgs(ChartPartArgs, total=False):
    """Prometheus, its operator, Alertmanager, Grafana, kube-state-metrics and node-exporter."""

    definitions_version: str
    """Version of the chart `prometheus-operator-crds` that matches another `version`. Default: the tested version."""
    retention: str
    """Time for which Prometheus keeps samples. Default: 30d."""
    volume: MetricsVolumeArgs
    """Volume of Prometheus. With null, samples are lost with the pod."""
    managed_control_plane: bool
    """The provider runs etcd, scheduler and controller manager, so they cannot be scraped. Default: on EKS, GKE, AKS
    and Nebius."""
    kube_proxy: bool
    """Scrape kube-proxy. Default: unless the control plane is managed, or Cilium replaces kube-proxy."""
    grafana: GrafanaArgs
    """Grafana."""


class MariadbOperatorArgs(ChartPartArgs, total=False):
    """MariaDB's operator. On its own it runs no database."""

    highly_available: bool
    """Run three replicas of the operator. Databases also run without it. Default: false."""
    monitors: bool
    """Let Prometheus scrape the operator. Default: if the platform has kube_prometheus_stack."""


class GpuOperatorArgs(ChartPartArgs, total=False):
    """NVIDIA's GPU Operator. It never replaces the driver of a machine on its own: see docs/platform.md."""

    driver: Annotated[str, DriverSource]
    """Origin of the driver. Default: machine_image on EKS, GKE, AKS and Nebius, otherwise operator. One of `operator`,
    `machine_image`."""
    driver_version: str
    """Version of the driver that the operator loads. Default: the chart's."""
    rdma: bool
    """Load the module that gives network adapters access to GPU memory (GPUDirect RDMA). Default: false."""
    gdrcopy: bool
    """Load GDRCopy, which gives CPUs access to GPU memory, for NCCL's small messages. Default: false."""
    mig_strategy: Annotated[str, MigStrategy]
    """Naming of the resources of MIG devices. One of `single`, `mixed`. Default: single."""
    runtime_class: str
    """RuntimeClass of pods with GPUs, which the operator creates. Default: nvidia."""
    job_mapping: str
    """Directory on a machine with a file per GPU that names the GPU's job, for the label `hpc_job` in DCGM's metrics.
    Default: that of dcgm-exporter's documentation."""
    tolerations: Sequence[TolerationArgs]
    """Taints of machines with GPUs, in addition to `nvidia.com/gpu`."""
    install_dir: str
    """Directory of toolkit and driver on the machines. Default: the chart's; `/home/kubernetes/bin/nvidia` on GKE."""
    node_feature_discovery: bool
    """Install Node Feature Discovery, which labels machines. Set it to false if the Kubernetes has one. Default:
    true."""
    resource: str
    """Resource of whole GPUs, which node sets request. Default: nvidia.com/gpu."""


class SelectedDevicesArgs(TypedDict, total=False):
    """Network adapters, selected by their properties. All given criteria must match."""

    vendors: Sequence[str]
    """PCI vendors. Default: 15b3, Mellanox."""
    device_ids: Sequence[str]
    """PCI devices. Default: any device of the vendors."""
    interfaces: Sequence[str]
    """Interfaces on the machines. Default: any."""


class SharedRdmaPoolArgs(TypedDict):
    """RDMA adapters that the pods of a machine share, as the resource `rdma/<name>`."""

    name: str
    """Last part of the resource's name."""
    pods: NotRequired[int]
    """Pods of a machine that may use them at the same time. Default: 63, as in the plugin's example."""
    devices: NotRequired[SelectedDevicesArgs]
    """The adapters."""


class HostDevicePoolArgs(TypedDict):
    """Adapters or virtual functions for one pod at a time, as the resource `nvidia.com/<name>`."""

    name: str
    """Last part of the resource's name."""
    rdma: NotRequired[bool]
    """Only devices with RDMA. Default: true."""
    devices: NotRequired[SelectedDevicesArgs]
    """The adapters."""


class IpPoolArgs(TypedDict):
    """Addresses of secondary networks, assigned to machines in blocks (NVIDIA IPAM)."""

    name: str
    """Name of the IPPool."""
    subnet: str
    """All addresses of the pool."""
    addresses_per_node: NotRequired[int]
    """Number of addresses in a machine's block. Default: 64."""
    gateway: NotRequired[str]
    """Address of the gateway, in the subnet. Default: none."""
    routes: NotRequired[Sequence[str]]
    """Destinations that pods reach through the gateway, such as the subnets of other adapters. Default: none."""


class SecondaryNetworkArgs(TypedDict):
    """A network in addition to the pod network, as a NetworkAttachmentDefinition."""

    name: str
    """Name of the network, for the annotation `k8s.v1.cni.cncf.io/networks` of pods."""
    kind: Annotated[str, NetworkKind]
    """Kind of attachment. One of `host_device`, `macvlan`, `ipoib`."""
    namespace: NotRequired[str]
    """Namespace of the pods. Default: default."""
    pool: NotRequired[str]
    """Pool of the adapters. Required with kind host_device."""
    interface: NotRequired[str]
    """Interface of the machines. Required with kinds macvlan and ipoib."""
    ip_pool: NotRequired[str]
    """Pool of the addresses, one of ip_pools. Default: no address."""
    mtu: NotRequired[int]
    """Largest packet in bytes, with kind macvlan, at most that of the interface. Default: that of the interface."""


class NetworkOperatorArgs(ChartPartArgs, total=False):
    """NVIDIA's Network Operator, and the only NicClusterPolicy of the Kubernetes."""

    images: str
    """Folder of the images of drivers, device plugins and networks in the NicClusterPolicy, for a mirror. The image of
    the operator itself is set in the chart's values. Default: nvcr.io/nvidia/mellanox."""
    ofed_driver: str
    """Tag of the DOCA-OFED driver that the operator loads. Default: the driver in the machines' image."""
    shared_rdma: Sequence[SharedRdmaPoolArgs]
    """RDMA adapters that pods share: the simplest choice for one worker per machine."""
    host_devices: Sequence[HostDevicePoolArgs]
    """Adapters and virtual functions for one pod at a time."""
    ip_pools: Sequence[IpPoolArgs]
    """Addresses of secondary networks."""
    networks: Sequence[SecondaryNetworkArgs]
    """Secondary networks. A single one makes the operator install Multus next to the pod network."""
    node_selector: Mapping[str, str]
    """Labels of the machines. Default: all machines with an adapter."""
    tolerations: Sequence[TolerationArgs]
    """Taints of the machines, in addition to `nvidia.com/gpu`."""
    node_feature_discovery: bool
    """Install Node Feature Discovery. Default: unless the platform has a GPU Operator, which installs it."""


class CsiStorageClassArgs(TypedDict):
    """A StorageClass to create."""

    system: Annotated[str, StorageSystem]
    """Storage system behind the class. One of `nfs`, `efs`, `fsx_lustre`, `filestore`, `google_lustre`,
    `azure_files_nfs`, `azure_lustre`, `nebius`, `cephfs`, `vast`, `weka`, `juicefs`, `other`."""
    driver: NotRequired[str]
    """Name of the CSI driver. Default: the system's; required for other, and for a CephFS outside of Rook."""
    parameters: NotRequired[Mapping[str, str]]
    """Parameters of the class, which override those of the table in docs/storage.md."""
    mount_options: NotRequired[Sequence[str]]
    """Mount options. Default: those of the table."""


class ObjectReferenceArgs(TypedDict):
    """Kubernetes object, given by namespace and name."""

    namespace: str
    """Namespace of the object."""
    name: str
    """Name of the object."""


class CsiVolumeArgs(TypedDict):
    """A PersistentVolume of a CSI driver, on existing storage."""

    system: Annotated[str, StorageSystem]
    """Storage system behind the volume. One of `nfs`, `efs`, `fsx_lustre`, `filestore`, `google_lustre`,
    `azure_files_nfs`, `azure_lustre`, `nebius`, `cephfs`, `vast`, `weka`, `juicefs`, `other`."""
    handle: str
    """Name by which the driver knows the storage (volumeHandle), such as a file system's id."""
    driver: NotRequired[str]
    """Name of the CSI driver. Default: the system's; required for other, and for a CephFS outside of Rook."""
    attributes: NotRequired[Mapping[str, str]]
    """Attributes for the driver (volumeAttributes)."""
    node_stage_secret: NotRequired[ObjectReferenceArgs]
    """Secret with which a machine attaches the volume: CephFS."""
    node_publish_secret: NotRequired[ObjectReferenceArgs]
    """Secret with which a machine mounts the volume: JuiceFS, VAST, WEKA."""
    mount_options: NotRequired[Sequence[str]]
    """Mount options. Default: those of the table in docs/storage.md."""


class NfsVolumeArgs(TypedDict):
    """A PersistentVolume on a directory of an NFS server."""

    server: str
    """Name or address of the server. The kubelet cannot resolve names of the cluster's Services, csi-driver-nfs can."""
    path: str
    """Exported directory, with no_root_squash."""
    csi: NotRequired[bool]
    """Mount with csi-driver-nfs, which must be installed. Default: false; the kubelet mounts with the machines' own
    client (nfs-common, nfs-utils)."""
    mount_options: NotRequired[Sequence[str]]
    """Mount options. Default: nfsvers=4.2, hard, noatime, nconnect=8."""


class SharedStorageArgs(TypedDict, total=False):
    """Shared storage: exactly one of existing_claim, existing_class, storage_class, volume, nfs and host_path."""

    name: str
    """Name of the created StorageClass or PersistentVolume. Default: slurm-shared."""
    existing_claim: str
    """An existing claim in the cluster's namespace."""
    existing_class: str
    """An existing StorageClass."""
    storage_class: CsiStorageClassArgs
    """A StorageClass to create."""
    volume: CsiVolumeArgs
    """A PersistentVolume to create on existing storage."""
    nfs: NfsVolumeArgs
    """A PersistentVolume to create on a directory of an NFS server."""
    host_path: str
    """A directory of the machine: for one machine, or if all machines mount the same file system there."""
    size_gib: int
    """Size of the volume or claim in GiB. Most systems do not enforce it. Default: 100."""
    claim: ObjectReferenceArgs
    """A claim to create on the storage, for submounts. Its namespace must exist: set create_namespace: false for a
    cluster in it. Default: none, as clusters create the jail's claim."""
    keep: bool
    """Protect the created objects, and keep them in a `destroy`. Default: true; Kubernetes always retains the data."""


class PlatformArgs(TypedDict, total=False):
    """The platform of one Kubernetes. A part that is left out is neither installed nor checked."""

    kubernetes: Annotated[str, KubernetesKind]
    """Kind of the Kubernetes. One of `generic`, `eks`, `gke`, `aks`, `nebius`. Default: generic."""
    source: ChartSourceArgs
    """Location of all charts, such as a mirror without internet access. Default: the projects' own locations."""
    cert_manager: CertManagerArgs
    """cert-manager."""
    cilium: CiliumArgs
    """Cilium. Only for a Kubernetes cluster without a network, or in a mode on top of its network."""
    kube_prometheus_stack: KubePrometheusStackArgs
    """Prometheus, Alertmanager, Grafana and exporters."""
    mariadb_operator: MariadbOperatorArgs
    """MariaDB's operator."""
    gpu_operator: GpuOperatorArgs
    """NVIDIA's GPU Operator."""
    network_operator: NetworkOperatorArgs
    """NVIDIA's Network Operator."""
    storage_class: pulumi.Input[str]
    """Existing StorageClass of the shared volume of jails (ReadWriteMany). Default: none, and clusters name theirs."""
    shared_storage: SharedStorageArgs
    """Shared volume of jails (ReadWriteMany) with its class or its volume. Default: none, and clusters name theirs."""
