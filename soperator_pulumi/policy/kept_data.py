"""Policies on data: claims, and the namespaces that hold them, survive mistakes."""

from collections.abc import Iterator, Sequence

from soperator_pulumi.policy.definition import (
    Circumstances,
    Finding,
    PolicySettings,
    ResourcePolicy,
    StackPolicy,
    not_known,
)
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.object_relations import objects_and_patches
from soperator_pulumi.policy.pod_view import pods_of
from soperator_pulumi.policy.value_tree import UNKNOWN, Path, listed, look
from soperator_pulumi.policy.view import ResourceView
from soperator_pulumi.render.layout import STATE_LOSS_ACCEPTED

DISPOSABLE_ANNOTATION = "soperator-pulumi/disposable-because"
"""Annotation that holds the reason why the data of a claim may be lost. On claims of clusters it has no effect."""


def _kept(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    yield from _deleted_with(resource)
    yield from _begun_anew(resource)
    if not _holds_data(resource):
        return
    disposable = _is_disposable(resource)
    if disposable is UNKNOWN and not resource.protect:
        yield not_known(resource, ("protect",))
    if disposable:
        return
    if not resource.protect:
        yield Finding(resource, ("protect",), "got false, needs true: an update or a destroy may delete the data")
    if resource.retain_on_delete is False:
        yield Finding(resource, ("retainOnDelete",), "got false, needs true: a destroy would delete the data")


def _deleted_with(resource: ResourceView) -> Iterator[Finding]:
    """Yield the settings by which Kubernetes deletes data together with another object."""
    if not resource.is_kubernetes:
        return
    paths: list[Path] = []
    if resource.kind == "StatefulSet" and (resource.is_ours or resource.is_patch or _makes_data(resource)):
        paths = [("spec", "persistentVolumeClaimRetentionPolicy", event) for event in ("whenDeleted", "whenScaled")]
    if resource.kind == "PersistentVolume" and _has_owner(resource):
        paths = [("spec", "persistentVolumeReclaimPolicy")]
    for path in paths:
        given = look(resource.props, *path)
        if given is UNKNOWN:
            yield not_known(resource, path)
        elif given not in (None, "Retain"):
            yield Finding(resource, path, f'got "{given}", needs "Retain": the data goes with the object')


def _makes_data(stateful_set: ResourceView) -> bool:
    """Return True if a StatefulSet makes claims, some of them without a reason why their data may be lost."""
    templates = listed(look(stateful_set.props, "spec", "volumeClaimTemplates"))
    reasons = [look(template, "metadata", "annotations", DISPOSABLE_ANNOTATION) for template in templates]
    return any(reason is not UNKNOWN and not str(reason or "").strip() for reason in reasons)


def _has_owner(volume: ResourceView) -> bool:
    """Return True for a volume of a cluster, of a claim that it names, or that the program only changes."""
    return volume.is_ours or volume.is_patch or look(volume.props, "spec", "claimRef") is not None


def _begun_anew(resource: ResourceView) -> Iterator[Finding]:
    """Yield the reasons for which a jail is filled, or slurmctld started, after their claims lost their contents."""
    accepted: list[tuple[Path, object]] = []
    if resource.acts_as("TreePopulated"):
        accepted.append((("accepted",), resource.input("accepted")))
    for pod in pods_of(resource):
        for path, container in pod.containers() if pod.part == "Controller" else ():
            for index, variable in enumerate(listed(look(container, "env"))):
                if look(variable, "name") == STATE_LOSS_ACCEPTED:
                    accepted.append(((*path, "env", index, "value"), look(variable, "value")))
    for path, reason in accepted:
        if reason is UNKNOWN:
            yield not_known(resource, path)
        elif reason:
            yield Finding(resource, path, "gives up what was on an emptied claim, now and at the next loss")


def _is_disposable(claim: ResourceView) -> object:
    """Return True if a claim has a reason why its data may be lost; UNKNOWN if a preview does not know it."""
    if claim.is_ours:
        return False
    reason = look(claim.props, "metadata", "annotations", DISPOSABLE_ANNOTATION)
    return reason if reason is UNKNOWN else bool(str(reason or "").strip())


def _holds_data(resource: ResourceView) -> bool:
    if not resource.is_kubernetes or resource.is_patch:
        return False  # Pulumi deletes no object when it deletes a patch
    return resource.kind == "PersistentVolumeClaim" or (resource.kind == "Namespace" and resource.is_ours)


KEPT_DATA = ResourcePolicy(
    name="kept-data",
    description="Claims of the jail and of Slurm's state, and their namespace, are protected and retained.",
    violated_by="`storage.keep: false`; `jail.storage.accept.emptied`; `storage.state.accept.emptied`; a "
    "PersistentVolumeClaim without `protect` and `retain_on_delete`; a StatefulSet with `volumeClaimTemplates` that "
    "deletes its claims; a PersistentVolume with `claimRef` "
    "and `persistentVolumeReclaimPolicy: Delete`",
    cure="Set storage.keep to true, remove accept.emptied of jail.storage and of storage.state after the up that needs "
    "it; for your own claim, set both options in the program, or say in its annotation "
    f"{DISPOSABLE_ANNOTATION} why its data may be lost.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.CRITICAL,
    tags=("data",),
    check=_kept,
)


def _holders(resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    holding = {
        str(resource.namespace)
        for resource in resources
        if _claims(resource) and resource.namespace not in (None, UNKNOWN)
    }
    for resource in resources:
        is_holder = (
            resource.is_kubernetes and resource.kind == "Namespace" and not resource.is_patch and not resource.is_ours
        )
        if is_holder and look(resource.props, "metadata", "name") in holding and not resource.protect:
            yield Finding(
                resource,
                ("protect",),
                "got false, needs true: deleting the namespace deletes this stack's claims in it",
            )


def _claims(resource: ResourceView) -> Sequence[object]:
    """Return the claims that a resource is or creates, except those with a reason why their data may be lost."""
    if not resource.is_kubernetes:
        return ()
    if resource.kind == "PersistentVolumeClaim":
        return () if _is_disposable(resource) is True else (resource.props,)
    templates = look(resource.props, "spec", "volumeClaimTemplates")
    return listed(templates) or ((templates,) if templates else ())  # one that is not known is a claim


KEPT_NAMESPACES = StackPolicy(
    name="kept-namespaces",
    description="A namespace that holds claims of the stack is protected: Kubernetes deletes them along with it.",
    violated_by="a Namespace of the program without `protect` that has a PersistentVolumeClaim of the stack in it",
    cure="Set protect and retain_on_delete on the namespace in the program.",
    levels=levels("disabled", "advisory", "mandatory", "mandatory"),
    severity=PolicySeverity.CRITICAL,
    tags=("data",),
    check=_holders,
)


_ANNOTATIONS = ("metadata", "annotations")
_DEFAULT = "the class that claims without a class get"
_IS_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
"""Annotations of the default StorageClass."""

_CLASS_OF_CLAIM = "volume.beta.kubernetes.io/storage-class"
"""Annotation of a claim or a volume that has the same meaning as `storageClassName`, and priority:
https://kubernetes.io/docs/concepts/storage/persistent-volumes/#class."""


def _classes(resources: Sequence[ResourceView], _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    objects = objects_and_patches(resources)
    claims = [(resource, claim) for resource in objects for claim in _claims(resource)]
    of_classes = {str(name): resource for resource, claim in claims if (name := _class_of(claim)) is not UNKNOWN}
    of_volumes = {name: resource for resource, claim in claims if isinstance(name := _volume_of(claim), str) and name}
    # A claim that names its volume gets no other one of its class. A name that is not known may turn out to be empty.
    choosing = [(resource, claim) for resource, claim in claims if _volume_of(claim) in (None, "", UNKNOWN)]
    chosen = {str(name): resource for resource, claim in choosing if (name := _class_of(claim)) is not UNKNOWN}
    for resource in objects:
        given_name = look(resource.props, "metadata", "name")
        name = given_name if isinstance(given_name, str) else None
        user = None
        if resource.kind == "StorageClass":
            where: Path = ("reclaimPolicy",)
            is_default = any(look(resource.props, *_ANNOTATIONS, key) == "true" for key in _IS_DEFAULT)
            user = (of_classes.get(name) if name else None) or (of_classes.get(_DEFAULT) if is_default else None)
        elif resource.kind == "PersistentVolume" and not _has_owner(resource):
            where = ("spec", "persistentVolumeReclaimPolicy")
            own = _class_of(resource.props)
            of_class = None if own is UNKNOWN else chosen.get("" if own == _DEFAULT else str(own))
            user = (of_volumes.get(name) if name else None) or of_class
        if user is None:
            continue
        given = look(resource.props, *where)
        if given is UNKNOWN:
            yield not_known(resource, where)
        elif given != "Retain" and (given or resource.kind == "StorageClass"):  # a volume of the program's is retained
            got = f'got "{given}"' if given else "missing, and Delete by default"
            yield Finding(resource, where, f'{got}, needs "Retain": volumes of {user.name} go with their claims')


def _volume_of(claim: object) -> object:
    """Return the name of the volume that a claim names, UNKNOWN, or None if it names none."""
    return look(claim, "spec", "volumeName")


def _class_of(claim: object) -> object:
    """Return the class that a claim or a volume names, or `_DEFAULT` if it names none."""
    given = look(claim, *_ANNOTATIONS, _CLASS_OF_CLAIM)
    name = look(claim, "spec", "storageClassName") if given is None else given
    return _DEFAULT if name is None else name


KEPT_VOLUMES = StackPolicy(
    name="kept-volumes",
    description="The volumes of the stack's claims are kept after a claim is deleted.",
    violated_by="a StorageClass without `reclaimPolicy: Retain` that a PersistentVolumeClaim of the stack names or, as "
    "the default, gets; a PersistentVolume with `persistentVolumeReclaimPolicy: Delete` that it names, or of its class",
    cure="Give new claims a StorageClass, or a PersistentVolume, with reclaim policy Retain. Volumes that exist keep "
    "the policy with which they were made: set Retain on them by kubectl patch pv (docs/operations.md), and give that "
    "as reason of an exception.",
    levels=levels("disabled", "advisory", "advisory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("data",),
    check=_classes,
)
