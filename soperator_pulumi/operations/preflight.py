"""Checks of a Kubernetes cluster before anything is applied to it, all at once."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_network
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key
from pydantic import BaseModel, ConfigDict

from soperator_pulumi.errors import KubernetesError, Problem
from soperator_pulumi.operations import holder
from soperator_pulumi.operations.kube import Json, Kube, stateful_sets_path

_MUNGE_KEY_BYTES = range(32, 1025)  # the sizes that munged takes

_CLUSTER_WIDE = {
    "PersistentVolume": "/api/v1/persistentvolumes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
}
_API_SERVICE = "/api/v1/namespaces/default/services/kubernetes"
_API_ENDPOINTS = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
_ENFORCED = "pod-security.kubernetes.io/enforce"
_TOO_STRICT = ("baseline", "restricted")
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


class Reference(BaseModel):
    """An object that must exist, because the spec names it."""

    model_config = ConfigDict(frozen=True)

    path: str
    """Path of the field that names it."""
    kind: str
    """`Secret`, `PersistentVolumeClaim`, `PersistentVolume`, `StorageClass` or `PriorityClass`."""
    name: str
    """Name of the object; empty for the default StorageClass."""
    key: str = ""
    """Key that a Secret must have."""
    holds: str = ""
    """Kind of the key's value, `munge key` or `ssh host key`; the access modes, joined by `|`, of which a claim must
    have one; or the claim of a PersistentVolume."""


class Surroundings(BaseModel):
    """Place of a cluster in Kubernetes."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    namespace: str
    create_namespace: bool
    keep_namespace: bool = True
    """False where Pulumi deletes a namespace that leaves the program."""
    owner: str
    """Value of the label `owner_label` on everything that is ours."""
    owner_label: str
    component: str = ""
    """URN of the cluster's component; empty where none is recorded."""
    part_of: dict[str, str]
    """Label of all objects that this package makes, of every owner."""
    references: tuple[Reference, ...]
    api_servers: tuple[str, ...] | None = None
    """Addresses of the Kubernetes API in CIDR notation; None for those of the cluster's own Service."""


def problems(kube: Kube, wanted: Surroundings, before: Surroundings | None = None) -> Iterator[Problem]:
    """Yield the problems.

    Args:
        kube: Kubernetes of the cluster to be.
        wanted: Place of the cluster to be.
        before: Place recorded in the stack's state; None when the cluster is new to it.

    Raises:
        KubernetesError: the cluster does not answer, or refuses a read.
    """
    namespace = kube.get(f"/api/v1/namespaces/{wanted.namespace}")
    yield from _namespace_problems(namespace, wanted, before)
    if namespace is not None:
        yield from _tenant_problems(kube, wanted, before)
        if text := holder.problem(kube, wanted.namespace, wanted.component, before.component if before else ""):
            yield Problem("namespace", text)
    for reference in wanted.references:
        yield from _reference_problems(kube, wanted, reference, namespace_exists=namespace is not None)


def api_servers(kube: Kube) -> list[str]:
    """Return the addresses at which pods reach the Kubernetes API, each in CIDR notation: `10.96.0.1/32`.

    They are those of the Service `kubernetes` in the namespace `default`, which every cluster has, and its endpoints:
    the network plugin decides which of the two a NetworkPolicy sees.

    Raises:
        KubernetesError: the cluster does not answer, or refuses a read.
    """
    service = (kube.get(_API_SERVICE) or {}).get("spec", {})
    slices = kube.find(_API_ENDPOINTS, {"kubernetes.io/service-name": "kubernetes"})
    behind = [
        address
        for each in slices
        if each.get("addressType") != "FQDN"
        for end in each.get("endpoints") or []
        for address in end["addresses"]
    ]
    networks = {ip_network(address) for address in [*service.get("clusterIPs", []), *behind]}
    return [str(each) for each in sorted(networks, key=lambda each: (each.version, int(each.network_address)))]


def closed_api_servers(kube: Kube, given: Sequence[str] | None) -> tuple[list[str], list[Problem]]:
    """Return the addresses of the Kubernetes API to close, and the problems where they are not known; one look.

    Args:
        kube: The cluster.
        given: Addresses that the spec lists; None for those of the cluster's own Service.
    """
    if given is not None:
        return [*given], []
    field, step = "network.api_servers", "List its addresses here, in CIDR notation."
    try:
        found = api_servers(kube)
    except KubernetesError as error:
        text = f"not given, and the addresses of the Kubernetes API cannot be read: {error} {step}"
        return [], [Problem(field, text)]
    text = f'not given, and the Service "kubernetes" in the namespace "default" has no address. {step}'
    return found, [] if found else [Problem(field, text)]


