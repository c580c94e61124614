"""Accounts of parts of a Slinky cluster that a cluster here does not have."""

from soperator_pulumi.convert.gpu_parts import WRITTEN_BY_PODS
from soperator_pulumi.convert.required_values import WHY
from soperator_pulumi.convert.rules import Rule, cannot, empty, needless
from soperator_pulumi.convert.service_parts import METRICS
from soperator_pulumi.convert.user_pod_parts import metadata_rules

KEYS = "daemons here share a generated munge key; secrets.munge_key names your own"
TOKENS = "tokens are signed by the new cluster's key, or by your own: `scontrol token` creates them"
SCRIPTS = "prologs and epilogs become `hooks`: review the scripts, and give them as hooks.prolog or hooks.epilog"
DIRECTORIES = "users come from `users`; directories such as LDAP are not supported yet"
VENDORS = "integrations of vendors are not supported yet"
FILES = {
    "cgroup.conf": "cgroup.conf is rendered: slurm.constrain is cgroup or none",
    "gres.conf": WRITTEN_BY_PODS,
    "topology.yaml": "Slurm's topology is not supported yet",
    "topology.conf": "Slurm's topology is not supported yet",
}
FILE = "other files than slurm.conf are not converted"

_OTHER_RESOURCES = "resources here are CPU, memory, and devices of workers"
_CONTAINERS = "pods here take no additional containers"
_ARGUMENTS = "arguments and environment of daemons are fixed; variables of jobs are node_sets[].environment"
_METADATA = "labels and annotations are set for all objects together (labels, annotations)"


_CONTAINER_KEYS = (
    *("envFrom", "lifecycle", "livenessProbe", "ports", "readinessProbe", "resizePolicy", "restartPolicy"),
    *("startupProbe", "stdin", "stdinOnce", "terminationMessagePath", "terminationMessagePolicy", "tty"),
    *("volumeDevices", "workingDir"),
)
"""Further keys of a container in Kubernetes, which Slinky passes on."""


def _container(name: str) -> tuple[Rule, ...]:
    """Return the rules for the container of a daemon."""
    return (
        *cannot(WHY, f"{name}.image", f"{name}.image.**"),
        *cannot(_OTHER_RESOURCES, f"{name}.resources.**"),
        *cannot(_ARGUMENTS, f"{name}.args.**", f"{name}.env.**", f"{name}.command.**"),
        *cannot("privileges of containers are fixed", f"{name}.securityContext.**"),
        *needless("all images have the same pull_policy", f"{name}.imagePullPolicy"),
        *cannot("the pod has no volume of this name", f"{name}.volumeMounts.**"),
        *cannot("containers of daemons have no such setting here", *(f"{name}.{key}.**" for key in _CONTAINER_KEYS)),
    )


def _sidecar(name: str) -> tuple[Rule, ...]:
    return needless("a sidecar of the daemon, which pods here do not have", f"{name}.**")


_PODS: tuple[Rule, ...] = (
    *cannot("the pod does not mount it for jobs or sessions", "volumes.**"),
    *cannot(_CONTAINERS, "initContainers.**", "containers.**"),
    *cannot(_OTHER_RESOURCES, "resources.**"),
    *empty("nodeSelector", "affinity", "tolerations", "priorityClassName", "imagePullSecrets"),
    *needless("pods are named after their node set", "hostname"),
    *cannot("pods of this role have no such setting here", "**"),
)


def pod_rules(path: str, metadata: str) -> tuple[Rule, ...]:
    """Return the rules for a pod's spec at a path, and for its labels and annotations at another."""
    return (
        *metadata_rules(f"{metadata}.labels"),
        *metadata_rules(f"{metadata}.annotations"),
        *cannot(_METADATA, f"{metadata}.**"),
        *(Rule(f"{path}.{rule.pattern}", rule.verdict, rule.text) for rule in _PODS),
    )


