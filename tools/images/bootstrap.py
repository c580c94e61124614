"""Minimal Debian from its packages, for machines that can pull no base image."""

from pathlib import Path

from tools.images.apt import BuildApt
from tools.images.recipe import SUITE

_KEYRING = "keyrings/debian-archive-keyring.gpg"

_REMOVED = (
    # The builder's: a pod gets its own from the kubelet, and the mirror is the build's matter.
    "etc/resolv.conf",
    "etc/hostname",
    "etc/machine-id",
    "etc/apt/sources.list",
    "etc/apt/apt.conf.d/99mmdebstrap",
    "var/log/apt",
    "var/log/*.log",
    "var/cache/debconf/*-old",
    "var/cache/ldconfig/aux-cache",
    "var/lib/dpkg/*-old",
)


def mmdebstrap_arguments(target: Path, dpkg_options: Path, apt: BuildApt, suite: str = SUITE) -> list[str]:
    """Return the arguments that make mmdebstrap write the base as a tar file.

    Args:
        target: Tar file to write.
        dpkg_options: File of the paths left out of packages; it stays in the image, for later layers.
        apt: Access to Debian.
        suite: Debian release.

    """
    removed = " ".join(f'"$1"/{path}' for path in _REMOVED)
    return [
        "--mode=root",
        "--variant=minbase",
        "--format=tar",
        "--skip=output/dev",  # the runtime makes /dev; unpacking device nodes needs root
        f"--aptopt={apt.settings}",
        f"--dpkgopt={dpkg_options}",
        f"--customize-hook=rm -rf {removed}",
        suite,
        str(target),
        *(source.line() for source in apt.sources),
    ]


def default_sources_arguments(suite: str = SUITE) -> list[str]:
    """Return the arguments that make mmdebstrap only print its default sources."""
    return [
        "--mode=root",
        "--variant=custom",
        "--format=null",
        "--skip=update,cleanup",
        """--setup-hook=cat "$1/etc/apt/sources.list" """,
        suite,
        "-",
    ]


def interesting_line(line: str) -> str | None:
    """Return the progress in a line of mmdebstrap, such as "I: installing essential packages..."."""
    text = line.removeprefix("I: ")
    return text if text != line and text.endswith("...") and "/" not in text else None


def keyring(mmdebstrap: Path, share: Path = Path("/usr/share")) -> Path | None:
    """Return the file of Debian's keys, installed or unpacked with mmdebstrap."""
    for folder in (share, mmdebstrap.parent.parent / "share"):
        if (folder / _KEYRING).exists():
            return folder / _KEYRING
    return None
