"""A ConfigMap's files as they shall be, and how they differ from those that are there."""

import hashlib
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from soperator_pulumi.operations.kube import Json, config_map_path

IN_FORCE = "soperator-pulumi/in-force"
"""Annotation of the ConfigMap: digest of the files that the daemons were last told to read, and did not refuse.

It is taken off before a file changes and put back when the change is in force, so that a run that was
killed between the two is seen by the next one.
"""

RESOURCE = "soperator-pulumi/resource"
"""Annotation of the ConfigMap: id of the resource that made it last. One that is replaced and its successor have one
ConfigMap, which is the successor's."""


class AfterSync(StrEnum):
    """What makes a changed file count, once it is in the pods."""

    NOTHING = "nothing"
    """Whoever wants the file reads it each time."""
    SLURM = "slurm"
    """`scontrol reconfigure`, or a restart of slurmctld for the parameters that need one."""
    SSHD = "sshd"
    """sshd checks the file and starts anew; open sessions stay."""


class Reader(BaseModel):
    """Pods that mount the files."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    component: str
    container: str
    verified: bool = True
    """Whether to wait until the files are there. Otherwise the kubelet is asked to bring them, and no more."""
    sums: str | None = None
    """A file in a container that does not see the files themselves, as a program beside it makes them ready: what
    `sha256sum` says of those that it has made ready."""


class DesiredFiles(BaseModel):
    """A ConfigMap as it shall be, who reads it, and what follows a change."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    namespace: str
    name: str
    labels: dict[str, str]
    annotations: dict[str, str]
    files: dict[str, str]
    selector: dict[str, str]
    """Labels of all pods of the cluster."""
    readers: tuple[Reader, ...]
    after_sync: AfterSync
    resource: str = ""
    """Id of the resource that makes it; empty in its own inputs and outputs."""

    @property
    def path(self) -> str:
        """The ConfigMap's path in the API."""
        return config_map_path(self.namespace, self.name)

    @property
    def digest(self) -> str:
        """A digest of the files."""
        return digest(self.files)

    def with_files(self, files: Mapping[str, str]) -> "DesiredFiles":
        """Return the same ConfigMap with other files."""
        return self.model_copy(update={"files": {**files}})

    def by(self, resource: str) -> "DesiredFiles":
        """Return the same ConfigMap as the resource with this id makes it."""
        return self.model_copy(update={"resource": resource})

    def manifest(self, *, in_force: bool) -> Json:
        """Return the object to apply."""
        marks = {
            **({IN_FORCE: self.digest} if in_force else {}),
            **({RESOURCE: self.resource} if self.resource else {}),
        }
        metadata: dict[str, Any] = {
            "name": self.name,
            "namespace": self.namespace,
            "labels": self.labels,
            "annotations": {**self.annotations, **marks},
        }
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": self.files}


class LiveFiles:
    """The ConfigMap as it is."""

    def __init__(self, body: Json) -> None:
        self.files: dict[str, str] = body.get("data") or {}
        self._metadata: Json = body["metadata"]

    @property
    def in_force(self) -> bool:
        """Whether the daemons run on these files, as far as we have brought it about."""
        return self._annotations.get(IN_FORCE) == digest(self.files)

    @property
    def resource(self) -> str:
        """Id of the resource that made it last; empty where none is known."""
        return str(self._annotations.get(RESOURCE, ""))

    @property
    def _annotations(self) -> Json:
        return self._metadata.get("annotations") or {}

    def is_as(self, desired: DesiredFiles) -> bool:
        """Whether nothing is left to do."""
        labels = self._metadata.get("labels") or {}
        return (
            self.in_force
            and self.files == desired.files
            and self.resource == desired.resource
            and desired.labels.items() <= labels.items()
            and desired.annotations.items() <= self._annotations.items()
        )


def digest(files: Mapping[str, str]) -> str:
    """Return a digest of files: names and contents."""
    return digest_of_sums({name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()})


def digest_of_sums(sums: Mapping[str, str]) -> str:
    """Return the same digest, from what `sha256sum` says of each file."""
    return hashlib.sha256("\n".join(f"{sums[name]}  {name}" for name in sorted(sums)).encode()).hexdigest()


def differences(config_map: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a unified diff between two sets of files."""
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name, "").splitlines(), new.get(name, "").splitlines()
        yield from unified_diff(before, after, f"{config_map}/{name}", f"{config_map}/{name}", lineterm="", n=1)
