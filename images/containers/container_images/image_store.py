"""The user's store of images, on storage that all nodes share: each image is brought once, by one process.

`images/<name>/`     an image, by its digest and the machine's architecture: its files in `rootfs`; `environment`,
                     `entrypoint` and `workdir` for the plugin; `reference`, its name, and `size` in bytes. The folder's
                     time is that of the last start
`named/<name>/`      a named container (`named_containers.py`), with the same files; tasks change those in `rootfs`
`uses/<name>`        held by the tasks of all nodes in that image, and by the processes that bring it for them
`parts/<name>/`      what is pulled of an image; what a killed process has left is gone on with
`parts/.../new.*/`   an image in the making, a folder for every try: a late writer of another one does no harm
`jobs/<job>-<name>`  the digest that a job's first process has found, for all of its nodes
`locks/<name>`       held by who brings or looks up, and by its programs; the kernel frees them when all are dead
                     Of a named container the names in `uses`, `parts` and `locks` begin with `named.`
`trash/`             what is being removed (`store_cleaning.py`)
"""

import fcntl
import hashlib
import os
import platform
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from container_images.image_reference import RegistryUnreachableError
from container_images.store_cleaning import (
    NO_LIMITS,
    StoreLimits,
    clean,
    empty_trash,
    folders_in,
    make_room,
    remove,
    size_of,
)

STORE = ".local/share/soperator/containers"
"""The store's place in a home."""

_RECORD_SECONDS = 30 * 86_400
"""Age at which a job's record is removed."""


