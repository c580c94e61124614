"""Desired and live files of a ConfigMap or a Secret, and their differences."""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from soperator_pulumi.kube.verbs import Json, config_map_path, secret_path
from soperator_pulumi.wording import counted

IN_FORCE = "soperator-pulumi/in-force"
"""Annotation of the object: digest of the files that the daemons read last, and accepted.

A run removes it before a file changes and sets it again when the change is effective: so the next run notices that this
one was killed in between.
"""

RESOURCE = "soperator-pulumi/resource"
"""Annotation of the object: id of the resource that wrote it last. A replaced resource and its successor share one
object, which belongs to the successor."""


class FilesKind(StrEnum):
    """Kind of the object that holds files."""

    CONFIG_MAP = "ConfigMap"
    SECRET = "Secret"  # noqa: S105 a kind
    """No line, no error and no annotation outside the Secret itself depends on the values in the files."""


class AfterSync(StrEnum):
    """Action that makes a changed file effective, once it is in the pods."""

    NOTHING = "nothing"
    """Nothing to do: programs read the file every time."""
    SLURM = "slurm"
    """`scontrol reconfigure`, or a restart of slurmctld for parameters that need one."""
    SSHD = "sshd"
    """sshd checks the file and restarts; open sessions stay."""
    SLURMDBD = "slurmdbd"
    """slurmdbd restarts, because it reads its file only then; slurmctld keeps the records for it meanwhile."""


class Reader(BaseModel):
    """A group of pods that mount the files."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    component: str
    container: str
    verified: bool = True
    """True to wait until the files are there; False to only notify the kubelet of the change."""
    sums: str | None = None
    """File with the output of `sha256sum`, in a container that does not see the files: a program next to it prepares
    them."""


class DesiredFiles(BaseModel):
    """A desired ConfigMap or Secret, the pods that read it, and how a change becomes effective."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    kind: FilesKind = FilesKind.CONFIG_MAP
    namespace: str
    name: str
    labels: dict[str, str]
    annotations: dict[str, str]
    files: dict[str, str] = Field(repr=False)
    selector: dict[str, str]
    """Labels of all pods of the cluster."""
    readers: tuple[Reader, ...]
    after_sync: AfterSync
    resource: str = ""
    """Id of the resource that writes it; empty in the resource's own inputs and outputs."""

    @property
    def path(self) -> str:
        """Path of the object in the API."""
        path_of = secret_path if self.is_secret else config_map_path
        return path_of(self.namespace, self.name)

    @property
    def is_secret(self) -> bool:
        """True for a Secret."""
        return self.kind is FilesKind.SECRET

    @property
    def digest(self) -> str:
        """Digest of the files."""
        return digest(self.files)

    def with_files(self, files: Mapping[str, str]) -> "DesiredFiles":
        """Return the same object with other files."""
        return self.model_copy(update={"files": {**files}})

    def by(self, resource: str) -> "DesiredFiles":
        """Return the same object, written by the resource with this id."""
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
        data = self.files
        if self.is_secret:
            data = {name: base64.b64encode(text.encode()).decode() for name, text in data.items()}
        return {"apiVersion": "v1", "kind": self.kind.value, "metadata": metadata, "data": data}


class LiveFiles:
    """The live ConfigMap or Secret."""

    def __init__(self, body: Json) -> None:
        data: dict[str, str] = body.get("data") or {}
        if body.get("kind") == FilesKind.SECRET:
            data = {name: base64.b64decode(text).decode(errors="replace") for name, text in data.items()}
        self.files = data
        self._metadata: Json = body["metadata"]

    @property
    def in_force(self) -> bool:
        """True if the daemons use these files, as far as earlier runs recorded it."""
        return self._annotations.get(IN_FORCE) == digest(self.files)

    @property
    def resource(self) -> str:
        """Id of the resource that wrote it last; empty if none is recorded."""
        return str(self._annotations.get(RESOURCE, ""))

    @property
    def _annotations(self) -> Json:
        return self._metadata.get("annotations") or {}

    def is_as(self, desired: DesiredFiles) -> bool:
        """Return True if the live object equals the desired one."""
        labels = self._metadata.get("labels") or {}
        return (
            self.in_force
            and self.files == desired.files
            and self.resource == desired.resource
            and desired.labels.items() <= labels.items()
            and desired.annotations.items() <= self._annotations.items()
        )


def digest(files: Mapping[str, str]) -> str:
    """Return a digest of the names and contents of files."""
    return digest_of_sums({name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()})


def digest_of_sums(sums: Mapping[str, str]) -> str:
    """Return the same digest, from the output of `sha256sum` by file."""
    return hashlib.sha256("\n".join(f"{sums[name]}  {name}" for name in sorted(sums)).encode()).hexdigest()


_LONG_LINES, _LONG_BYTES = 40, 4096
"""Largest new file that is shown as a whole, which a person reads."""
_FIRST_LINES, _FIRST_CHARACTERS = 5, 200
"""Lines of a larger new file that are shown, and the most characters of one."""


def differences(config_map: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a unified diff between two sets of files; for a long new file, its size and first lines."""
    for name in sorted(old.keys() | new.keys()):
        added, size = new.get(name, "").splitlines(), len(new.get(name, "").encode())
        if name not in old and (len(added) > _LONG_LINES or size > _LONG_BYTES):
            yield f"{config_map}/{name}: new, {counted(len(added), 'line')}, {size} bytes, which begin with"
            yield from (f"+{line[:_FIRST_CHARACTERS]}" for line in added[:_FIRST_LINES])
            continue
        before = old.get(name, "").splitlines()
        yield from unified_diff(before, added, f"{config_map}/{name}", f"{config_map}/{name}", lineterm="", n=1)
