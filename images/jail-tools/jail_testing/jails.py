"""Small jails for tests: real directories with real trees."""

import hashlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jail_tools import layout
from jail_tools.layout import Tree
from jail_tools.populating.populate import Request, populate

PASSWD = "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/:/usr/sbin/nologin\n"  # noqa: S105 - no one has one
GROUP = "root:x:0:\ndaemon:x:1:\nvideo:x:44:\nusers:x:100:\n"
SHADOW = "root:*:19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\n"
STATUS = "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.41-12\n\n"

BASE = {
    "etc/passwd": PASSWD,
    "etc/group": GROUP,
    "etc/shadow": SHADOW,
    "etc/os-release": "ID=debian\n",
    "usr/bin/sh": "sh",
    "usr/lib/libc.so.6": "libc",
    "var/lib/dpkg/status": STATUS,
    "var/lib/dpkg/info/libc6:amd64.list": "/.\n/usr/lib/libc.so.6\n",
}


def package(name: str, version: str, depends: str = "") -> str:
    """A paragraph of dpkg's status."""
    needs = f"Depends: {depends}\n" if depends else ""
    return f"Package: {name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: {version}\n{needs}\n"


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files below a folder as an editor does."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def install(tree: Tree, name: str, version: str, files: dict[str, str], depends: str = "") -> None:
    """Leave in a tree what `dpkg --install` would."""
    status = tree.root / "var/lib/dpkg/status"
    status.write_text(status.read_text() + package(name, version, depends))
    write(tree.root, files)
    write(tree.root, {f"var/lib/dpkg/info/{name}.list": "/.\n" + "".join(f"/{path}\n" for path in files)})


def contents(folder: Path) -> dict[str, object]:
    """Return everything visible in a folder, apart from times of folders and locks."""
    found: dict[str, object] = {}
    for where, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(where, name)
            status = path.lstat()
            seen: tuple[object, ...] = (oct(status.st_mode), status.st_uid, status.st_gid)
            if path.is_symlink():
                seen = (*seen, path.readlink())
            elif path.is_file():
                seen = (*seen, path.read_bytes())
            if name not in {".pwd.lock", "lock"}:
                found[str(path.relative_to(folder))] = seen
    return found


@contextmanager
def in_memory() -> Iterator[Path]:
    """A folder where a flush costs nothing, however busy the disk is."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


class Jail:
    """One claim, and images to fill its trees from."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "jail"
        self.path.mkdir()
        self._sources = folder / "sources"

    def populate(self, name: str, files: dict[str, str] | None = None, changes: dict[str, str] | None = None) -> Tree:
        """Fill the tree of an image of this name: BASE with some files changed."""
        source = self._sources / name
        write(source, {**(BASE if files is None else files), **(changes or {})})
        (source / "etc/shadow").chmod(0o640)
        tree = layout.tree_of(self.path, hashlib.sha256(name.encode()).hexdigest()[:12])
        populate(Request(tree=tree, source=f"image:{name}", root=source, processes=1))
        return tree

    @property
    def active(self) -> str:
        """Name of the active tree."""
        return (self.path / "active").readlink().name

    def job_in(self, job: int, tree: Tree, age_seconds: float = 7200.0) -> Path:
        """Make a job's record, as the job's first task does."""
        record = self.path / "jobs" / str(job)
        record.symlink_to(f"trees/{tree.name}")
        made = record.lstat().st_mtime - age_seconds
        os.utime(record, (made, made), follow_symlinks=False)
        return record


def command(*arguments: str | Path) -> list[str | Path]:
    """Return the command line that runs a jail command in a separate process."""
    folder = str(Path(layout.__file__).parents[1])
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {folder!r}); {_MAIN}", *arguments]


_MAIN = "from jail_tools.__main__ import main; sys.exit(main(sys.argv[1:]))"

_CHANGING = frozenset(
    {"os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate"}
)


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Do some work in a process that is killed (SIGKILL) before its nth change of a file. Return True if it was killed.

    Python's audit events announce each change before it is made (PEP 578).
    """
    child = os.fork()
    if not child:
        left = step

        def count(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if writes or event in _CHANGING:
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1

        code = 1
        try:
            sys.addaudithook(count)
            work()
            code = 0
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in {0, -signal.SIGKILL}:
        raise AssertionError(f"the work ended with {status} before its change {step}")
    return status != 0
