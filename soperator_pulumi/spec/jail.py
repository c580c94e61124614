"""The jail: the one root filesystem in which all sessions and jobs run, whatever images the daemons have."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import StrictBool

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.images import ImageReference, ImagesSpec
from soperator_pulumi.spec.scheduling import Scheduled
from soperator_pulumi.spec.storage import JailVolume
from soperator_pulumi.spec.submount import SubmountSpec
from soperator_pulumi.spec.types.deferred import Maybe
from soperator_pulumi.spec.types.quantity import PodResources, ResourceAmounts
from soperator_pulumi.spec.validation.base import Matches, Model, whole
from soperator_pulumi.spec.validation.partial import known

TreeId = Annotated[str, Matches(r"[0-9a-f]{12}", "needs the id of a tree: 12 digits from 0-9a-f, an output of `up`.")]
"""Name of a tree in the jail's volume: the beginning of a hash of what it was filled from."""

TarballUrl = Annotated[
    str,
    Matches(
        r"https?://[A-Za-z0-9.-]+(:\d{1,5})?/[A-Za-z0-9._~/%&=?,:;+!*()\[\]-]*",
        "needs an address that starts with http:// or https://, without a user, a password or a '#': the Job that "
        "fills the jail shows it to everybody who may see Jobs.",
        2048,
    ),
]
"""Where a tarball is downloaded from."""

Sha256 = Annotated[
    str, Matches(r"[0-9a-f]{64}", "needs the SHA-256 of the tarball: 64 digits from 0-9a-f, as `sha256sum` prints it.")
]


class TarballSource(Model):
    """A tarball of a root filesystem; plain or compressed by gzip, xz, bzip2 or zstd."""

    url: Maybe[TarballUrl]
    """Where it is: http or https, reachable from the cluster, without credentials in the address."""
    sha256: Sha256
    """SHA-256 of the tarball, in hex. A tree is complete only if it is right."""


class JailSource(Model):
    """What the jail is filled from: exactly one of image and tarball."""

    image: ImageReference | None = None
    """A container image of any distribution, with or without Slurm. A tag that moves is not noticed, as the tree is
    known by this text: give a digest, or a new tag for new content."""
    tarball: TarballSource | None = None
    """A tarball of a root filesystem."""


class Changes(StrEnum):
    """What becomes of what users changed in a tree (installed packages) when another one takes its place."""

    REFUSE = "refuse"
    """Nothing is switched; the changes are listed."""
    CARRY_OVER = "carry_over"
    """The changes are made in the new tree as well; what was changed in both is listed, and nothing is switched."""
    LEAVE_BEHIND = "leave_behind"
    """They stay in the old tree, and are listed. Users and groups that were added are taken along all the same."""


class JailIsolation(Model):
    """How far jobs on a node are kept apart, besides by their users."""

    pid: StrictBool = False
    """Whether the tasks of a step see and reach the step's own processes alone. Without it they see all of their own
    user's on the node; those of other users never."""
    ipc: StrictBool = False
    """Whether System V IPC and POSIX message queues belong to the tasks of a step on a node. Default: to the node;
    files in /dev/shm, which modes guard, always do."""
    user_namespaces: StrictBool = False
    """Whether jobs may make user namespaces, as rootless containers in a job do. They open more of the kernel to
    everybody who may run a job."""


class PopulateSpec(Scheduled):
    """The Job that fills a tree."""

    limit_mib_per_second: Annotated[int, whole(1, 1_000_000)] | None = None
    """How fast it writes at most, in MiB/s, to spare a volume that is in use. Default: as fast as it can."""
    pod_resources: PodResources = PodResources(
        requests=ResourceAmounts(cpu="1", memory="512Mi"), limits=ResourceAmounts(memory="2Gi")
    )
    """What its container asks for. Default: one CPU and 512 MiB, at most 2 GiB of memory."""


class JailSpec(Model):
    """The root filesystem of all sessions and jobs."""

    source: JailSource | None = None
    """What it is filled from. A changed source fills a second tree beside the first, then takes its place: sessions
    and jobs that run stay where they began. Default: images.jail."""
    active: TreeId | None = None
    """Id of an older tree to switch back to. Default: the tree of the source."""
    keep_trees: Annotated[int, whole(1, 100)] = 2
    """How many complete trees are kept, the active one among them. A tree that a job or a session uses is kept
    besides. Default: 2, so that one can switch back."""
    changes: Changes = Changes.REFUSE
    """What becomes of what users changed in the old tree when another one takes its place. Default: it is listed, and
    nothing is switched."""
    storage: JailVolume = JailVolume()
    """The shared volume (ReadWriteMany) with the trees and, outside of them, the home directories."""
    submounts: tuple[SubmountSpec, ...] = ()
    """Other volumes inside the jail."""
    isolation: JailIsolation = JailIsolation()
    """How far jobs on a node are kept apart."""
    populate: PopulateSpec = PopulateSpec()
    """The Job that fills a tree."""
    admin_shell: StrictBool = False
    """Whether the admin shell's pod runs all the time. Default: no; `make admin` starts it for one session."""
    app_armor: Literal["unconfined"] | None = None
    """AppArmor profile of the slurmd and sshd containers. Default: the container runtime's, which forbids mounting on
    machines that have AppArmor: there say "unconfined"."""


def problems(jail: JailSpec, images: ImagesSpec) -> Iterator[Problem]:
    """Yield what is wrong with what the jail is filled from."""
    source = jail.source
    if not known(source):
        return
    if source is None:
        if known(images) and images.jail is None:
            yield Problem("images.jail", "missing, and jail.source is not given: the jail has no content. Give one.")
        return
    if known(source.image, source.tarball) and (source.image is None) == (source.tarball is None):
        text = "empty" if source.image is None else "has both image and tarball"
        yield Problem("jail.source", f"{text}. Give exactly one of image and tarball, or leave it out for images.jail.")