def ssh_host_public_key(kube: Kube, namespace: str, reference: Reference) -> bytes:
    """Return the binary public half of the host key in a Secret that has been checked."""
    secret = kube.get(f"/api/v1/namespaces/{namespace}/secrets/{reference.name}") or {}
    key = _ed25519(_value(secret, reference.key) or b"")
    if key is None:
        raise ValueError(reference.path)
    line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return base64.b64decode(line.split()[1])


def _namespace_problems(namespace: Json | None, wanted: Surroundings, before: Surroundings | None) -> Iterator[Problem]:
    name = wanted.namespace
    if namespace is None:
        if not wanted.create_namespace:
            text = f'"{name}" does not exist, and create_namespace is false. Create it, or set create_namespace: true.'
            yield Problem("namespace", text)
        return
    metadata = namespace["metadata"]
    if "deletionTimestamp" in metadata:
        yield Problem("namespace", f'"{name}" is being deleted. Wait until it is gone, or choose another one.')
    elif before is not None and _would_be_deleted(wanted, before):
        yield Problem(
            "create_namespace",
            f'got false, but "{name}" was created by this stack with storage.keep: false: Pulumi would delete it, with '
            "all jobs and data in it. Set storage.keep: true and run `up` before.",
        )
    elif wanted.create_namespace and (owner := _label(namespace, wanted.owner_label)) != wanted.owner:
        yield (
            _other_owner(owner, wanted, before)
            if owner
            else Problem(
                "namespace",
                f'"{name}" exists already and was not made by this stack. '
                "Set create_namespace: false to use it as it is, or choose another one.",
            )
        )
    elif not wanted.create_namespace and _label(namespace, _ENFORCED) in _TOO_STRICT:
        yield Problem(
            "namespace",
            f'"{name}" enforces the Pod Security level "{_label(namespace, _ENFORCED)}", which forbids what moving '
            "jobs and sessions into the jail takes. No container is privileged, but the namespace needs "
            f"the label {_ENFORCED}=privileged.",
        )


def _would_be_deleted(wanted: Surroundings, before: Surroundings) -> bool:
    """Return True where the namespace leaves the program, while the cluster stays in it."""
    leaves = before.create_namespace and not wanted.create_namespace and before.namespace == wanted.namespace
    return leaves and not before.keep_namespace


def _other_owner(owner: str, wanted: Surroundings, before: Surroundings | None) -> Problem:
    """Return the problem that a namespace belongs to somebody else, or to this stack's former name."""
    if before is not None and before.owner == owner:
        return Problem(
            "owner",
            f'got "{wanted.owner}", but the cluster\'s objects belong to "{owner}", the name of this component before '
            f'it, its stack or its project was renamed. Keep that name: set owner: "{owner}".',
        )
    return Problem(
        "namespace",
        f'"{wanted.namespace}" exists already, and belongs to "{owner}". Choose another one; or, if that is the name '
        f'of this very cluster in another stack or project that it was moved from, set owner: "{owner}".',
    )


def _tenant_problems(kube: Kube, wanted: Surroundings, before: Surroundings | None) -> Iterator[Problem]:
    """Yield another SlurmCluster that lives here, or has left its data here."""
    kinds = {
        "runs in it": stateful_sets_path(wanted.namespace),
        "has left its volumes in it": f"/api/v1/namespaces/{wanted.namespace}/persistentvolumeclaims",
    }
    for relation, path in kinds.items():
        others = [each for each in kube.find(path, wanted.part_of) if _label(each, wanted.owner_label) != wanted.owner]
        if others:
            cluster = _label(others[0], "app.kubernetes.io/instance")
            owner = _label(others[0], wanted.owner_label)
            if before is not None and owner == before.owner:
                if not wanted.create_namespace:  # else the namespace has been reported
                    yield _other_owner(owner, wanted, before)
                return
            yield Problem(
                "namespace",
                f'got "{wanted.namespace}", but the SlurmCluster "{cluster}" ({owner}) {relation}. '
                "A namespace holds one SlurmCluster: choose another namespace.",
            )
            return


