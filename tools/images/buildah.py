"""buildah with separate storage, independent of this machine's containers."""

import ipaddress
import re
import resource
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tools.console import UserError
from tools.images.recipe import LOCAL_REPOSITORY
from tools.images.runner import Progress, Runner
from tools.kube.debs import Tool

_NOTES = Path("/var/lib/containers")
"""Folder in which buildah, as root and whatever its flags, records layers' digests in a registry."""

_LIBRARIES = Path("/etc/ld.so.cache")
"""File in which the dynamic linker looks up libraries. For RUN, buildah restarts itself without its environment."""

_OVER = """\
while [ "$1" != -- ]; do mount --bind "$1" "$2"; shift 2; done
shift
exec "$@"
"""
"""Script that runs a command with files of this tree in place of other files, visible only to it (runner.CONFINED)."""

_STEP = re.compile(r"(?:\[\d+/\d+\] )?STEP (\d+)/(\d+): (?P<instruction>(?:RUN|ADD|COPY|FROM)) (?P<rest>.*)")
_MOUNTS = re.compile(r"--mount=\S+\s+")
_PORT = re.compile(r":\d+$")
_REFERENCE = re.compile(r"\S+/\S+:\S+")


class Buildah:
    """Commands of buildah.

    Attributes:
        driver: Driver of the storage: `overlay`, or `vfs` if overlay does not work.
    """

    def __init__(self, program: Tool, storage: Path, runner: Callable[[Mapping[str, str]], Runner]) -> None:
        """Choose a storage driver that works.

        Args:
            program: buildah, of the machine or unpacked.
            storage: Folder of the storage; made if missing.
            runner: Returns a runner of commands with additional environment variables.
        """
        self._program = program.path
        self._storage = storage
        self._over = {storage / "containers": _NOTES}
        (storage / "containers").mkdir(parents=True, exist_ok=True)
        self._policy = storage / "policy.json"
        self._policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        configuration = storage / "storage.conf"
        configuration.write_text('[storage]\ndriver = "overlay"\n')
        self._run = runner(
            # Otherwise buildah would read the machine's files in /etc/containers. Flags set the rest.
            {
                **program.environment,
                "CONTAINERS_STORAGE_CONF": str(configuration),
                "CONTAINERS_CONF": "/dev/null",
            }
        )
        if folders := program.environment.get("LD_LIBRARY_PATH"):
            self._over[storage / _LIBRARIES.name] = _LIBRARIES
            arguments = ("-X", "-C", str(storage / _LIBRARIES.name), *folders.split(":"))
            self._run("Listing libraries", ["ldconfig", *arguments])
        self.driver = "overlay"
        try:
            self("Trying overlay storage", "info")
        except UserError:
            # Slower, since vfs copies a parent for each image, but it works on any file system.
            self.driver = "vfs"

    def __call__(self, what: str, *arguments: str, progress: Progress = lambda _: None) -> list[str]:
        """Run one command and return its lines."""
        command = (
            *("sh", "-ec", _OVER, "sh", *(str(path) for pair in self._over.items() for path in pair), "--"),
            str(self._program),
            f"--root={self._storage / self.driver}",
            f"--runroot={self._storage / self.driver}-run",
            f"--storage-driver={self.driver}",
            *arguments,
        )
        with _there(_NOTES):
            return self._run(what, command, progress, interesting_step)

    def images(self) -> set[str]:
        """Return the references of all images in the storage."""
        lines = self("Listing images", "images", "--format={{.Name}}:{{.Tag}}")
        return {line for line in lines if _REFERENCE.fullmatch(line)}

    def remove_containers(self) -> None:
        """Remove the working containers of killed builds."""
        self("Removing left-over builds", "rm", "--all")

    def keep_only(self, references: Iterable[str]) -> None:
        """Remove all other images of this project, and those without a name."""
        old = {image for image in self.images() if image.startswith(f"{LOCAL_REPOSITORY}/")} - set(references)
        if old:
            self("Removing old images", "rmi", "--force", *sorted(old))
        self("Removing old images", "rmi", "--prune")

    def build(self, reference: str, folder: Path, options: Sequence[str], progress: Progress) -> None:
        """Build the Containerfile of a folder into one layer over its parent."""
        self(
            f"Building {reference}",
            "build",
            *("--isolation=chroot", "--network=host", "--format=oci", "--layers=false"),
            f"--signature-policy={self._policy}",
            *_limits(),
            *options,
            f"--tag={reference}",
            str(folder),
            progress=progress,
        )

    def export(self, reference: str, layout: Path) -> None:
        """Write an image into an OCI layout."""
        self(f"Writing {reference}", "push", f"--signature-policy={self._policy}", reference, f"oci:{layout}")

    def push(self, archive: Path, local: str, remote: str) -> None:
        """Push an image of an OCI archive, with the credentials of `docker login` or `podman login`."""
        policy = f"--signature-policy={self._policy}"
        self(f"Reading {local}", "pull", policy, f"oci-archive:{archive}")
        self(f"Pushing {remote}", "push", policy, tls_verify(remote), local, f"docker://{remote}")


def _limits() -> Iterator[str]:
    """Yield flags with this process's limits. Debian 13's buildah raises them, which root in a container may not do."""
    for name, number in {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}.items():
        soft, _ = resource.getrlimit(number)  # a pair would be refused if the hard limit is unlimited, which is -1
        yield f"--ulimit={name}={soft}"


@contextmanager
def _there(folder: Path) -> Iterator[None]:
    """Make a missing folder while the block runs."""
    missing = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        if missing:
            with suppress(OSError):  # another program uses it by now
                folder.rmdir()


def interesting_step(line: str) -> str | None:
    """Return the progress in a line of `buildah build`: the steps that take time."""
    match = _STEP.fullmatch(line)
    if match is None:
        return None
    return f"{match['instruction']} {' '.join(_MOUNTS.sub('', match['rest']).split())}"


def tls_verify(reference: str) -> str:
    """Return the flag that lets a registry on this machine use plain HTTP, as Docker does."""
    host = _PORT.sub("", reference.partition("/")[0]).strip("[]")
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    return f"--tls-verify={str(not loopback).lower()}"
