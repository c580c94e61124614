"""Objects of Kubernetes that a spec refers to, for the check before anything is applied."""

from collections.abc import Iterator

import pulumi

from soperator_pulumi.cluster.storage import JAIL_CLAIM, STATE_CLAIM
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.scheduling import Scheduled
from soperator_pulumi.spec.storage import VolumeSpec

Reference = dict[str, pulumi.Input[str]]


def references(spec: ClusterSpec) -> list[Reference]:
    """Return the objects that must exist, each with the path of its field in the spec."""
    return [*_secrets(spec), *_volumes(spec), *_priority_classes(spec)]


def _secrets(spec: ClusterSpec) -> Iterator[Reference]:
    munge, ssh_host = spec.secrets.munge_key, spec.secrets.ssh_host_key
    if munge is not None:
        yield _reference("secrets.munge_key", "Secret", munge.secret, key=munge.key, holds="munge key")
    if ssh_host is not None:
        yield _reference("secrets.ssh_host_key", "Secret", ssh_host.secret, key=ssh_host.key, holds="ssh host key")
    for index, secret in enumerate(spec.images.pull_secrets):
        yield _reference(f"images.pull_secrets[{index}]", "Secret", secret)


def _volumes(spec: ClusterSpec) -> Iterator[Reference]:
    volumes: tuple[tuple[str, VolumeSpec, str, str], ...] = (
        ("jail.storage", spec.jail.storage, "ReadWriteMany", JAIL_CLAIM),
        ("storage.state", spec.storage.state, "ReadWriteOnce", STATE_CLAIM),
    )
    for path, volume, mode, claim in volumes:
        if volume.existing_claim is not None:
            yield _reference(f"{path}.existing_claim", "PersistentVolumeClaim", volume.existing_claim, holds=mode)
        elif volume.static_volume is not None:
            yield _reference(f"{path}.static_volume", "PersistentVolume", volume.static_volume, holds=claim)
        else:
            yield _reference(f"{path}.storage_class", "StorageClass", volume.storage_class or "")
    for index, submount in enumerate(spec.jail.submounts):
        if submount.existing_claim is not None:
            modes = "ReadOnlyMany|ReadWriteMany" if submount.read_only else "ReadWriteMany"
            path = f"jail.submounts[{index}].existing_claim"
            yield _reference(path, "PersistentVolumeClaim", submount.existing_claim, holds=modes)


def _priority_classes(spec: ClusterSpec) -> Iterator[Reference]:
    roles: list[tuple[str, Scheduled]] = [
        ("controller", spec.controller),
        ("login", spec.login),
        ("jail.populate", spec.jail.populate),
    ]
    roles += [(f"node_sets[{index}]", node_set) for index, node_set in enumerate(spec.node_sets)]
    for path, role in roles:
        if role.priority_class is not None:
            yield _reference(f"{path}.priority_class", "PriorityClass", role.priority_class)


def _reference(path: str, kind: str, name: pulumi.Input[str], *, key: str = "", holds: str = "") -> Reference:
    return {"path": path, "kind": kind, "name": name, "key": key, "holds": holds}
