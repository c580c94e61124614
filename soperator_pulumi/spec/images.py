"""Container images of the cluster."""

from enum import StrEnum
from typing import Annotated

from soperator_pulumi.spec.types.deferred import Maybe
from soperator_pulumi.spec.types.names import ObjectName
from soperator_pulumi.spec.validation.base import Matches, Model

_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
_PORT = "[0-9]{1,5}"
# A first part with a dot or a port is a host, by Docker's rule.
_HOST = rf"({_LABEL}:{_PORT}|{_LABEL}(\.{_LABEL})+(:{_PORT})?)"
_WITHOUT_DOT = "[a-z0-9]+((__?|-+)[a-z0-9]+)*"
_PART = r"[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*"
_TAG = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"

ImageReference = Annotated[
    str,
    Matches(
        rf"(({_HOST}|{_WITHOUT_DOT})/({_PART}/)*)?{_PART}(:{_TAG})?(@sha256:[0-9a-f]{{64}})?",
        'needs an image reference, such as "registry.example.com/soperator/worker:1.2".',
        512,
    ),
]
"""`[registry/]repository[:tag][@digest]`, in the form of
https://pkg.go.dev/github.com/distribution/reference, which container runtimes and registries share."""


class PullPolicy(StrEnum):
    """When to pull an image."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class ImagesSpec(Model):
    """The images, built from `images/` by `make images`, which prints their references."""

    controller: Maybe[ImageReference]
    """slurmctld and the client programs."""
    worker: Maybe[ImageReference]
    """slurmd and the client programs."""
    login: Maybe[ImageReference]
    """sshd and the client programs."""
    accounting: Maybe[ImageReference] | None = None
    """slurmdbd and the client programs. Required with accounting."""
    database: Maybe[ImageReference] | None = None
    """MariaDB. Required with the cluster's own database."""
    rest: Maybe[ImageReference] | None = None
    """slurmrestd and the proxy in front of it. Required with rest."""
    exporter: Maybe[ImageReference] | None = None
    """The exporter of metrics. Required with metrics."""
    munge: Maybe[ImageReference]
    """munged, which runs next to all other daemons."""
    jail_tools: Maybe[ImageReference]
    """Programs that fill and switch trees, merge users, and run the admin shell."""
    jail: ImageReference | None = None
    """The root filesystem of sessions and jobs. Required without jail.source. A plain value, because the tree's id is
    derived from it."""
    pull_policy: PullPolicy = PullPolicy.IF_NOT_PRESENT
    """When to pull images. Default: once, because tags are hashes of the content."""
    pull_secrets: tuple[Maybe[ObjectName], ...] = ()
    """Names of Secrets in the namespace with the registry's credentials."""
