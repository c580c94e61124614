"""Description of a cluster as typed dictionaries, for editors, type checkers, and the schema of other languages.

`make docs` writes this module from the models beside it, which check the values. A value that may be an Output is a
`pulumi.Input` here and a `Maybe` there.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi


class SlurmArgs(TypedDict, total=False):
    """Settings of Slurm for the whole cluster."""

    version: str
    """Version of Slurm in the images. Only `24.11`. Default: 24.11."""
    constrain: str
    """Enforcement of the CPUs and memory of jobs. Default: by cgroups; without them workers do not start. One of
    `cgroup`, `none`."""
    max_nodes: int
    """Nodes that the cluster may grow to without a change of slurm.conf. Default: 4096; each costs room in slurmctld's
    tables."""
    extra: Mapping[str, str | float]
    """Further parameters of slurm.conf, checked against Slurm's own. They replace our defaults. Parameters on which the
    cluster is built are refused."""


class TolerationArgs(TypedDict, total=False):
    """A taint of machines that the pods tolerate, as in a pod's `tolerations`."""

    key: str
    """The taint's key. Left out, with operator Exists: every taint."""
    operator: str
    """Comparison of key and value. One of `Equal`, `Exists`. Default: Equal."""
    value: str
    """The taint's value, with operator Equal."""
    effect: str
    """The taint's effect. Left out: every effect. One of `NoSchedule`, `PreferNoSchedule`, `NoExecute`."""
    toleration_seconds: int
    """Seconds that a pod stays after a NoExecute taint appears. Left out: for ever."""


class ScheduledArgs(TypedDict, total=False):
    """Placement and priority of every role's pods."""

    node_selector: Mapping[str, str]
    """Required labels of a machine. Default: any machine."""
    tolerations: Sequence[TolerationArgs]
    """Taints that the pods tolerate. Default: none."""
    affinity: Mapping[str, Any]
    """A pod's `affinity` as a Kubernetes manifest has it, keys in camelCase. Default: the role's own."""
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
    """Amounts beyond which CPU is throttled, and memory ends the container."""


class ControllerArgs(ScheduledArgs, total=False):
    """The pod that runs slurmctld."""

    pod_resources: PodResourcesArgs
    """Resources of the slurmctld container. Default: half a CPU and 1 GiB, at most 4 GiB of memory, and no limit of
    CPU: a throttled controller delays every job."""


class LoginArgs(ScheduledArgs, total=False):
    """The pods that run sshd."""

    replicas: int
    """Number of login pods, all with the same host key. 0 refuses all logins. Default: 1."""
    service: str
    """Access to ssh. Default: from inside the Kubernetes cluster only. One of `ClusterIP`, `NodePort`,
    `LoadBalancer`."""
    service_annotations: Mapping[str, str]
    """Annotations of the login Service, for the platform's load balancers."""
    allowed_sources: Sequence[str]
    """Addresses that may connect to sshd. Default: only `kubectl port-forward`. NodePort and LoadBalancer need at least
    one; `0.0.0.0/0` admits everybody."""
    docs: str
    """Address of the documents for users, shown at login. Default: Slurm's own."""
    max_processes: int
    """Processes and threads of a user in sessions on a login node (RLIMIT_NPROC). The kernel counts all pods of a
    machine together: where login nodes and workers share machines, set more than the node sets' `max_processes`, or
    users with large jobs there cannot log in. Default: 2048."""
    pod_resources: PodResourcesArgs
    """Resources of each sshd container, for all of its sessions. Default: half a CPU and 1 GiB, at most 8 GiB of
    memory."""


class DrainArgs(TypedDict, total=False):
    """Drain of nodes before their pods are deleted."""

    timeout: str
    """Time for running jobs to end, before `on_timeout` applies: `90s`, `10m`, `2h`, `7d`, `1h30m`. `0s` gives them
    none. Default: 2h."""
    on_timeout: str
    """Reaction after `timeout`. `abort`: undrain all nodes, and fail. `requeue`, `cancel`: treat the jobs that are
    left. `wait`: wait on until `max_wait`. Default: abort."""
    max_wait: str
    """With `on_timeout: wait`, time in all before the deployment aborts. Default: 7d."""
    not_requeueable: str
    """With `on_timeout: requeue`, treatment of jobs that cannot be requeued (interactive ones, `--no-requeue`).
    `abort`: touch no job, and undrain all nodes. One of `abort`, `cancel`. Default: abort."""
    reservations: str
    """Reaction to a reservation that names a leaving node. `report`: report it, and drain. `refuse`: drain nothing, and
    fail. Default: report."""
    pending_jobs: str
    """The same for a pending job that requests a leaving node by name. One of `report`, `refuse`. Default: report."""
    wait: bool
    """Wait for the jobs. With false, the deployment drains the nodes and succeeds; nodes that are not free stay until a
    later deployment, and `timeout` and `on_timeout` have no effect. Default: true."""
    grace: str
    """Time for the jobs of a worker pod that is deleted beside Pulumi, before Kubernetes kills it
    (`terminationGracePeriodSeconds`). A changed value recreates the workers, as any change of their pods does. Default:
    5m."""


