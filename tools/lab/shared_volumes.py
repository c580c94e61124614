"""Volumes of the lab's first machine on the further ones, by Linux's own NFS server and client."""

from collections.abc import Sequence
from pathlib import Path

from tools.kube import debs
from tools.kube.process import output
from tools.kube.settings import Settings

PACKAGES = ("nfs-kernel-server",)
"""Packages of the server's programs. The client needs none."""

_STATE = Path("/var/lib/nfs")
_OPTIONS = "rw,no_root_squash,no_subtree_check,fsid=0"
"""Options of the export: root changes owners, as populating the jail does. Files in memory need a number as fsid."""

_THREADS = "8"


def serve(settings: Settings, machines: Sequence[Settings]) -> None:
    """Serve the first machine's volumes to further machines alone: pods reach the server, and may not mount."""
    settings.volumes.mkdir(parents=True, exist_ok=True)
    (_STATE / "v4recovery").mkdir(parents=True, exist_ok=True)
    for name in ("etab", "rmtab"):
        (_STATE / name).touch()
    output(["mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd"])
    clients = [f"{machine.address}:{settings.volumes}" for machine in machines]
    _run("exportfs", "-i", "-o", _OPTIONS, *clients)
    _run("rpc.mountd", "--no-nfs-version", "3")
    _run("rpc.nfsd", "--no-nfs-version", "3", "--port", "2049", _THREADS)


def mount(settings: Settings, first: Settings) -> None:
    """Mount the first machine's volumes at the path that they have there."""
    first.volumes.mkdir(parents=True, exist_ok=True)
    options = f"vers=4.2,addr={first.address},clientaddr={settings.address}"
    # Without the package's own program, the kernel wants the addresses as options.
    output(["mount", "-i", "-t", "nfs4", "-o", options, f"{first.address}:/", first.volumes], timeout_seconds=180)


def _run(program: str, *arguments: str) -> None:
    package = debs.unpacked(PACKAGES)
    output([package.program(program), *arguments], environment=package.environment, what=f"{program} of the volumes")