_CLAIM_KEYS = (
    *("annotations", "labels", "existingClaim", "dataSource", "dataSourceRef", "resources", "selector"),
    *("storageClassName", "volumeAttributesClassName", "volumeMode", "volumeName"),
)
"""Keys of a claim in the chart: those of Kubernetes, and the claim's own labels and annotations."""

CONTROLLER_RULES: tuple[Rule, ...] = (
    *empty("extraConf", "extraConfMap.**"),
    *cannot(
        "an external slurmctld is not supported: a cluster has its own",
        "external",
        "externalConfig.**",
        switch="external",
    ),
    *cannot("there is one slurmctld, which Kubernetes restarts on another machine", "ha.**", switch="ha.enabled"),
    *needless("a changed file always causes a reconfigure in place", "inplaceReconfigure"),
    *_container("slurmctld"),
    *_sidecar("reconfigure"),
    *_sidecar("logfile"),
    *needless("access modes are fixed", "persistence.accessModes.**"),
    *cannot("a claim here has a size and a class: storage.state", *(f"persistence.{key}.**" for key in _CLAIM_KEYS)),
    *cannot("only the cluster's own pods reach slurmctld", "service.**"),
    *cannot(_METADATA, "metrics.serviceMonitor.labels.**", switch="metrics.serviceMonitor.enabled"),
    *cannot(METRICS, "metrics.**", switch="metrics.enabled"),
)
"""Accounts of values that `put_controller` does not convert."""

LOGIN_RULES: tuple[Rule, ...] = (
    *needless("a set of login nodes exists or not", "enabled"),
    *_container("login"),
    *_sidecar("initconf"),
    *cannot("root cannot log in: declare people under `users`, with a uid and keys", "rootSshAuthorizedKeys"),
    *cannot("sshd_config is rendered", "extraSshdConfig"),
    *cannot(DIRECTORIES, "sssdConfRef.**", "sssdConf"),
    *needless("login nodes are updated one at a time", "strategy.**"),
    *cannot("the Service has the port of ssh", "service.port"),
    *needless("only a NodePort or a LoadBalancer has it", "service.nodePort"),
    *cannot("the Service here has only a type, annotations, and allowed sources", "service.**"),
    *needless("login nodes are part of their cluster", "controllerRef.**"),
)
"""Accounts of values that `put_login` does not convert."""

NODE_SET_RULES: tuple[Rule, ...] = (
    *empty("extraConf", "extraConfMap.**"),
    *needless("a node set exists or not", "enabled"),
    *needless("a node set here has a number of nodes", "scalingMode"),
    *needless("taints of machines are not changed", "taintKubeNodes"),
    *needless("nodes always have the size of their pods", "useResourceLimits"),
    *cannot("a node set here has a number of nodes", "replicas"),
    *cannot("pods run on any machine that fits", "pinToNode", switch="pinToNode"),
    *needless("pods of workers are never evicted", "workloadDisruptionProtection"),
    *needless("records of nodes that left are always removed", "pruneSlurmNodeRecords"),
    *cannot("names of nodes end in a plain number", "ordinalPadding"),
    *needless("several workers may share a machine, unless they have its whole size", "oversubscribeNode"),
    *_container("slurmd"),
    *_sidecar("logfile"),
    *cannot("users cannot log in to workers", "ssh.**", switch="ssh.enabled"),
    *needless("a node is always drained before its pod is recreated", "updateStrategy.type"),
    *cannot("updates are part of `up`, and create no reservations in Slurm", "updateStrategy.**"),
    *cannot("workers have no claims", "volumeClaimTemplates.**", "persistentVolumeClaimRetentionPolicy.**"),
    *needless("node sets are part of their cluster", "controllerRef.**"),
    *needless("pods count as ready when their node has joined Slurm", "minReadySeconds", "revisionHistoryLimit"),
)
"""Accounts of values that `put_node_set` does not convert."""