class RollingUpdateArgs(TypedDict, total=False):
    """Recreation of workers whose pods have changed."""

    max_unavailable: int | str
    """Nodes out of service at a time: a number, or a percentage of the node set, rounded down, but at least one.
    Default: 10%."""


class NodeSetArgs(ScheduledArgs):
    """Equal worker pods. Pod, host and Slurm node are `<name>-<ordinal>`."""

    name: str
    """Name of the node set, its StatefulSet and its Slurm feature: a DNS label of at most 52 characters."""
    replicas: NotRequired[int]
    """Number of nodes. 0 keeps the node set without nodes. Default: 1."""
    cpus: int
    """CPUs of a node that Slurm schedules."""
    memory_gib: float
    """Memory of a node that Slurm schedules, in GiB."""
    partitions: NotRequired[Sequence[str]]
    """Partitions of the nodes. A partition that is not declared has defaults."""
    features: NotRequired[Sequence[str]]
    """Slurm features of the nodes besides the node set's name, for `--constraint`."""
    pod_resources: NotRequired[PodResourcesArgs]
    """Resources of the slurmd container. Default: requests and limits of exactly `cpus` and `memory_gib`, for a
    Guaranteed pod: when a machine's memory is out, the kernel kills slurmd last."""
    max_processes: NotRequired[int]
    """Processes and threads of a user in jobs on a node (RLIMIT_NPROC; the kernel counts all pods of a machine
    together). Default: 256 a CPU, at least 4096."""
    lock_memory: NotRequired[bool]
    """Let jobs lock all of their memory (RLIMIT_MEMLOCK), as RDMA needs. The container then starts with the capability
    SYS_RESOURCE, and gives it up before slurmd starts. Default: false."""
    ready_timeout_seconds: NotRequired[int]
    """Time in seconds for new nodes to join Slurm. Default: 10 minutes, enough for a large image and a new machine of
    most clouds."""
    max_unready: NotRequired[int | str]
    """Nodes that may be missing after that time: a number, or a percentage of the node set, rounded down. The
    deployment reports them and succeeds. Default: none."""
    wait_until_ready: NotRequired[bool]
    """Wait for new nodes. With false, pods that need a machine from an autoscaler first do not fail the deployment.
    Default: true."""
    drain: NotRequired[DrainArgs]
    """Drain of nodes before their pods are deleted."""
    rolling_update: NotRequired[RollingUpdateArgs]
    """Recreation of nodes whose pods have changed."""


class PartitionArgs(TypedDict):
    """A queue, of the nodes of all node sets that name it."""

    name: str
    """Name of the partition, for `--partition`."""
    default: NotRequired[bool]
    """Partition of jobs that name none. Default: the first partition."""
    options: NotRequired[Mapping[str, str | float]]
    """Further options of slurm.conf's partition line, such as `MaxTime: 2-00:00:00`, checked against Slurm's own."""


class UserArgs(TypedDict):
    """A person who may log in and run jobs, with the home directory `/home/<name>`, made at the first login."""

    name: str
    """Login name: a lower case letter or '_' first, then lower case letters, digits, '_' and '-', at most 32."""
    uid: int
    """Id of the user, the same on all nodes, and owner of the files in the home directory: never change it."""
    gid: NotRequired[int]
    """Id of the user's own group, named after the user unless `groups` has the id. Default: the uid."""
    groups: NotRequired[Sequence[str]]
    """Names of more groups, each declared in the cluster's `groups`."""
    ssh_keys: NotRequired[Sequence[str]]
    """Public keys, as lines of authorized_keys. Without one the user exists but cannot log in."""
    shell: NotRequired[str]
    """Login shell. Default: /bin/bash."""


class GroupArgs(TypedDict):
    """A group that several users share."""

    name: str
    """Name of the group."""
    gid: int
    """Id of the group, the same on all nodes."""