def _reference_problems(
    kube: Kube, wanted: Surroundings, reference: Reference, *, namespace_exists: bool
) -> Iterator[Problem]:
    if reference.kind == "StorageClass" and not reference.name:
        yield from _default_class_problems(kube, reference)
        return
    body = kube.get(_path(wanted.namespace, reference))
    if body is None:
        where = "" if reference.kind in _CLUSTER_WIDE else f' in the namespace "{wanted.namespace}"'
        step = "Create it first."
        if where and wanted.create_namespace and not namespace_exists:
            step = "Create the namespace and it first, and set create_namespace: false."
        text = f'got "{reference.name}", but there is no {reference.kind} of that name{where}. {step}'
        yield Problem(reference.path, text)
    elif reference.kind == "Secret" and reference.key:
        yield from _secret_problems(body, reference)
    elif reference.kind == "PersistentVolumeClaim":
        modes, allowed = body.get("spec", {}).get("accessModes") or [], reference.holds.split("|")
        if not set(modes) & set(allowed):
            text = f'got "{reference.name}", a claim with {", ".join(modes)}; it needs {" or ".join(allowed)}.'
            yield Problem(reference.path, text)
    elif reference.kind == "PersistentVolume":
        yield from _volume_problems(body, wanted, reference)


def _default_class_problems(kube: Kube, reference: Reference) -> Iterator[Problem]:
    classes = kube.find(_CLUSTER_WIDE["StorageClass"])
    if any((each["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true" for each in classes):
        return
    names = ", ".join(sorted(each["metadata"]["name"] for each in classes)) or "none at all"
    text = f"not given, and the Kubernetes cluster has no default StorageClass. Choose one; there are: {names}."
    yield Problem(reference.path, text)


def _secret_problems(secret: Json, reference: Reference) -> Iterator[Problem]:
    value = _value(secret, reference.key)
    if value is None:
        there = ", ".join(sorted(secret.get("data") or {})) or "none"
        text = f'the Secret "{reference.name}" has no key "{reference.key}". Its keys: {there}.'
        yield Problem(reference.path, text)
    elif reference.holds == "munge key" and len(value) not in _MUNGE_KEY_BYTES:
        text = (
            f'"{reference.key}" of the Secret "{reference.name}" holds {len(value)} bytes; '
            "a munge key has 32 to 1024. Make one with `mungekey`."
        )
        yield Problem(reference.path, text)
    elif reference.holds == "ssh host key" and _ed25519(value) is None:
        text = (
            f'"{reference.key}" of the Secret "{reference.name}" is no ed25519 private key in OpenSSH\'s format '
            "without a passphrase. Make one with `ssh-keygen -t ed25519 -N ''`."
        )
        yield Problem(reference.path, text)


def _volume_problems(volume: Json, wanted: Surroundings, reference: Reference) -> Iterator[Problem]:
    """Yield why a volume made beforehand cannot be bound to its claim."""
    bound = volume.get("spec", {}).get("claimRef") or {}
    ours = (wanted.namespace, reference.holds)
    theirs = (bound.get("namespace"), bound.get("name"))
    if bound and theirs != ours:
        text = f'got "{reference.name}", a volume of the claim {"/".join(map(str, theirs))}. Choose one that is free.'
        yield Problem(reference.path, text)
    elif volume.get("status", {}).get("phase") == "Released":
        yield Problem(
            reference.path,
            f'got "{reference.name}", a volume whose claim was deleted: Kubernetes does not bind it again by itself. '
            "To use it with what it holds, remove the old claim's uid: kubectl patch pv "
            f'{reference.name} --type=json -p \'[{{"op": "remove", "path": "/spec/claimRef/uid"}}]\'',
        )


def _path(namespace: str, reference: Reference) -> str:
    if reference.kind in _CLUSTER_WIDE:
        return f"{_CLUSTER_WIDE[reference.kind]}/{reference.name}"
    return f"/api/v1/namespaces/{namespace}/{reference.kind.lower()}s/{reference.name}"


def _value(secret: Json, key: str) -> bytes | None:
    data: Mapping[str, Any] = secret.get("data") or {}
    return base64.b64decode(data[key]) if key in data else None


def _ed25519(text: bytes) -> Ed25519PrivateKey | None:
    try:
        key = load_ssh_private_key(text, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, Ed25519PrivateKey) else None


def _label(body: Json, key: str) -> str:
    return str((body["metadata"].get("labels") or {}).get(key, ""))
