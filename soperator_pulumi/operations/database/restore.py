"""Restore of the accounting database from a dump.

1. Refuse while anyone else is connected, above all slurmdbd: its writes would be lost.
2. Load the dump into a database next to the live one. A damaged or foreign dump fails here, without any change.
3. Exchange the two in one statement, which MariaDB carries out completely or not at all (RENAME TABLE, atomic since
   10.6).
4. Keep the replaced database until the user discards it.

A run that is killed before step 3 leaves the live database unchanged, and the next run starts again at 1.
"""

from dataclasses import dataclass

from soperator_pulumi.errors import DatabaseError
from soperator_pulumi.operations.database.administration import DatabaseAdministration
from soperator_pulumi.operations.database.dump_jobs import Dumps
from soperator_pulumi.operations.progress import Report
from soperator_pulumi.render import layout

LIVE = layout.DATABASE_NAME
RESTORING = f"{LIVE}_restoring"
REPLACED = f"{LIVE}_replaced"

_CONNECTED = (
    f"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '{layout.DATABASE_USER}' AND DB = '{LIVE}';\n"  # noqa: S608
)


@dataclass(frozen=True)
class Restore:
    """Restore of the database of one cluster."""

    administration: DatabaseAdministration
    dumps: Dumps
    report: Report

    def run(self, dump: str) -> None:
        """Replace the live database with that of a dump, and keep the live one under another name.

        Raises:
            DatabaseError: slurmdbd is connected, a replaced database is kept already, or the dump is refused.
        """
        self._unless_connected()
        if self._tables(REPLACED):
            raise DatabaseError(
                f"MariaDB keeps the database {REPLACED} of an earlier restore. Remove it once you have checked that "
                "nothing is missing: soperator dumps forget. Nothing was changed."
            )
        self._run(
            f"DROP DATABASE IF EXISTS {RESTORING};\n"
            f"CREATE DATABASE {RESTORING};\n"
            f"GRANT ALL ON {RESTORING}.* TO '{layout.DATABASE_USER}'@'%';\n"
        )
        try:
            self.dumps.load(dump, RESTORING)
            self._unless_connected()
            self._exchange()
        finally:
            self._run(
                f"DROP DATABASE IF EXISTS {RESTORING};\n"
                f"REVOKE ALL ON {RESTORING}.* FROM '{layout.DATABASE_USER}'@'%';\n"
            )

    def forget(self) -> bool:
        """Remove the database that a restore has replaced; return False if there is none."""
        found = bool(self._tables(REPLACED))
        self._run(f"DROP DATABASE IF EXISTS {REPLACED};\n")
        return found

    def _exchange(self) -> None:
        before, after = self._tables(LIVE), self._tables(RESTORING)
        if not after:
            raise DatabaseError("The dump has no table. Nothing was changed.")
        moves = [
            *(f"{LIVE}.`{table}` TO {REPLACED}.`{table}`" for table in before),
            *(f"{RESTORING}.`{table}` TO {LIVE}.`{table}`" for table in after),
        ]
        self.report(f"restore: {len(after)} tables replace {len(before)}")
        self._run(f"CREATE DATABASE IF NOT EXISTS {REPLACED};\nRENAME TABLE {', '.join(moves)};\n")

    def _unless_connected(self) -> None:
        connections = int(self._run(_CONNECTED).strip())
        if connections:
            namespace = self.dumps.namespace
            raise DatabaseError(
                f"The database has {connections} connections, of slurmdbd or of a dump; slurmdbd would write into it. "
                f"Stop slurmdbd first; jobs continue: kubectl scale statefulset/accounting -n {namespace} "
                "--replicas=0. "
                "Nothing was changed."
            )

    def _tables(self, database: str) -> list[str]:
        statement = f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}';\n"  # noqa: S608
        return self._run(statement).split()

    def _run(self, statements: str) -> str:
        return self.administration.run(statements, timeout_seconds=300)
