"""Checks of a cluster's namespace, and of the objects that the spec names."""

from collections.abc import Iterator
from typing import Self

from pydantic import BaseModel, ConfigDict

from soperator_pulumi.errors import Problem
from soperator_pulumi.kube.verbs import Json, Kube, stateful_sets_path
from soperator_pulumi.operations import holder
from soperator_pulumi.operations.preflight.api_server import ipv6_problems
from soperator_pulumi.operations.preflight.named_objects import Reference, named_object_problems

_ENFORCED = "pod-security.kubernetes.io/enforce"
_TOO_STRICT = ("baseline", "restricted")


class PrerequisitesInputs(BaseModel):
    """Place of a cluster in Kubernetes."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    namespace: str
    create_namespace: bool
    namespace_created_by_program: bool = False
    """True if the program creates the namespace itself, before the cluster: a preview does not find it yet."""
    keep_namespace: bool = True
    """False if Pulumi deletes a namespace that leaves the program."""
    owner: str
    """Value of the label `owner_label` on all objects of the cluster."""
    owner_label: str
    component: str = ""
    """URN of the cluster's component; empty if none is recorded."""
    part_of: dict[str, str]
    """Label of all objects that this package makes, whoever owns them."""
    references: tuple[Reference, ...]
    api_servers: tuple[str, ...] | None = None
    """Addresses of the Kubernetes API in CIDR notation; None to use those of the cluster's own Service."""
    ipv6: bool = False
    """True if Slurm uses IPv6 addresses."""

    @property
    def strict(self) -> Self:
        """The same, for an `up` in which everything that the program creates before the cluster exists."""
        references = tuple(reference.model_copy(update={"created_by_program": False}) for reference in self.references)
        return self.model_copy(update={"references": references, "namespace_created_by_program": False})


def problems(kube: Kube, wanted: PrerequisitesInputs, before: PrerequisitesInputs | None = None) -> Iterator[Problem]:
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
    named = [
        problem
        for reference in wanted.references
        for problem in named_object_problems(
            kube,
            reference,
            wanted.namespace,
            create_namespace=wanted.create_namespace,
            namespace_exists=namespace is not None,
        )
    ]
    yield from dict.fromkeys(named)  # a Secret has a reference for every key of it that is read
    if not wanted.ipv6:
        yield from ipv6_problems(kube)


def _namespace_problems(
    namespace: Json | None, wanted: PrerequisitesInputs, before: PrerequisitesInputs | None
) -> Iterator[Problem]:
    name = wanted.namespace
    if namespace is None:
        if not wanted.create_namespace and not wanted.namespace_created_by_program:
            text = (
                f'"{name}" does not exist, and create_namespace is false. Create it, or set create_namespace: true. '
                "If the cluster's program creates it, name the Namespace in the cluster's depends_on."
            )
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


def _would_be_deleted(wanted: PrerequisitesInputs, before: PrerequisitesInputs) -> bool:
    """Return True if the namespace leaves the program while the cluster stays in it."""
    leaves = before.create_namespace and not wanted.create_namespace and before.namespace == wanted.namespace
    return leaves and not before.keep_namespace


def _other_owner(owner: str, wanted: PrerequisitesInputs, before: PrerequisitesInputs | None) -> Problem:
    """Return the problem that a namespace belongs to another stack, or to this stack under a former name."""
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


def _tenant_problems(kube: Kube, wanted: PrerequisitesInputs, before: PrerequisitesInputs | None) -> Iterator[Problem]:
    """Yield another SlurmCluster that is in this namespace, or has left its data here."""
    kinds = {
        "runs in it": stateful_sets_path(wanted.namespace),
        "has left its volumes in it": f"/api/v1/namespaces/{wanted.namespace}/persistentvolumeclaims",
    }
    for relation, path in kinds.items():
        others = [
            entry for entry in kube.find(path, wanted.part_of) if _label(entry, wanted.owner_label) != wanted.owner
        ]
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


def _label(body: Json, key: str) -> str:
    return str((body["metadata"].get("labels") or {}).get(key, ""))
