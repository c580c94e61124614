"""The files of accounts in a tree's /etc, and the declared accounts among them.

`useradd` and its kin may run in the admin shell at any moment: who writes holds etc/.pwd.lock as lckpwdf(3) does, and
readers see whole files only.
"""

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from jail_tools import files, resolve_beneath
from jail_tools.accounts import account_resolution
from jail_tools.accounts.account_resolution import Accounts
from jail_tools.accounts.tables import Kind, Record, Table, parse
from jail_tools.errors import TryAgainError
from jail_tools.layout import Tree
from jail_tools.resolve_beneath import Owned

LOCK_SECONDS = 15
"""How long lckpwdf(3) waits for the lock."""

_LOCK = "etc/.pwd.lock"
_POLL_SECONDS = 0.1
_NEW_FILES = {Kind.PASSWD: Owned(b"", 0o644), Kind.GROUP: Owned(b"", 0o644), Kind.SHADOW: Owned(b"", 0o600)}
_NOBODY: Accounts = {kind: {} for kind in Kind}


@dataclass(frozen=True)
class Files:
    """The three files of one tree as they were read; those that are not there are empty."""

    tables: dict[Kind, Table]
    owned: dict[Kind, Owned]
    absent: frozenset[Kind]

    @property
    def accounts(self) -> dict[Kind, dict[str, Record]]:
        """The records of all three."""
        return {kind: table.records for kind, table in self.tables.items()}


def read(root: int) -> Files:
    """Read the three files of a tree.

    Raises:
        OSError: one is no regular file, is too large or can't be read; `filename` says which.
    """
    found = {kind: resolve_beneath.read(root, f"etc/{kind.file_name}") for kind in Kind}
    owned = {kind: file or _NEW_FILES[kind] for kind, file in found.items()}
    tables = {kind: parse(kind, file.content) for kind, file in owned.items()}
    return Files(tables, owned, frozenset(kind for kind, file in found.items() if file is None))


def write(root: int, old: Files, tables: Mapping[Kind, Table]) -> None:
    """Write those files that change, each atomically, with mode and owner as they were.

    Group comes first and passwd last: whoever can be looked up is whole.
    """
    for kind in (Kind.GROUP, Kind.SHADOW, Kind.PASSWD):
        if tables[kind] != old.tables[kind]:
            resolve_beneath.replace(
                root, f"etc/{kind.file_name}", replace(old.owned[kind], content=tables[kind].format())
            )


@contextmanager
def locked(root: int, wait_seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold a tree's etc/.pwd.lock.

    Raises:
        TryAgainError: another program held it for all of `wait_seconds`.
        OSError: the tree has no etc, or something else than a file in the lock's place.
    """
    with resolve_beneath.directory(root, "etc") as folder:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        lock = os.open(".pwd.lock", flags, 0o600, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            raise OSError(errno.EINVAL, "is no regular file", _LOCK)
        _take(lock, time.monotonic() + wait_seconds)
        yield
    finally:
        os.close(lock)


def keep_declared(tree: Tree, declared: Accounts, wait_seconds: float = LOCK_SECONDS) -> tuple[str, ...]:
    """Bring a tree's files to what is declared and return what clashes. Nothing is written when nothing changes.

    Raises:
        TryAgainError: the tree's lock is held.
        OSError: a file of the tree can't be read or written.
    """
    with resolve_beneath.directory(str(tree.root)) as root:
        managed = read_managed(tree)
        wanted = account_resolution.for_tree(declared, managed, read(root).tables)
        if wanted.managed == managed and wanted.tables == read(root).tables:
            return wanted.problems
        with locked(root, wait_seconds):
            old = read(root)
            wanted = account_resolution.for_tree(declared, managed, old.tables)
            write_managed(tree, account_resolution.before(managed, wanted.managed))
            write(root, old, wanted.tables)
            write_managed(tree, wanted.managed)
        return wanted.problems


def read_managed(tree: Tree) -> dict[Kind, dict[str, Record]]:
    """Return the records that we put into a tree's files."""
    try:
        content = json.loads(_managed(tree).read_text())
    except FileNotFoundError:
        return {kind: {} for kind in Kind}
    except ValueError as error:
        raise OSError(errno.EINVAL, "is spoilt", str(_managed(tree))) from error
    return {kind: {name: tuple(fields) for name, fields in content[kind.file_name].items()} for kind in Kind}


def write_managed(tree: Tree, managed: Accounts) -> None:
    """Note which records of a tree's files are ours."""
    content = {kind.file_name: dict(managed[kind]) for kind in Kind}
    files.write_atomically(_managed(tree), [json.dumps(content, indent=1).encode()])


def _managed(tree: Tree) -> Path:
    return tree.meta / "managed.json"


def _take(lock: int, deadline: float) -> None:
    while True:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            if time.monotonic() >= deadline:
                raise TryAgainError(
                    f"/{_LOCK} of the tree is held by another program (useradd, passwd ...). Try again after it."
                ) from None
            time.sleep(_POLL_SECONDS)
        else:
            return
