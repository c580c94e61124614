"""Conversion of objects between the program, the API server and the state."""

import hashlib
from collections.abc import Mapping
from typing import Any

from pulumi.provider.experimental.property_value import PropertyValue

from tools.engine.kubernetes.api_client import Object
from tools.engine.protocol import unsupported
from tools.engine.values import Plain, Properties, mark_secrets, plain_map, properties_of

INPUTS = "__inputs"
"""Key of the inputs in a resource's outputs, as pulumi-kubernetes has it."""
AUTONAMED = "pulumi.com/autonamed"
PATCH_FORCE = "pulumi.com/patchForce"
FIELD_MANAGER = "pulumi.com/patchFieldManager"
SKIP_AWAIT = "pulumi.com/skipAwait"
TIMEOUT = "pulumi.com/timeoutSeconds"
PROPAGATION = "pulumi.com/deletionPropagationPolicy"
_REFUSED_ANNOTATIONS = ("pulumi.com/waitFor", "pulumi.com/replaceUnready")
_REFUSED_MODULES = ("helm.sh", "yaml", "kustomize")
_NOT_AWAITED = {("networking.k8s.io/v1", "Ingress"), ("v1", "ReplicationController")}
"""Kinds that pulumi-kubernetes awaits and the local engine does not."""

_CLUSTER_SCOPED = {
    "APIService", "CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding",
    "CustomResourceDefinition", "FlowSchema", "IngressClass", "MutatingWebhookConfiguration", "Namespace", "Node",
    "PersistentVolume", "PriorityClass", "PriorityLevelConfiguration", "RuntimeClass", "StorageClass",
    "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
    "VolumeAttachment", "ClusterTrustBundle", "DeviceClass", "ResourceSlice", "IPAddress", "ServiceCIDR",
}  # fmt: skip
_SKIPS_WAIT_FOR_DELETION = {
    "Namespace",
    "Pod",
    "ReplicationController",
    "DaemonSet",
    "Deployment",
    "StatefulSet",
    "Job",
}
_DASHED = {
    key.replace("-", "_"): key
    for key in (
        "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    )
}  # fmt: skip


def built_in_scope(api_version: str, kind: str) -> bool | None:
    """Return True if a Kubernetes kind is namespaced; None for a custom kind, which only the API server knows."""
    group = api_version.rpartition("/")[0]
    if "." in group and not group.endswith(".k8s.io"):
        return None
    return kind not in _CLUSTER_SCOPED


def to_object(properties: Mapping[str, PropertyValue]) -> Object:
    """Return the object for the API server."""
    renamed = _rename(plain_map(properties))
    return renamed if isinstance(renamed, dict) else {}


def _rename(value: Plain) -> Any:  # noqa: ANN401 - an object's values are of any kind
    if isinstance(value, dict):
        return {_DASHED.get(key, key): _rename(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_rename(item) for item in value]
    return value


def problems(resource_type: str, obj: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the unsupported features of an object, as paths and reasons."""
    kind = str(obj.get("kind", ""))
    module = resource_type.split(":")[1].partition("/")[0]
    is_patch = resource_type.endswith("Patch") and not kind.endswith("Patch")
    if module in _REFUSED_MODULES or is_patch or not kind:
        return [("", unsupported(f"{resource_type}: not supported"))]
    if kind.endswith("List") and "items" in obj:
        return [("", f"{kind} can't be created. Create the objects in it one by one")]
    metadata = obj.get("metadata")
    found = []
    if isinstance(metadata, Mapping):
        if "generateName" in metadata and "name" not in metadata:
            found.append(("metadata.generateName", "is not possible with server-side apply. Leave the name out"))
        annotations = metadata.get("annotations")
        names = annotations if isinstance(annotations, Mapping) else {}
        refused = [name for name in _REFUSED_ANNOTATIONS if name in names]
        found += [(f'metadata.annotations["{name}"]', unsupported("not supported")) for name in refused]
    if (obj.get("apiVersion"), kind) in _NOT_AWAITED and not skips_await(obj):
        found.append(("kind", unsupported(f"waiting for an {kind} (annotation {SKIP_AWAIT} absent): not supported")))
    return found


def annotation(obj: Mapping[str, Any], name: str) -> str:
    """Return the value of an annotation; empty if there is none."""
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return str(annotations.get(name, "")) if isinstance(annotations, Mapping) else ""


def skips_await(obj: Mapping[str, Any]) -> bool:
    """Return True if an object's readiness is not awaited."""
    return annotation(obj, SKIP_AWAIT) == "true"


def skips_await_of_deletion(obj: Mapping[str, Any]) -> bool:
    """Return True if an object's deletion is not awaited. The annotation only has an effect for some kinds."""
    return skips_await(obj) and obj.get("kind") in _SKIPS_WAIT_FOR_DELETION


def propagation(obj: Mapping[str, Any]) -> str:
    """Return the propagation policy of an object's deletion."""
    asked = annotation(obj, PROPAGATION).lower()
    return {"orphan": "Orphan", "background": "Background"}.get(asked, "Foreground")


def autoname(name: str, seed: bytes) -> str:
    """Return a name for an object without one."""
    return f"{name}-{hashlib.sha256(seed).hexdigest()[:8]}"


def id_of(live: Mapping[str, Any]) -> str:
    """Return a resource's id, `namespace/name` or `name`."""
    metadata = live["metadata"]
    namespace = metadata.get("namespace", "")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def checkpoint(live: Mapping[str, Any], inputs: Properties) -> Properties:
    """Return a resource's outputs: the live object and the inputs that made it, with secrets marked.

    `managedFields` is left out: it is larger than the rest, and only the API server uses it.
    """
    metadata = {key: value for key, value in live["metadata"].items() if key != "managedFields"}
    outputs = seal(properties_of({**live, "metadata": metadata}), inputs)
    return {**outputs, INPUTS: PropertyValue(seal(inputs, inputs))}


def seal(properties: Properties, inputs: Properties) -> Properties:
    """Mark the program's secrets, and all data of a Secret, as secret."""
    sealed = mark_secrets(properties, inputs)
    kind = sealed.get("kind")
    if kind is not None and kind.value == "Secret":
        for key in ("data", "stringData"):
            if key in sealed:
                sealed[key] = sealed[key].with_secret(True)
    return sealed


def inputs_in(outputs: Mapping[str, PropertyValue]) -> Object:
    """Return the inputs in a resource's outputs."""
    kept = outputs.get(INPUTS)
    return to_object(kept.value) if kept is not None and isinstance(kept.value, Mapping) else {}
