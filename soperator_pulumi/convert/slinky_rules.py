"""Accounts of what a cluster of Slinky has and a cluster of ours does not."""

from soperator_pulumi.convert.gpu_parts import WRITTEN_BY_PODS
from soperator_pulumi.convert.kubernetes_objects import CHART_LABELS
from soperator_pulumi.convert.monitoring_parts import METRICS
from soperator_pulumi.convert.required_values import WHY
from soperator_pulumi.convert.rules import Rule, cannot, empty, needless

KEYS = "daemons of ours know each other by a munge key, which is generated: secrets.munge_key names one of your own"
TOKENS = "tokens are signed by a key of the new cluster, or by one of your own: `scontrol token` makes them"
SCRIPTS = "prologs and epilogs become `hooks`: give each script as hooks.prolog or hooks.epilog, after reading it"
DIRECTORIES = "users come from `users`; directories such as LDAP are not supported yet"
VENDORS = "integrations of vendors are not supported yet"
FILES = {
    "cgroup.conf": "cgroup.conf is rendered: slurm.constrain is cgroup or none",
    "gres.conf": WRITTEN_BY_PODS,
    "plugstack.conf": "SPANK plugins other than the jail's are not supported",
    "topology.yaml": "Slurm's topology is not supported yet",
    "topology.conf": "Slurm's topology is not supported yet",
}
FILE = "files beside slurm.conf are not taken"

_OTHER_RESOURCES = "resources of ours are CPU, memory, and devices of workers"
_CONTAINERS = "pods of ours take no further containers"
_ARGUMENTS = "arguments and environment of daemons are fixed"
_METADATA = "labels and annotations of ours are those of all objects (labels, annotations)"


def _container(name: str) -> tuple[Rule, ...]:
    """Return the rules of the container of a daemon."""
    return (
        *cannot(WHY, f"{name}.image", f"{name}.image.**"),
        *cannot(_OTHER_RESOURCES, f"{name}.resources.**"),
        *cannot(_ARGUMENTS, f"{name}.args.**", f"{name}.env.**", f"{name}.command.**"),
        *cannot("privileges of containers are fixed", f"{name}.securityContext.**"),
        *needless("containers of ours have the time of pulls of all images", f"{name}.imagePullPolicy"),
        *cannot("the pod has no volume of this name", f"{name}.volumeMounts.**"),
    )


def _sidecar(name: str) -> tuple[Rule, ...]:
    return needless("a container beside the daemon, which ours do not have", f"{name}.**")


_PODS: tuple[Rule, ...] = (
    *cannot("the pod mounts it for no job and no session", "volumes.**"),
    *cannot(_CONTAINERS, "initContainers.**", "containers.**"),
    *cannot(_OTHER_RESOURCES, "resources.**"),
    *empty("nodeSelector", "affinity", "tolerations", "priorityClassName", "imagePullSecrets"),
    *needless("pods of ours are named after their node set", "hostname"),
    *cannot("the specification of pods is fixed, but for their placement and priority", "**"),
)


def pod_rules(path: str, metadata: str) -> tuple[Rule, ...]:
    """Return the rules of a pod's spec at a path, and of its labels and annotations at another."""
    return (
        *needless(CHART_LABELS, f"{metadata}.labels.helm*chart", f"{metadata}.labels.app*kubernetes*io/*"),
        *cannot(_METADATA, f"{metadata}.**"),
        *(Rule(f"{path}.{each.pattern}", each.verdict, each.text) for each in _PODS),
    )


CONTROLLER_RULES: tuple[Rule, ...] = (
    *empty("extraConf", "extraConfMap.**"),
    *needless("there is no slurmctld elsewhere", "externalConfig.**"),
    *cannot("a slurmctld elsewhere is not supported: a cluster has its own", "external", switch="external"),
    *cannot("there is one slurmctld, which Kubernetes starts again elsewhere", "ha.**", switch="ha.enabled"),
    *needless("a changed file is always a reconfigure in place", "inplaceReconfigure"),
    *_container("slurmctld"),
    *_sidecar("reconfigure"),
    *_sidecar("logfile"),
    *needless("access modes of ours are fixed", "persistence.accessModes.**"),
    *cannot("a claim of ours has a size and a class", "persistence.**"),
    *cannot("slurmctld is reached from the cluster's own pods alone", "service.**"),
    *cannot(METRICS, "metrics.**", switch="metrics.enabled"),
)
"""Accounts of what `put_controller` leaves."""

LOGIN_RULES: tuple[Rule, ...] = (
    *needless("this set is the login nodes", "enabled"),
    *_container("login"),
    *_sidecar("initconf"),
    *cannot("nobody logs in as root: declare people under `users`, each with a uid and keys", "rootSshAuthorizedKeys"),
    *cannot("sshd_config is rendered", "extraSshdConfig"),
    *cannot(DIRECTORIES, "sssdConfRef.**"),
    *needless("login nodes of ours are updated one at a time", "strategy.**"),
    *cannot("Kubernetes chooses the ports", "service.port", "service.nodePort"),
    *cannot("the Service has a type, annotations and allowed sources", "service.**"),
    *needless("login nodes of ours stand in their cluster", "controllerRef.**"),
)
"""Accounts of what `put_login` leaves."""

NODE_SET_RULES: tuple[Rule, ...] = (
    *empty("extraConf", "extraConfMap.**"),
    *needless("a node set of ours is there or not", "enabled"),
    *needless("a node set of ours has a number of nodes", "scalingMode"),
    *cannot("a node set of ours has a number of nodes", "replicas"),
    *cannot("pods of ours go to any machine that fits", "pinToNode", switch="pinToNode"),
    *needless("pods of workers are never evicted", "workloadDisruptionProtection"),
    *needless("records of nodes that left are always removed", "pruneSlurmNodeRecords"),
    *cannot("names of nodes end in a plain number", "ordinalPadding"),
    *needless("several workers may be on one machine; give workers whole machines by their size", "oversubscribeNode"),
    *_container("slurmd"),
    *_sidecar("logfile"),
    *needless("the node set makes no partition of its own", "partition.**"),
    *cannot("nobody logs in to workers", "ssh.**", switch="ssh.enabled"),
    *needless("a node of ours is always drained before its pod is recreated", "updateStrategy.type"),
    *cannot("updates are part of `up`; Slurm's reservations are its own", "updateStrategy.**"),
    *cannot("workers have no claims", "volumeClaimTemplates.**", "persistentVolumeClaimRetentionPolicy.**"),
    *needless("node sets of ours stand in their cluster", "controllerRef.**"),
    *needless("pods of ours count when their node has joined Slurm", "minReadySeconds", "revisionHistoryLimit"),
)
"""Accounts of what `put_node_set` leaves."""
