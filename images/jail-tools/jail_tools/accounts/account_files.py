"""The account files in a tree's /etc, and the declared accounts among them.

`useradd` and similar programs may run in the admin shell at any moment. So a writer holds etc/.pwd.lock, as lckpwdf(3)
does, and readers see whole files only.
"""

import errno
import fcntl
import hashlib
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
from jail_tools.accounts.tables import AccountFile, Record, Table, parse
from jail_tools.errors import TryAgainError
from jail_tools.layout import Tree
from jail_tools.resolve_beneath import Owned

LOCK_SECONDS = 15
"""Time that lckpwdf(3) waits for the lock."""

_LOCK = "etc/.pwd.lock"
_POLL_SECONDS = 0.1
_NEW_FILES = {kind: Owned(b"", 0o600 if kind is AccountFile.SHADOW else 0o644) for kind in AccountFile}


@dataclass(frozen=True)
class Files:
    """The three files of one tree; those that do not exist are empty."""

    tables: dict[AccountFile, Table]
    owned: dict[AccountFile, Owned]

    @property
    def accounts(self) -> dict[AccountFile, dict[str, Record]]:
        """The records of all three."""
        return {kind: table.records for kind, table in self.tables.items()}


def read(root: int) -> Files:
    """Read the three files of a tree.

    Raises:
        OSError: one, `filename`, is not a regular file, is too large or can't be read.
    """
    found = {kind: resolve_beneath.read(root, f"etc/{kind.file_name}") for kind in AccountFile}
    owned = {kind: file or _NEW_FILES[kind] for kind, file in found.items()}
    tables = {kind: parse(kind, file.content) for kind, file in owned.items()}
    return Files(tables, owned)


def checksum(tree: Tree) -> bytes:
    """Return a checksum that changes with the contents of a tree's three files, and with those that are managed there.

    Raises:
        OSError: one is not a regular file, is too large or can't be read.
    """
    managed = _managed(tree)
    contents = [managed.read_bytes() if managed.exists() else b""]
    with resolve_beneath.directory(str(tree.root)) as root:
        files_of_tree = (resolve_beneath.read(root, f"etc/{kind.file_name}") for kind in AccountFile)
        contents += [file.content if file else b"" for file in files_of_tree]
    return b"".join(hashlib.sha256(content).digest() for content in contents)


def write(root: int, old: Files, tables: Mapping[AccountFile, Table]) -> None:
    """Write the files that change, each atomically, with their former mode and owner.

    Group comes first and passwd last, so that every user that a lookup finds is complete.
    """
    for kind in (AccountFile.GROUP, AccountFile.SHADOW, AccountFile.PASSWD):
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
            raise OSError(errno.EINVAL, "is not a regular file", _LOCK)
        _take(lock, time.monotonic() + wait_seconds)
        yield
    finally:
        os.close(lock)


def keep_declared(tree: Tree, declared: Accounts, wait_seconds: float = LOCK_SECONDS) -> tuple[str, ...]:
    """Write the declared accounts into a tree's files and return the clashes. Write nothing if nothing changes.

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


def read_managed(tree: Tree) -> dict[AccountFile, dict[str, Record]]:
    """Return the records that this package put into a tree's files."""
    try:
        content = json.loads(_managed(tree).read_text())
    except FileNotFoundError:
        return {kind: {} for kind in AccountFile}
    except ValueError as error:
        raise OSError(errno.EINVAL, "is damaged", str(_managed(tree))) from error
    return {kind: {name: tuple(fields) for name, fields in content[kind.file_name].items()} for kind in AccountFile}


def write_managed(tree: Tree, managed: Accounts) -> None:
    """Record which lines of a tree's files this package manages."""
    content = {kind.file_name: dict(managed[kind]) for kind in AccountFile}
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
                    f"/{_LOCK} of the tree is held by another program (useradd, passwd ...). Try again later."
                ) from None
            time.sleep(_POLL_SECONDS)
        else:
            return