class TarballArgs(TypedDict):
    """A tarball of a root filesystem; plain or compressed by gzip, xz, bzip2 or zstd."""

    url: pulumi.Input[str]
    """Address of the tarball: http or https, reachable from the cluster, without credentials."""
    sha256: str
    """SHA-256 of the tarball, in hex. A tree with another sum is never complete."""


class JailSourceArgs(TypedDict, total=False):
    """Source of the jail: exactly one of image and tarball."""

    image: str
    """A container image of any distribution, with or without Slurm. The tree's id is made of this text, so a moved tag
    changes nothing: give a digest, or a new tag for new content."""
    tarball: TarballArgs
    """A tarball of a root filesystem."""


class VolumeArgs(TypedDict, total=False):
    """A PersistentVolumeClaim: a new one, or an existing one."""

    size_gib: int
    """Size of a new claim in GiB. Default: 100 for the jail, 10 for slurmctld's state."""
    storage_class: pulumi.Input[str]
    """StorageClass of a new claim. Default: the Kubernetes cluster's default class, or none with a static_volume."""
    existing_claim: pulumi.Input[str]
    """Name of an existing claim in the namespace, which has its own size and class."""
    static_volume: pulumi.Input[str]
    """Name of the PersistentVolume of a new claim, where no class provisions volumes."""


class SubmountArgs(TypedDict):
    """A volume at a path inside the jail: exactly one of existing_claim, host_path, scratch_gib and memory_gib."""

    path: str
    """Path in sessions and jobs, such as "/data". `/home`, `/tmp`, `/dev/shm` and (on workers) `/var/spool/slurmd`
    replace the default volumes. A volume below `/opt` or `/usr/local` is for programs: slurmd cannot enter these as the
    user, so no working directory or output of a job can be there."""
    roles: NotRequired[Sequence[str]]
    """Pods with the submount. Default: ssh sessions and jobs. One of `login`, `worker`."""
    read_only: NotRequired[bool]
    """Refuse all writes. Default: false."""
    existing_claim: NotRequired[pulumi.Input[str]]
    """Name of a claim in the namespace, ReadWriteMany or ReadOnlyMany, as many pods mount it."""
    sub_path: NotRequired[str]
    """Directory of the claim to mount. Default: the whole claim."""
    host_path: NotRequired[str]
    """Existing directory of the machine: a local disk, or a filesystem that all machines mount."""
    scratch_gib: NotRequired[int]
    """An empty directory on the machine's disk for each pod, of this size in GiB, gone with the pod."""
    memory_gib: NotRequired[float]
    """An empty directory in memory for each pod, of this size in GiB, gone with the pod. Its content counts as memory
    of the pod."""


class JailIsolationArgs(TypedDict, total=False):
    """Isolation of jobs on a node from each other, besides by their users."""

    pid: bool
    """Limit the tasks of a step to the step's own processes. Without it they see all processes of their user on the
    node, and never those of other users. Default: false."""
    ipc: bool
    """Give the tasks of a step System V IPC and POSIX message queues of their own. Default: those of the node, as
    always for files in /dev/shm, which modes guard."""
    user_namespaces: bool
    """Let jobs create user namespaces, as rootless containers do. These open more of the kernel to everybody who may
    run a job. Default: false."""


class PopulateArgs(ScheduledArgs, total=False):
    """The Job that fills a tree."""

    limit_mib_per_second: int
    """Limit of writes in MiB/s, to spare a volume that is in use. Default: none."""
    pod_resources: PodResourcesArgs
    """Resources of the Job's container. Default: one CPU and 512 MiB, at most 2 GiB of memory."""


class JailArgs(TypedDict, total=False):
    """The root filesystem of all sessions and jobs."""

    source: JailSourceArgs
    """Source of the root filesystem. A changed source fills a second tree beside the first, then switches to it;
    running sessions and jobs keep their tree. Default: images.jail."""
    active: str
    """Id of an older tree to switch back to. Default: the tree of the source."""
    keep_trees: int
    """Complete trees to keep, the active one among them, besides trees that a job or a session uses. Default: 2, for a
    switch back."""
    changes: str
    """Treatment of users' changes of the old tree in a switch. Default: list the changes, and do not switch. One of
    `refuse`, `carry_over`, `leave_behind`."""
    storage: VolumeArgs
    """The shared volume (ReadWriteMany) with the trees and, outside of them, the home directories."""
    submounts: Sequence[SubmountArgs]
    """Other volumes inside the jail."""
    isolation: JailIsolationArgs
    """Isolation of jobs on a node from each other."""
    populate: PopulateArgs
    """The Job that fills a tree."""
    admin_shell: bool
    """Run the admin shell's pod all the time. Default: false; `make admin` starts it for one session."""
    app_armor: str
    """AppArmor profile of the slurmd and sshd containers. Default: the container runtime's, which forbids mounting.
    Machines with AppArmor need "unconfined". Only `unconfined`."""


