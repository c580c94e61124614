"""Settings that all parts of a platform share: presence, source, version and values of a chart."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from pydantic import Field, StrictBool

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.types.duration import Duration, lasting
from soperator_pulumi.spec.types.names import DnsLabel
from soperator_pulumi.spec.validation.base import Matches, Model
from soperator_pulumi.spec.validation.partial import known

ChartVersion = Annotated[
    str,
    Matches(
        r"v?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?",
        'needs an exact version of the chart, such as "1.21.2": a range may install another version tomorrow.',
    ),
]
"""A version by semver.org, not a range."""

RepositoryUrl = Annotated[
    str,
    Matches(
        r"https?://[A-Za-z0-9.-]+(:\d{1,5})?(/[A-Za-z0-9._~/-]*)?",
        "needs the address of a chart repository, http:// or https://, without a user and a password.",
        2048,
    ),
]
"""Address of a repository with an index.yaml."""

OciUrl = Annotated[
    str,
    Matches(
        r"oci://[A-Za-z0-9.-]+(:\d{1,5})?(/[a-z0-9._-]+)*",
        'needs the folder of the charts in a registry, such as "oci://registry.example.com/charts".',
        2048,
    ),
]
"""Folder of charts in a registry."""

IN_KUBERNETES = timedelta(minutes=15)
"""Time for images of several GiB and for an operator's webhooks."""


class ChartSource(Model):
    """Location of charts: exactly one of repository, oci and folder."""

    repository: RepositoryUrl | None = None
    """Address of a chart repository."""
    oci: OciUrl | None = None
    """Folder in a registry that holds the charts under their names. This machine's Helm login applies."""
    folder: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Folder with the charts as saved by `helm pull` (`gpu-operator-v26.7.0.tgz`), or unpacked under their names."""


class ChartPart(Model):
    """A part of a platform, installed by a chart."""

    OF_EXISTING: ClassVar[tuple[str, ...]] = ()
    """Fields of the part that still apply with exists: true, as they describe the existing installation."""

    exists: StrictBool = False
    """Check an existing installation, and change nothing: versions, definitions, settings that jobs depend on."""
    keep: StrictBool = False
    """Keep the installation, with its namespace, when the part leaves the stack: in a `destroy`, or with exists: true,
    which hands it over."""
    version: ChartVersion | None = None
    """Version of the chart. Default: the tested version, listed in docs/platform.md."""
    source: ChartSource | None = None
    """Location of the chart. Default: the project's public location, or the platform's source."""
    namespace: DnsLabel | None = None
    """Namespace of the chart. Default: the project's usual namespace."""
    create_namespace: StrictBool = True
    """Create the namespace. If false, it must exist, with the labels of pod security."""
    values: dict[str, Any] = Field(default_factory=dict)
    """Values of the chart, merged over the defaults here by key; null removes a default. Unknown keys are refused."""
    unchecked_values: dict[str, Any] = Field(default_factory=dict)
    """Values whose keys the tested version does not have, for another version of the chart."""
    timeout: Annotated[Duration, lasting(timedelta(seconds=30), timedelta(hours=6))] = IN_KUBERNETES
    """Time until all pods of the chart are ready. Default: 15m."""


def source_problems(source: ChartSource | None, path: str) -> Iterator[Problem]:
    """Yield the problem of a source that has no location, or several."""
    if source is None or not known(source, source.repository, source.oci, source.folder):
        return
    given = [name for name in ("repository", "oci", "folder") if getattr(source, name) is not None]
    if len(given) != 1:
        text = f"has {' and '.join(given)}" if given else "empty"
        yield Problem(path, f"{text}. Give exactly one of repository, oci and folder.")


def problems(part: ChartPart, path: str) -> Iterator[Problem]:
    """Yield problems between the fields of a part at `path`."""
    yield from source_problems(part.source, f"{path}.source")
    if known(part.exists) and part.exists:
        for name, field in type(part).model_fields.items():
            value = getattr(part, name)
            counts = name in (*_OF_EVERY_EXISTING, *part.OF_EXISTING)
            if not counts and known(value) and value != field.get_default(call_default_factory=True):
                text = "given with exists: true, which installs nothing. Remove it, or set exists: false."
                yield Problem(f"{path}.{name}", text)


_OF_EVERY_EXISTING = ("exists", "keep")
"""Fields that apply with exists: true in every part: keep: true followed by exists: true hands a part over."""
