"""Keeps the accounts that daemons look up in step with the declared ones and those made inside the jail."""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from jail_tools import claim, resolve_beneath
from jail_tools.accounts import account_files, account_resolution
from jail_tools.accounts.tables import AccountFile, Record, Table, parse
from jail_tools.errors import RefusedError, TryAgainError, reason
from jail_tools.layout import Tree
from jail_tools.resolve_beneath import Owned

SUMS = "declared.sha256"
"""Checksums of what was merged: one line of sha256sum(1) for each declared file. Written last, after the accounts."""

_MODES = {AccountFile.PASSWD: 0o644, AccountFile.GROUP: 0o644, AccountFile.SHADOW: 0o600}

_Accounts = dict[AccountFile, dict[str, Record]]
_Seen = tuple[bytes, Tree | None, bytes]


@dataclass
class AccountSync:
    """Compares the accounts repeatedly. A problem is reported once, until it changes."""

    jail: Path
    declared: Path
    out: Path
    write_tree: bool = False
    _seen: _Seen | None = None
    """Checksums of the last pass's input, if it left nothing to do: a pass comes every second, and many accounts
    take long to parse."""
    _tree_sum: bytes = b""
    """Checksum of the tree's accounts at their last successful read."""
    _tree: tuple[_Accounts, _Accounts] | None = None
    """Managed records and accounts of the tree, from its last successful read."""
    _reported: set[str] = field(default_factory=set)
    _written: dict[str, bytes] = field(default_factory=dict)

    def look(self) -> None:
        """Update the files from the declared accounts and those of the active tree."""
        contents = self._read_declared()
        if not contents:
            return  # the volume is not there yet: no one is removed for that
        problems: list[str] = []
        tree, sums = self._active_tree(problems), _sums(contents)
        seen = (sums, tree, self._sum_of(tree) if tree else b"")
        if seen == self._seen:
            return
        declared = {kind: parse(kind, contents.get(kind, b"")).records for kind in AccountFile}
        managed, accounts = self._read_tree(tree, problems) if tree else (_nobody(), _nobody())
        known = account_resolution.for_daemons(declared, accounts, managed)
        self._write_out(known.accounts, sums)
        problems += known.problems
        done = len(problems) == len(known.problems)
        if tree and self.write_tree:
            try:
                problems += account_files.keep_declared(tree, declared, wait_seconds=0)
            except TryAgainError as error:
                done = False
                problems.append(str(error))
            except OSError as error:
                done = False
                problems.append(f"tree {tree.name}: {error.filename or 'etc'} can't be written: {reason(error)}")
        self._report(problems)
        self._seen = seen if done else None

    def _active_tree(self, problems: list[str]) -> Tree | None:
        try:
            return claim.active_tree(self.jail)
        except RefusedError as error:
            problems.append(str(error))
            return None

    def _read_declared(self) -> dict[AccountFile, bytes]:
        """Read all declared files from the same version, although the kubelet may switch the link ..data meanwhile."""
        while True:
            version = self._version()
            contents = {}
            for kind in AccountFile:
                try:
                    contents[kind] = (self.declared / version / kind.file_name).read_bytes()
                except FileNotFoundError:
                    continue
            if version == self._version():
                return contents

    def _version(self) -> Path:
        link = self.declared / "..data"
        return link.readlink() if link.is_symlink() else Path()

    def _sum_of(self, tree: Tree) -> bytes:
        """Return the checksum of the accounts in a tree, or the last one while they can't be read."""
        with suppress(OSError):  # a pass that reads them names it
            self._tree_sum = account_files.checksum(tree)
        return self._tree_sum

    def _read_tree(self, tree: Tree, problems: list[str]) -> tuple[_Accounts, _Accounts]:
        """Read the accounts that the sync put there, then all others in the tree."""
        try:
            managed = account_files.read_managed(tree)
            with resolve_beneath.directory(str(tree.root)) as root:
                self._tree = (managed, account_files.read(root).accounts)
        except OSError as error:
            problems.append(
                f"tree {tree.name}: {error.filename or 'etc'}: {reason(error)}. Until this is fixed, the jail's own "
                "users from the last successful read count."
            )
        return self._tree or (_nobody(), _nobody())

    def _write_out(self, accounts: _Accounts, sums: bytes) -> None:
        """Write the files that changed: group and shadow before passwd, the sums last."""
        wanted = {
            kind.file_name: Table(kind, ()).with_records(accounts[kind]).format()
            for kind in (AccountFile.GROUP, AccountFile.SHADOW, AccountFile.PASSWD)
        }
        modes = {kind.file_name: mode for kind, mode in _MODES.items()}
        with resolve_beneath.directory(str(self.out)) as out:
            for name, content in {**wanted, SUMS: sums}.items():
                if self._written.get(name) != content:
                    resolve_beneath.replace(out, name, Owned(content, modes.get(name, 0o644)), chown=False)
                    self._written[name] = content

    def _report(self, problems: list[str]) -> None:
        for problem in problems:
            if problem not in self._reported:
                print(f"users: {problem}", flush=True)
        self._reported = set(problems)


def _sums(contents: Mapping[AccountFile, bytes]) -> bytes:
    """Return the lines of sha256sum(1) for the declared files."""
    lines = (f"{hashlib.sha256(content).hexdigest()}  {kind.file_name}\n" for kind, content in contents.items())
    return "".join(lines).encode()


def _nobody() -> _Accounts:
    return {kind: {} for kind in AccountFile}
