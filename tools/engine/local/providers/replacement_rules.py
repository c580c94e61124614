"""pulumi-kubernetes' rules for fields whose change replaces an object.

The Pulumi CLI follows them; the API server does not always refuse the same changes.
"""

from collections.abc import Mapping

from tools.engine.kubernetes import objects
from tools.engine.kubernetes.api_client import Object
from tools.engine.property_paths import ANY, Path, parse

_SELECTOR = (".spec.selector",)
_POD_SPEC = (
    "affinity", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks", "hostAliases",
    "hostIPC", "hostNetwork", "hostPID", "hostname", "imagePullSecrets", "nodeName", "nodeSelector", "overhead",
    "preemptionPolicy",
    "priority", "priorityClassName", "readinessGates", "restartPolicy", "runtimeClassName", "schedulerName",
    "securityContext", "serviceAccount", "serviceAccountName", "shareProcessNamespace", "subdomain",
    "terminationGracePeriodSeconds", "volumes",
)  # fmt: skip
_CONTAINER = (
    "args", "command", "env", "image", "imagePullPolicy", "lifecycle", "livenessProbe", "ports", "readinessProbe",
    "resources", "securityContext", "stdin", "stdinOnce", "terminationMessagePath", "terminationMessagePolicy", "tty",
    "volumeDevices", "volumeMounts", "workingDir",
)  # fmt: skip
_VOLUME_SOURCES = (
    "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flexVolume", "flocker",
    "gcePersistentDisk", "glusterfs", "hostPath", "iscsi", "local", "nfs", "photonPersistentDisk", "portworxVolume",
    "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
)  # fmt: skip

_FORCE_NEW: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("apps/v1", "StatefulSet"): (
        ".spec.podManagementPolicy", ".spec.revisionHistoryLimit", ".spec.serviceName", ".spec.volumeClaimTemplates",
        *_SELECTOR,
    ),
    ("apps/v1", "Deployment"): _SELECTOR,
    ("apps/v1", "DaemonSet"): _SELECTOR,
    ("batch/v1", "Job"): (".spec.completions", ".spec.parallelism", ".spec.template", *_SELECTOR),
    ("policy/v1beta1", "PodDisruptionBudget"): (".spec",),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): (".roleRef",),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): (".roleRef",),
    ("storage.k8s.io/v1", "StorageClass"): (".parameters", ".provisioner"),
    ("v1", "PersistentVolume"): tuple(f".spec.{source}" for source in _VOLUME_SOURCES),
    ("v1", "PersistentVolumeClaim"): (
        ".spec.accessModes", ".spec.storageClassName", ".spec.volumeName", *_SELECTOR,
    ),
    ("v1", "Pod"): (
        *(f".spec.{field}" for field in _POD_SPEC),
        *(f".spec.{kind}[*].{field}" for kind in ("containers", "initContainers") for field in _CONTAINER),
    ),
    ("v1", "ResourceQuota"): (".spec.scopes",),
    ("v1", "Service"): (".spec.clusterIP",),
}  # fmt: skip
_DATA = {"ConfigMap": (".data", ".binaryData"), "Secret": (".data", ".stringData", ".type")}

Fields = Mapping[str, object]


def force_new(new: Fields, *, config_map_mutable: bool, secret_mutable: bool) -> list[Path]:
    """Return the paths whose change replaces an object.

    Args:
        new: Object of the program.
        config_map_mutable: Changed data of a ConfigMap replaces it only if it is immutable.
        secret_mutable: The same for Secrets.
    """
    version, kind = str(new.get("apiVersion")), str(new.get("kind"))
    texts = [".metadata.name", ".metadata.namespace", *_FORCE_NEW.get((version, kind), ())]
    if version == "v1" and kind in _DATA:
        mutable = config_map_mutable if kind == "ConfigMap" else secret_mutable
        if not mutable or new.get("immutable") is True:
            texts += _DATA[kind]
        elif kind == "Secret":
            texts.append(".type")
    return [parse(text) for text in texts]


def replaces(path: Path, value: object, forced: list[Path]) -> bool:
    """Return True if a change at a path, to a value (None: removed), touches one of the forced paths."""
    return any(_touches(path, value, want) for want in forced)


def _touches(path: Path, value: object, want: Path) -> bool:
    common = min(len(path), len(want))
    if any(w not in {ANY, p} for p, w in zip(path[:common], want[:common], strict=True)):
        return False
    return len(want) <= len(path) or _has(value, want[common:])


def _has(value: object, rest: Path) -> bool:
    if not rest:
        return True
    if isinstance(value, Mapping):
        return str(rest[0]) in value and _has(value[str(rest[0])], rest[1:])
    return isinstance(value, list) and rest[0] == ANY and any(_has(item, rest[1:]) for item in value)


def keeps_its_name(before: Object, wanted: Object) -> bool:
    """Return True if a replacement would have the object's name, so that the object must be deleted first."""
    old, new = before.get("metadata"), wanted.get("metadata")
    if not isinstance(old, dict) or not isinstance(new, dict) or objects.annotation(wanted, objects.AUTONAMED):
        return False
    return all(old.get(key) == new.get(key) for key in ("name", "namespace")) and "name" in new
