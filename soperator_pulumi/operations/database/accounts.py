"""Accounts of the database, which accept two passwords while slurmdbd changes from one to the other.

Passwords are identified by their hash for mysql_native_password, which MariaDB stores: two rounds of SHA-1 without
salt.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from soperator_pulumi.errors import DatabaseError
from soperator_pulumi.operations.configuration.concealed import Concealed
from soperator_pulumi.operations.database.administration import DatabaseAdministration

PLUGIN = "mysql_native_password"


def native_hash(password: str) -> str:
    """Return the hash that MariaDB stores for a password, as its function PASSWORD returns it."""
    return f"*{hashlib.sha1(hashlib.sha1(password.encode()).digest()).hexdigest().upper()}"  # noqa: S324 MariaDB's own


def accepted_hashes(privileges: str) -> tuple[str, ...]:
    """Return the hashes of all passwords that an account accepts, from its row in mysql.global_priv."""
    row: dict[str, Any] = json.loads(privileges)
    ways = [row, *row.get("auth_or", [])]  # an empty entry among the others stands for the first
    return tuple(str(way["authentication_string"]) for way in ways if way.get("plugin") == PLUGIN)


def identified_by(user: str, hashes: Sequence[str]) -> str:
    """Return the statement that makes an account accept the passwords with these hashes, and no others."""
    ways = " OR ".join(f"{PLUGIN} USING '{digest}'" for digest in hashes)
    return f"ALTER USER '{user}'@'%' IDENTIFIED VIA {ways};\n"


@dataclass(frozen=True)
class PasswordsOfAccount:
    """Passwords of one account."""

    administration: DatabaseAdministration
    user: str

    def accepted(self) -> tuple[str, ...]:
        """Return the hashes of the passwords that the account accepts.

        Raises:
            DatabaseError: there is no such account, or MariaDB does not answer.
            TransportError: MariaDB's pod does not answer.
        """
        rows = self.administration.run(
            f"SELECT Priv FROM mysql.global_priv WHERE User = '{self.user}' AND Host = '%';\n"  # noqa: S608 a constant name
        ).splitlines()
        if not rows:
            raise DatabaseError(
                f"MariaDB has no account '{self.user}'@'%'. Delete the pod database-0, which creates it when it starts."
            )
        return accepted_hashes(rows[0])

    def accept(self, new: str) -> None:
        """Make the account accept the password with this hash as well as those that it accepts already."""
        accepted = self.accepted()
        if new not in accepted:
            self._set([new, *accepted])

    def accept_alone(self, new: str) -> None:
        """Make the account accept only the password with this hash. Open connections stay."""
        if self.accepted() != (new,):
            self._set([new])

    def _set(self, hashes: Iterable[str]) -> None:
        chosen = [*hashes]
        with Concealed(tuple(chosen)).in_errors():
            self.administration.run(identified_by(self.user, chosen))
