"""The jail: one root filesystem for all sessions and jobs, independent of the daemons' images."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

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
"""Name of a tree in the jail's volume: the start of a hash of its source."""

TarballUrl = Annotated[
    str,
    Matches(
        r"https?://[A-Za-z0-9.-]+(:\d{1,5})?/[A-Za-z0-9._~/%&=?,:;+!*()\[\]-]*",
        "needs an address that starts with http:// or https://, without a user, a password or a '#': the Job that "
        "fills the jail shows it to everyone who may read Jobs.",
        2048,
    ),
]
"""Address of a tarball."""

Sha256 = Annotated[
    str, Matches(r"[0-9a-f]{64}", "needs the SHA-256 of the tarball: 64 digits from 0-9a-f, as `sha256sum` prints it.")
]


AppArmorProfile = Annotated[
    str,
    Matches(
        r"unconfined|runtime|localhost/[A-Za-z0-9._/-]+",
        'needs "unconfined", "runtime", or "localhost/" and the name of a profile that is loaded on every machine.',
        253,
    ),
]


class TarballSource(Model):
    """A tarball of a root filesystem, plain or compressed with gzip, xz, bzip2 or zstd."""

    url: Maybe[TarballUrl]
    """Address of the tarball: http or https, reachable from the cluster, without credentials."""
    sha256: Sha256
    """SHA-256 of the tarball, in hex. A tree with another sum is never complete."""


"""SHA-256 of the tarball, in hex. A tree with another checksum is never complete."""


class JailSource(Model):
    """Source of the jail: exactly one of image and tarball."""

    image: ImageReference | None = None
    """A container image of any distribution, with or without Slurm. The tree's id is derived from this text, so moving
    a tag changes nothing: give a digest, or a new tag for new content."""
    tarball: TarballSource | None = None
    """A tarball of a root filesystem."""


class Changes(StrEnum):
    """Treatment of users' changes to a tree (installed packages) when another tree becomes active."""

    REFUSE = "refuse"
    """List the changes, and do not switch."""
    CARRY_OVER = "carry_over"
    """Make the changes in the new tree as well. If both trees changed a file, list it, and do not switch."""
    LEAVE_BEHIND = "leave_behind"
    """List the changes, and leave them in the old tree. Added users and groups are carried over in any case."""


class JailIsolation(Model):
    """Isolation between jobs on a node, in addition to their users."""

    pid: StrictBool = False
    """Limit the tasks of a step to the step's own processes. Otherwise they see all processes of their user on the
    node, but never those of other users."""
    ipc: StrictBool = False
    """Give the tasks of a step their own System V IPC and POSIX message queues. Default: they use those of the node.
    Files in /dev/shm are always the node's, protected by their modes."""
    user_namespaces: StrictBool = False
    """Let jobs create user namespaces, as `unshare --map-root-user` does. This exposes more of the kernel to every
    user who may run a job. `srun --container-remap-root` needs it (docs/containers.md). podman, apptainer, and enroot
    start no container even so (docs/container-programs.md)."""


class PopulateSpec(Scheduled):
    """The Job that fills a tree."""

    limit_mib_per_second: Annotated[int, whole(1, 1_000_000)] | None = None
    """Limit of writes in MiB/s, to spare a volume that is in use. Default: none."""
    pod_resources: PodResources = PodResources(
        requests=ResourceAmounts(cpu="1", memory="512Mi"), limits=ResourceAmounts(memory="2Gi")
    )
    """Resources of the Job's container. Default: one CPU and 512 MiB, at most 2 GiB of memory."""


class JailSpec(Model):
    """The root filesystem of all sessions and jobs."""

    source: JailSource | None = None
    """Source of the root filesystem. A changed source fills a second tree next to the first, then switches to it;
    running sessions and jobs keep their tree. Default: images.jail."""
    active: TreeId | None = None
    """Id of an older tree to switch back to. Default: the tree of the source."""
    keep_trees: Annotated[int, whole(1, 100)] = 2
    """Number of complete trees to keep, including the active one, in addition to trees that jobs or sessions use.
    Default: 2, to be able to switch back."""
    changes: Changes = Changes.REFUSE
    """Treatment of users' changes to the old tree in a switch. Default: list the changes, and do not switch."""
    storage: JailVolume = JailVolume()
    """The shared volume (ReadWriteMany) with the trees and, outside of them, the home directories."""
    submounts: tuple[SubmountSpec, ...] = ()
    """Other volumes inside the jail."""
    isolation: JailIsolation = JailIsolation()
    """Isolation of jobs on a node from each other."""
    populate: PopulateSpec = PopulateSpec()
    """The Job that fills a tree."""
    admin_shell: StrictBool = False
    """Keep the admin shell's pod running. Default: false; `make admin` starts it for one session."""
    app_armor: AppArmorProfile = "unconfined"
    """AppArmor profile of the slurmd and sshd containers, which mount the jail: `unconfined`, `localhost/<profile>` for
    a profile that is loaded on every machine, or `runtime` for the container runtime's, which forbids mounts on
    machines with AppArmor. Default: unconfined. Kubernetes 1.29 has no field for it, and needs `runtime`."""


def problems(jail: JailSpec, images: ImagesSpec) -> Iterator[Problem]:
    """Yield problems of the jail's source."""
    source = jail.source
    if not known(source):
        return
    if source is None:
        if known(images) and images.jail is None:
            yield Problem("images.jail", "missing, and jail.source is not given: the jail has no source. Give either.")
        return
    if known(source.image, source.tarball) and (source.image is None) == (source.tarball is None):
        text = "empty" if source.image is None else "has both image and tarball"
        yield Problem("jail.source", f"{text}. Give exactly one of image and tarball, or remove it to use images.jail.")
