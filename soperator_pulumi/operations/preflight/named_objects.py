"""Objects that the spec names, and that must exist: Secrets, claims, volumes and classes."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key
from pydantic import BaseModel, ConfigDict

from soperator_pulumi.errors import Problem
from soperator_pulumi.kube.verbs import Json, Kube
from soperator_pulumi.operations.preflight.api_server import custom_kind_problems

_MUNGE_KEY_BYTES = range(32, 1025)  # the sizes that munged takes
_JWT_KEY_BYTES = 32  # of HS256, RFC 7518 section 3.2

_CLUSTER_WIDE = {
    "PersistentVolume": "/api/v1/persistentvolumes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


class Reference(BaseModel):
    """An object that must exist, because the spec names it."""

    model_config = ConfigDict(frozen=True)

    path: str
    """Path of the field that names it."""
    kind: str
    """`Secret`, `PersistentVolumeClaim`, `PersistentVolume`, `StorageClass`, `PriorityClass` or
    `CustomResourceDefinition`."""
    name: str
    """Name of the object; empty for the default StorageClass."""
    key: str = ""
    """Key that a Secret must have."""
    holds: str = ""
    """Kind of the key's value, `munge key` or `ssh host key`; the access modes, joined by `|`, of which a claim must
    have one; the claim of a PersistentVolume; or the version of a definition's objects."""
    created_by_program: bool = False
    """True if the program that has the cluster creates the object: a preview does not find it yet."""


def ssh_host_public_key(kube: Kube, namespace: str, reference: Reference) -> bytes | None:
    """Return the binary public half of the host key in a Secret; None if the Secret holds none."""
    secret = kube.get(f"/api/v1/namespaces/{namespace}/secrets/{reference.name}") or {}
    key = _ed25519(_value(secret, reference.key) or b"")
    if key is None:
        return None
    line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return base64.b64decode(line.split()[1])


def named_object_problems(
    kube: Kube, reference: Reference, namespace: str, *, create_namespace: bool, namespace_exists: bool
) -> Iterator[Problem]:
    """Yield the problems of one object.

    Args:
        kube: The Kubernetes.
        reference: The object.
        namespace: Namespace of the cluster.
        create_namespace: True if the program creates the namespace.
        namespace_exists: True if the namespace is there already.
    """
    if reference.kind == "StorageClass" and not reference.name:
        yield from _default_class_problems(kube, reference)
        return
    if reference.kind == "CustomResourceDefinition":
        yield from custom_kind_problems(kube, reference.path, reference.name, reference.holds)
        return
    body = kube.get(_path(namespace, reference))
    if body is None and reference.created_by_program:
        return
    if body is None:
        where = "" if reference.kind in _CLUSTER_WIDE else f' in the namespace "{namespace}"'
        step = "Create it first."
        if where and create_namespace and not namespace_exists:
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
        yield from _volume_problems(body, namespace, reference)


def _default_class_problems(kube: Kube, reference: Reference) -> Iterator[Problem]:
    classes = kube.find(_CLUSTER_WIDE["StorageClass"])
    if any((class_["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true" for class_ in classes):
        return
    names = ", ".join(sorted(class_["metadata"]["name"] for class_ in classes)) or "none at all"
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
    elif reference.holds == "jwt key" and len(value) < _JWT_KEY_BYTES:
        text = (
            f'"{reference.key}" of the Secret "{reference.name}" holds {len(value)} bytes; '
            f"a key that signs tokens has at least {_JWT_KEY_BYTES}. Make one with `openssl rand 32`."
        )
        yield Problem(reference.path, text)
    elif reference.holds == "ssh host key" and _ed25519(value) is None:
        text = (
            f'"{reference.key}" of the Secret "{reference.name}" is not an ed25519 private key in OpenSSH\'s format '
            "without a passphrase. Make one with `ssh-keygen -t ed25519 -N ''`."
        )
        yield Problem(reference.path, text)


def _volume_problems(volume: Json, namespace: str, reference: Reference) -> Iterator[Problem]:
    """Yield the reasons why an existing volume cannot be bound to its claim."""
    bound = volume.get("spec", {}).get("claimRef") or {}
    ours = (namespace, reference.holds)
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