class NetworkArgs(TypedDict, total=False):
    """Destinations of login, worker and admin pods, besides the cluster's own pods and name servers."""

    egress: Sequence[str]
    """Destinations: `internet` (all addresses that are not private), `private` (the ranges of RFC 1918, RFC 6598 and
    RFC 4193), `cluster` (pods of all namespaces) and addresses in CIDR notation. Metadata services, link-local
    addresses and the Kubernetes API stay closed, unless a CIDR names one of them alone. Default: all three words."""
    closed_ports: Sequence[int | str]
    """TCP ports closed at all of these addresses, except on the cluster's own pods. Default: those of etcd, the
    Kubernetes API, the kubelet and its neighbours on every machine. An empty list closes none, for network plugins
    without ranges of ports (`endPort`)."""
    api_servers: Sequence[str]
    """Closed addresses of the Kubernetes API. Default: those of the Service `kubernetes` and its EndpointSlices in the
    namespace `default` at each deployment. Give ranges where they change."""


class StorageArgs(TypedDict, total=False):
    """Data that outlives pods, besides the jail."""

    state: VolumeArgs
    """slurmctld's state."""
    keep: bool
    """Protect the claims, the jail's too, and their namespace, and keep them in a `destroy`. Default: true; set false
    only for trials."""


class ImagesArgs(TypedDict):
    """The images, built from `images/` by `make images`, which prints their references."""

    controller: pulumi.Input[str]
    """slurmctld and the client programs."""
    worker: pulumi.Input[str]
    """slurmd and the client programs."""
    login: pulumi.Input[str]
    """sshd and the client programs."""
    munge: pulumi.Input[str]
    """munged, beside each of the others."""
    jail_tools: pulumi.Input[str]
    """Programs that fill and switch trees, merge users, and run the admin shell."""
    jail: NotRequired[str]
    """The root filesystem of sessions and jobs. Required without jail.source. A plain value, as the tree's id is made
    of it."""
    pull_policy: NotRequired[str]
    """Time of pulls. Default: once, as tags are hashes of the content. One of `Always`, `IfNotPresent`, `Never`."""
    pull_secrets: NotRequired[Sequence[pulumi.Input[str]]]
    """Names of Secrets in the namespace with the registry's credentials."""


class SecretRefArgs(TypedDict):
    """A key of an existing Secret in the cluster's namespace."""

    secret: pulumi.Input[str]
    """Name of the Secret."""
    key: NotRequired[str]
    """Key in the Secret's data. Default: munge.key, or ssh_host_ed25519_key."""


class SecretsArgs(TypedDict, total=False):
    """Sources of the cluster's keys."""

    munge_key: SecretRefArgs
    """Key with which Slurm's daemons authenticate each other. Default: generated, 128 random bytes."""
    ssh_host_key: SecretRefArgs
    """The login nodes' host key. Default: an ed25519 key made from 32 random bytes."""


class ClusterArgs(TypedDict, total=False):
    """A Slurm cluster on Kubernetes. Required: `name` (a component has a default), `node_sets` and `images`."""

    name: str
    """Slurm's name of the cluster: lower case letters, digits and '-', at most 40 characters."""
    namespace: str
    """Namespace of the cluster, without another SlurmCluster. Default: the cluster's name."""
    owner: str
    """Mark of the cluster's own objects and drains. Default: `<project>.<stack>.<component>`. When you rename one of
    them, set the owner to its former value."""
    create_namespace: bool
    """Create the namespace. With false, it must exist. Default: true."""
    cluster_domain: str
    """DNS domain of the Kubernetes cluster (the kubelet's `clusterDomain`), in which Slurm's pods resolve each other.
    Default: cluster.local."""
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
    """Partitions with settings of their own. A partition that only a node set names has defaults."""
    users: Sequence[UserArgs]
    """People who may log in and run jobs."""
    groups: Sequence[GroupArgs]
    """Groups of users. A user's own group needs no entry."""
    jail: JailArgs
    """The root filesystem of all sessions and jobs, on one volume with the homes."""
    network: NetworkArgs
    """Network destinations of jobs and sessions."""
    storage: StorageArgs
    """The volume of slurmctld's state, and the protection of volumes."""
    images: ImagesArgs
    """Container images."""
    secrets: SecretsArgs
    """Secrets with keys of your own. Default: generated keys."""
