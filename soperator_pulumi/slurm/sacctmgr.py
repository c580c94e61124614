"""Client of slurmdbd over sacctmgr: accounts and users of one cluster."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from soperator_pulumi.errors import NotRunningError, SlurmError
from soperator_pulumi.slurm.transport import Answer, Transport

_SECONDS = 60
_WITHOUT_EFFECT = re.compile(r"Nothing (new )?(added|modified|changed)|already exists")
_WITHOUT_ANSWER = re.compile(r"slurm_persist_conn_open|Sending PersistInit msg|Unable to connect to database")
"""Messages of sacctmgr if it could not reach slurmdbd, or slurmdbd could not reach its database."""
_ARGUMENT_CHARACTERS = 4000
"""Most characters of the names in one command, as for scontrol."""


@dataclass(frozen=True)
class Association:
    """An account of a cluster, or a user in one."""

    account: str
    user: str
    """Name of the user; empty for the account itself."""
    is_default: bool = False
    """True for the account of the user's jobs that do not name one."""


@dataclass(frozen=True)
class Sacctmgr:
    """sacctmgr for one cluster. It never removes anything."""

    transport: Transport
    cluster: str

    def clusters(self) -> frozenset[str]:
        """Return the names of all clusters that the database knows."""
        return frozenset(row[0] for row in self._rows("show", "cluster", "format=cluster"))

    def accounts(self) -> frozenset[str]:
        """Return the names of all accounts in the database, of any cluster."""
        return frozenset(row[0] for row in self._rows("show", "account", "format=account"))

    def qos(self) -> frozenset[str]:
        """Return the names of all QoS in the database, in lower case, as Slurm keeps them."""
        return frozenset(row[0].lower() for row in self._rows("show", "qos", "format=name"))

    def associations(self) -> tuple[Association, ...]:
        """Return the associations of the cluster."""
        rows = self._rows("show", "associations", f"cluster={self.cluster}", "format=account,user")
        wanted = ("show", "user", "withassoc", "where", f"cluster={self.cluster}", "format=user,defaultaccount")
        defaults = {row[0]: row[1] for row in self._rows(*wanted)}
        return tuple(Association(account, user, defaults.get(user) == account) for account, user in rows)

    def add_cluster(self) -> None:
        """Register the cluster."""
        self._change("add", "cluster", f"name={self.cluster}")

    def add_accounts(self, names: Sequence[str]) -> None:
        """Add accounts to the cluster, below root."""
        for some in _portions(names):
            self._change("add", "account", f"name={some}", f"cluster={self.cluster}")

    def add_users(self, names: Sequence[str], account: str) -> None:
        """Add users to an account of the cluster; a user's first account is the default one."""
        for some in _portions(names):
            self._change("add", "user", f"name={some}", f"account={account}", f"cluster={self.cluster}")

    def set_default_account(self, names: Sequence[str], account: str) -> None:
        """Make an account of the users their default account in the cluster."""
        for some in _portions(names):
            where = ("where", f"name={some}", f"cluster={self.cluster}")
            self._change("modify", "user", *where, "set", f"defaultaccount={account}")

    def _rows(self, *arguments: str) -> list[list[str]]:
        answer = self.transport.run(["sacctmgr", "--noheader", "--parsable2", *arguments], timeout_seconds=_SECONDS)
        if answer.returncode != 0:
            raise _error(arguments, answer)
        return [line.split("|") for line in answer.stdout.splitlines() if line]

    def _change(self, *arguments: str) -> None:
        """Make a change. sacctmgr fails if it has no effect, so the caller reads again what exists."""
        answer = self.transport.run(["sacctmgr", "--immediate", *arguments], timeout_seconds=_SECONDS)
        text = answer.stdout + answer.stderr
        if answer.returncode != 0 and not _WITHOUT_EFFECT.search(text):
            raise _error(arguments, answer)


def _portions(names: Sequence[str]) -> Iterator[str]:
    """Yield the names joined by commas, as many at a time as a command can take."""
    portion = ""
    for name in names:
        if len(portion) + len(name) >= _ARGUMENT_CHARACTERS:
            yield portion
            portion = ""
        portion = f"{portion},{name}" if portion else name
    if portion:
        yield portion


def _error(arguments: Sequence[str], answer: Answer) -> SlurmError:
    silent = answer.timed_out or _WITHOUT_ANSWER.search(answer.message)
    kind = NotRunningError if silent else SlurmError
    return kind(f"sacctmgr {' '.join(arguments)} failed with {answer.returncode}: {answer.message}")
