"""Accounts of what a cluster of soperator has and a cluster of ours does not."""

from soperator_pulumi.convert.monitoring_parts import MACHINES, METRICS
from soperator_pulumi.convert.required_values import WHY
from soperator_pulumi.convert.rules import Rule, cannot, empty, needless
from soperator_pulumi.convert.service_parts import ACCOUNTING, REST

SCRIPTS = "health checks, prologs and epilogs of soperator are not in images of ours"
CONTROLLERS = "soperator's own controllers are not needed: `up` does their work"
_DIRECTORIES = "users come from `users`; directories such as LDAP are not supported yet"
_PLUGINS = "SPANK plugins other than the jail's are not supported"
_NAMESPACES = "pods of ours share the user namespace of the machine"

CLUSTER_RULES: tuple[Rule, ...] = (
    *empty(
        "annotations.**",
        "imagePullSecrets.**",
        "secrets.**",
        "slurmConfig.**",
        "customSlurmConfig",
        "partitionConfiguration.**",
        "populateJail.imagePullSecrets.**",
        "populateJail.imagePullPolicy",
        "populateJail.priorityClass",
        "slurmNodes.controller.priorityClass",
        "slurmNodes.login.priorityClass",
        "slurmNodes.login.sshdServiceAnnotations.**",
        "slurmNodes.login.sshdServiceLoadBalancerSourceRanges.**",
    ),
    *needless("a state of the moment; a tree of ours is filled once and never overwritten", "maintenance"),
    *cannot(
        "profiles of the Security Profiles Operator are not made; jail.app_armor names one that the machines have",
        "useDefaultAppArmorProfile",
        switch="useDefaultAppArmorProfile",
    ),
    *cannot(SCRIPTS, "healthCheckConfig.**"),
    *cannot("Slurm's topology is not supported yet", "topology.**"),
    *cannot("cgroup.conf is rendered: slurm.constrain is cgroup or none", "customCgroupConfig"),
    *needless("version 2 is found by the images", "cgroupVersion"),
    *cannot("files beside slurm.conf are not taken; jobs set variables of MPI themselves", "mpiConfig.**"),
    *cannot(_PLUGINS, "plugStackConfig.ncclDebug.**", switch="plugStackConfig.ncclDebug.enabled"),
    *cannot(_PLUGINS, "plugStackConfig.ncclInspectorPreConf.**", switch="plugStackConfig.ncclInspectorPreConf.enabled"),
    *cannot("containers by Pyxis are not supported yet", "plugStackConfig.pyxis.**"),
    *cannot(_PLUGINS, "plugStackConfig.**"),
    *cannot("a tree of ours is filled from an image or a tarball: jail.source", "populateJail.jailSnapshotVolume.**"),
    *cannot("a tree of ours is never overwritten; a changed source fills another one", "populateJail.overwrite"),
    *needless("the container has the runtime's profile", "populateJail.appArmorProfile"),
    *needless(_NAMESPACES, "populateJail.hostUsers", "slurmNodes.*.hostUsers", "sConfigController.**.hostUsers"),
    *cannot(WHY, "populateJail.image"),
    *cannot(
        "no pod of ours is placed by it: it is a filter of soperator's other pods, or of none", "k8sNodeFilters.**"
    ),
    *cannot("no pod of ours mounts it: it is a volume of soperator's other pods, or of none", "volumeSources.**"),
    *cannot(ACCOUNTING, "slurmNodes.accounting.**", switch="slurmNodes.accounting.enabled"),
    *cannot(REST, "slurmNodes.rest.**", switch="slurmNodes.rest.enabled"),
    *cannot(METRICS, "slurmNodes.exporter.**", switch="slurmNodes.exporter.enabled"),
    *cannot(METRICS, "slurmNodes.controller.openMetrics.**", switch="slurmNodes.controller.openMetrics.enabled"),
    *cannot(MACHINES, "slurmNodes.*.nodeExporter.**"),
    *cannot(_DIRECTORIES, "slurmNodes.sssd.**", switch="slurmNodes.sssd.enabled"),
    *needless("it goes with sssd", "slurmNodes.*.sssdDebugLevel"),
    *cannot(
        _DIRECTORIES,
        "slurmNodes.*.sssd.**",
        "slurmNodes.*.sssdConfSecretRefName",
        "slurmNodes.*.sssdLdapCAConfigMapRefName",
    ),
    *needless(
        "slurmctld of ours needs no rights in Kubernetes", "slurmNodes.*.rbac.**", "slurmNodes.*.serviceAccount.**"
    ),
    *needless("slurmctld of ours needs no rights in Kubernetes", "slurmNodes.*.serviceAccountName"),
    *needless(
        "access modes of ours are fixed", "slurmNodes.controller.volumes.spool.volumeClaimTemplateSpec.accessModes.**"
    ),
    *cannot("a claim of ours has a size and a class", "slurmNodes.controller.volumes.spool.**"),
    *needless("slurmctld of ours mounts no jail by a name", "slurmNodes.*.volumes.jail.**"),
    *cannot(
        "the volume is mounted beside the jail, where no session sees it; jail.submounts mounts into the jail",
        "slurmNodes.*.volumes.customMounts.**",
    ),
    *cannot(
        "submounts name a claim, a directory of the machine, or scratch", "slurmNodes.login.volumes.jailSubMounts.**"
    ),
    *cannot(
        "nobody logs in as root: declare people under `users`, each with a uid and keys",
        "slurmNodes.login.sshRootPublicKeys.**",
    ),
    *cannot(
        "Kubernetes chooses it; a load balancer takes it by an annotation", "slurmNodes.login.sshdServiceLoadBalancerIP"
    ),
    *cannot("Kubernetes chooses the port", "slurmNodes.login.sshdServiceNodePort"),
    *cannot("sshd_config is rendered", "slurmNodes.login.sshdConfigMapRefName"),
    *cannot(
        "sessions of one user are not limited in memory; login.max_processes limits their processes",
        "slurmNodes.login.userIsolation.**",
        switch="slurmNodes.login.userIsolation.enabled",
    ),
    *cannot("commands of containers are fixed", "slurmNodes.*.*.command.**", "slurmNodes.*.*.args.**"),
    *cannot("daemons of ours take no environment from the spec", "slurmNodes.*.*.customEnv.**"),
    *cannot("limits of users' processes are max_processes and lock_memory", "slurmNodes.*.*.securityLimitsConfig"),
    *cannot("pods of ours take no further containers", "slurmNodes.*.customInitContainers.**"),
    *cannot(WHY, "slurmNodes.*.*.image"),
    *cannot("all images have one pull_policy and one list of pull_secrets", "slurmNodes.*.*.imagePullPolicy"),
    *cannot("all images have one pull_policy and one list of pull_secrets", "slurmNodes.*.*.imagePullSecrets.**"),
    *needless("munged beside each daemon has small resources of its own", "slurmNodes.*.munge.resources.**"),
    *cannot("resources of ours are CPU and memory", "slurmNodes.*.*.resources.**"),
    *needless(
        "probes, ports and profiles of ours are fixed",
        "slurmNodes.*.*.livenessProbe.**",
        "slurmNodes.*.*.readinessProbe.**",
        "slurmNodes.*.*.port",
        "slurmNodes.*.*.appArmorProfile",
        "slurmNodes.*.*.procMount",
    ),
    *needless(CONTROLLERS, "sConfigController.**"),
)
"""Accounts of what `convert_cluster` leaves."""

CLUSTER_DEFAULTS = {
    "partitionConfiguration": {"configType": "default"},
    "slurmNodes": {
        "controller": {"openMetrics": {"enabled": True}},
        "login": {"sshdServiceType": "LoadBalancer"},
        "exporter": {"enabled": True},
    },
}
"""Defaults of the chart and the custom resource (5.0.0) that differ from ours."""