class ImageStore:
    """A user's images.

    Args:
        folder: The store's folder; made when it is missing.
        say: Tells the user what is waited for.
        machine: Architecture whose images are wanted, as the kernel names it. Default: this machine's.
        limits: Limits of the store. Default: none.

    """

    def __init__(
        self,
        folder: Path,
        say: Callable[[str], None],
        machine: str = platform.machine(),
        limits: StoreLimits = NO_LIMITS,
    ) -> None:
        self._folder = folder
        self._say = say
        self._machine = machine
        self._limits = limits
        for name in ("images", "named", "uses", "parts", "jobs", "locks", "trash"):
            (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)

    def digest_of_job(self, job: str, image: str, find: Callable[[], str]) -> str:
        """Return the digest of an image for all nodes of a job: a tag that moves cannot give them two images.

        While the registry does not answer, this is the digest that was found last, if that image is in the store.

        Args:
            job: Name of the job, for a file, that no other job has.
            image: Text that stands for the image: for a file that is written again, another one.
            find: Returns the digest.
        """
        image_name = hashlib.sha256(os.fsencode(image)).hexdigest()[:16]
        name = f"{job}-{image_name}"
        record = self._folder / "jobs" / name
        if digest := _content(record):
            return digest
        with self._locked(name, "another node to look up the image"):
            _look_again(record.parent)
            if digest := _content(record):
                return digest
            try:
                digest = find()
            except RegistryUnreachableError as error:
                if not (known := self._newest(image_name)):
                    raise
                self._say(f"{error}. Starts the image that was found last, {known}")
                digest = known
            new = record.with_suffix(".new")
            new.write_text(digest)
            new.rename(record)
            self._forget_old_jobs()
            self.clean()
            return digest

    def use(self, digest: str) -> int:
        """Return a descriptor that keeps an image from being removed, on all nodes, for as long as it is open."""
        return self._use(self._ready(digest).name)

    def use_named(self, name: str) -> int:
        """Return a descriptor that does the same for a named container, including one that does not exist yet."""
        return self._use(_named(name))

    def is_named_in_use(self, name: str) -> bool:
        """Return True if a task of any node runs in a named container."""
        try:
            with (self._folder / "uses" / _named(name)).open("r+") as use:
                fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            pass
        return False

    def names(self) -> list[str]:
        """Return the names of the named containers."""
        return sorted(folder.name for folder in folders_in(self._folder / "named"))

    def named_folder(self, name: str) -> Path:
        """Return the folder of a named container that is in use (`use_named`), which may be missing."""
        folder = self._folder / "named" / name
        if not folder.is_dir():
            _look_again(folder.parent)
        with suppress(FileNotFoundError):
            os.utime(folder)
        return folder

    def make_named(self, name: str, fill: Callable[[Path], None]) -> Path:
        """Return the folder of a named container that is in use. If it is missing, `fill` fills an empty one.

        Raises:
            ImageError: The store has no room for it.

        """
        ready = self.named_folder(name)
        with self._locked(_named(name), "another process that makes this container"):
            _look_again(ready.parent)
            if not ready.is_dir():
                self._make(ready, _named(name), lambda _part, new: fill(new))
        return ready

    def clean(self) -> None:
        """Remove images that no task uses, and data that killed processes pulled, if they are too old."""
        clean(self._folder, self._limits, self._say)

    def make_room(self, wanted: int) -> None:
        """Remove images that no task uses until the given number of bytes fits.

        Raises:
            ImageError: They do not fit.
        """
        make_room(self._folder, self._limits, wanted, self._say)

    def folder_of(self, digest: str, bring: Callable[[Path, Path], None], least_bytes: int = 0) -> Path:
        """Return the folder of an image that is in use (`use`). If it is missing, `bring` makes it.

        Args:
            digest: Digest of the image's manifest.
            bring: Fills its second folder, which is empty; the first one may hold what an earlier try has pulled.
            least_bytes: Bytes that the image has at least, as far as that is known before.

        Raises:
            ImageError: The store has no room for the image.

        """
        ready = self._ready(digest)
        if not ready.is_dir():
            with self._locked(ready.name, "another process that brings this image"):
                _look_again(ready.parent)
                if not ready.is_dir():
                    self.make_room(least_bytes)
                    self._make(ready, ready.name, bring)
        os.utime(ready)
        empty_trash(self._folder)
        return ready

    def _use(self, name: str) -> int:
        descriptor = os.open(self._folder / "uses" / name, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return descriptor

    def _make(self, ready: Path, part_name: str, bring: Callable[[Path, Path], None]) -> None:
        part = self._folder / "parts" / part_name
        part.mkdir(mode=0o700, exist_ok=True)
        for left in part.glob("new.*"):
            with suppress(OSError):  # if the lock does not hold over all nodes, another process may write there
                remove(left)
        new = Path(tempfile.mkdtemp(prefix="new.", dir=part))
        try:
            bring(part, new)
            size = size_of(new)
            (new / "size").write_text(str(size))
        except BaseException:
            with suppress(OSError):
                remove(new)  # it may fill the home
            raise
        try:
            self.make_room(size)
            new.rename(ready)
        except OSError:
            _look_again(ready.parent)  # if the lock does not hold over all nodes, another one may have been faster
            if not ready.is_dir():
                raise
        finally:
            with suppress(OSError):
                remove(part)

    def _ready(self, digest: str) -> Path:
        return self._folder / "images" / folder_name(digest, self._machine)

    def _newest(self, image_name: str) -> str | None:
        records = (self._folder / "jobs").glob(f"*-{image_name}")
        for record in sorted(records, key=_changed_at, reverse=True):
            if (digest := _content(record)) and self._ready(digest).is_dir():
                return digest
        return None

    def _forget_old_jobs(self) -> None:
        oldest = time.time() - _RECORD_SECONDS
        for name in ("jobs", "locks"):
            for path in (self._folder / name).glob("*-*"):
                with suppress(OSError):  # another process has just removed or renamed it
                    if path.stat().st_mtime < oldest:
                        path.unlink()

    @contextmanager
    def _locked(self, name: str, holder: str) -> Iterator[None]:
        with (self._folder / "locks" / name).open("a") as lock:
            os.set_inheritable(lock.fileno(), True)  # programs that outlive this process keep the lock
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._say(f"waits on {socket.gethostname()} for {holder}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            os.utime(lock.fileno())
            yield


def folder_name(digest: str, machine: str) -> str:
    """Return the name of an image's folder. A digest may be that of a list for several architectures."""
    return f"{digest.removeprefix('sha256:')}.{machine}"


def digest_of_folder(name: str) -> str:
    """Return the digest of the image whose folder has this name."""
    return f"sha256:{name.partition('.')[0]}"


def _look_again(folder: Path) -> None:
    """Make this node see what another node has just written to a folder.

    An NFS client remembers for up to a minute that a name is missing, unless it has changed the folder itself.
    """
    change = folder / f".look.{socket.gethostname()}"  # hidden, as a killed process leaves it until the next look
    with suppress(OSError):
        change.mkdir()
    with suppress(OSError):
        change.rmdir()


def _named(name: str) -> str:
    return f"named.{name}"


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another process has just removed it
        return 0


def _content(record: Path) -> str | None:
    try:
        return record.read_text()
    except FileNotFoundError:
        return None
