"""Accounts of parts of a soperator cluster that a cluster here does not have."""

from soperator_pulumi.convert.container_parts import PLUGINS
from soperator_pulumi.convert.required_values import WHY
from soperator_pulumi.convert.rules import Rule, cannot, empty, needless
from soperator_pulumi.convert.service_parts import ACCOUNTING, MACHINES, METRICS, REST

SCRIPTS = "images here do not have soperator's health checks, prologs and epilogs"
CONTROLLERS = "soperator's own controllers are not needed: `up` does their work"
_DIRECTORIES = "users come from `users`; directories such as LDAP are not supported yet"
_NAMESPACES = "pods here share the user namespace of the machine"

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
    *needless("workers are node sets, and this one has no size", "slurmNodes.worker.**"),
    *needless("the workers are node sets with or without GPUs", "clusterType"),
    *needless("a temporary state; a tree here is filled once and never overwritten", "maintenance"),
    *cannot(
        "profiles of the Security Profiles Operator are not created; jail.app_armor names one that the machines have",
        "useDefaultAppArmorProfile",
        switch="useDefaultAppArmorProfile",
    ),
    *cannot(SCRIPTS, "healthCheckConfig.**"),
    *cannot("Slurm's topology is not supported yet", "topology.**"),
    *cannot("cgroup.conf is rendered: slurm.constrain is cgroup or none", "customCgroupConfig"),
    *needless("the images detect version 2", "cgroupVersion"),
    *cannot("other files than slurm.conf are not converted; jobs set variables of MPI themselves", "mpiConfig.**"),
    *cannot(PLUGINS, "plugStackConfig.ncclDebug.**", switch="plugStackConfig.ncclDebug.enabled"),
    *cannot(PLUGINS, "plugStackConfig.ncclInspectorPreConf.**", switch="plugStackConfig.ncclInspectorPreConf.enabled"),
    *needless("every user has a store of images, which all nodes use", "plugStackConfig.pyxis.importerPath"),
    *cannot(
        "images are unpacked, not mounted as squashfs files",
        "plugStackConfig.pyxis.useSquashfuse",
        switch="plugStackConfig.pyxis.useSquashfuse",
    ),
    *cannot(
        "images stay in the store of their user: --container-save saves one as a file",
        "plugStackConfig.pyxis.containerImageSave",
    ),
    *cannot(PLUGINS, "plugStackConfig.**"),
    *cannot("a tree here is filled from an image or a tarball: jail.source", "populateJail.jailSnapshotVolume.**"),
    *cannot("a tree here is never overwritten; a changed source fills another one", "populateJail.overwrite"),
    *needless("the container has the runtime's profile", "populateJail.appArmorProfile"),
    *needless(_NAMESPACES, "populateJail.hostUsers", "slurmNodes.*.hostUsers", "sConfigController.**.hostUsers"),
    *cannot(WHY, "populateJail.image"),
    *cannot("it places no pod here: it is a filter for soperator's other pods, or for none", "k8sNodeFilters.**"),
    *cannot("no pod here mounts it: it is a volume of soperator's other pods, or of none", "volumeSources.**"),
    *cannot(ACCOUNTING, "slurmNodes.accounting.**", switch="slurmNodes.accounting.enabled"),
    *cannot(REST, "slurmNodes.rest.**", switch="slurmNodes.rest.enabled"),
    *cannot(METRICS, "slurmNodes.exporter.**", switch="slurmNodes.exporter.enabled"),
    *cannot(METRICS, "slurmNodes.controller.openMetrics.**", switch="slurmNodes.controller.openMetrics.enabled"),
    *cannot(MACHINES, "slurmNodes.*.nodeExporter.**"),
    *cannot(_DIRECTORIES, "slurmNodes.sssd.**", switch="slurmNodes.sssd.enabled"),
    *needless("it belongs to sssd", "slurmNodes.*.sssdDebugLevel"),
    *cannot(
        _DIRECTORIES,
        "slurmNodes.*.sssd.**",
        "slurmNodes.*.sssdConfSecretRefName",
        "slurmNodes.*.sssdLdapCAConfigMapRefName",
    ),
    *needless("slurmctld needs no rights in Kubernetes here", "slurmNodes.*.rbac.**", "slurmNodes.*.serviceAccount.**"),
    *needless("slurmctld needs no rights in Kubernetes here", "slurmNodes.*.serviceAccountName"),
    *needless("access modes are fixed", "slurmNodes.controller.volumes.spool.volumeClaimTemplateSpec.accessModes.**"),
    *cannot("a claim here has a size and a class", "slurmNodes.controller.volumes.spool.**"),
    *needless("slurmctld mounts no named jail here", "slurmNodes.*.volumes.jail.**"),
    *cannot(
        "the volume is mounted outside the jail, where no session sees it; jail.submounts mounts into the jail",
        "slurmNodes.*.volumes.customMounts.**",
    ),
    *cannot(
        "submounts name a claim, a directory of the machine, or scratch", "slurmNodes.login.volumes.jailSubMounts.**"
    ),
    *cannot(
        "root cannot log in: declare people under `users`, with a uid and keys",
        "slurmNodes.login.sshRootPublicKeys.**",
    ),
    *cannot(
        "Kubernetes chooses it; a load balancer takes it by an annotation", "slurmNodes.login.sshdServiceLoadBalancerIP"
    ),
    *needless("only a NodePort has it", "slurmNodes.login.sshdServiceNodePort"),
    *cannot("sshd_config is rendered", "slurmNodes.login.sshdConfigMapRefName"),
    *cannot(
        "sessions of one user are not limited in memory; login.max_processes limits their processes",
        "slurmNodes.login.userIsolation.**",
        switch="slurmNodes.login.userIsolation.enabled",
    ),
    *cannot("commands of containers are fixed", "slurmNodes.*.*.command.**", "slurmNodes.*.*.args.**"),
    *cannot("daemons take no environment from the spec", "slurmNodes.*.*.customEnv.**"),
    *cannot("limits of users' processes are max_processes and lock_memory", "slurmNodes.*.*.securityLimitsConfig"),
    *cannot("pods here take no additional containers", "slurmNodes.*.customInitContainers.**"),
    *cannot(WHY, "slurmNodes.*.*.image"),
    *cannot("all images have one pull_policy and one list of pull_secrets", "slurmNodes.*.*.imagePullPolicy"),
    *cannot("all images have one pull_policy and one list of pull_secrets", "slurmNodes.*.*.imagePullSecrets.**"),
    *needless("the munged of a daemon has its own small resources", "slurmNodes.*.munge.resources.**"),
    *cannot("resources here are CPU and memory", "slurmNodes.*.*.resources.**"),
    *needless(
        "probes, ports and profiles are fixed",
        "slurmNodes.*.*.livenessProbe.**",
        "slurmNodes.*.*.readinessProbe.**",
        "slurmNodes.*.*.port",
        "slurmNodes.*.*.appArmorProfile",
        "slurmNodes.*.*.procMount",
    ),
    *needless(CONTROLLERS, "sConfigController.**"),
)
"""Accounts of values that `convert_cluster` does not convert."""

CLUSTER_DEFAULTS = {
    "partitionConfiguration": {"configType": "default"},
    "plugStackConfig": {"pyxis": {"required": True}},
    "slurmNodes": {
        "controller": {"openMetrics": {"enabled": True}},
        "login": {"sshdServiceType": "LoadBalancer"},
        "exporter": {"enabled": True},
    },
}
"""Defaults of the chart and the custom resource (5.0.0) that differ from those here."""
