"""A restore: the live database is the former one or that of the dump as a whole, wherever it is interrupted."""

import contextlib
import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from soperator_pulumi.errors import DatabaseError
from soperator_pulumi.operations.database.restore import LIVE, REPLACED, RESTORING, Restore
from tests.fakes.objects import KilledError

FORMER, DUMPED = {"job_table": "former", "only_before": "former"}, {"job_table": "dumped", "only_in_dump": "dumped"}


@dataclass
class Database:
    """The databases of a server, and the few statements of a restore. A RENAME is done as a whole, as MariaDB's is."""

    databases: dict[str, dict[str, str]] = field(default_factory=lambda: {LIVE: dict(FORMER)})
    connections: int = 0
    calls_left: int | None = None
    dump: dict[str, str] = field(default_factory=lambda: dict(DUMPED))
    refusal: str = ""
    """Words of the program that loads dumps; empty to load."""
    namespace: str = "hpc"

    def run(self, statements: str, *, timeout_seconds: int) -> str:
        assert timeout_seconds > 0
        return "".join(self._carry_out(statement) for statement in statements.strip().split(";\n") if statement)

    def load(self, dump: str, database: str) -> None:
        assert dump == "hpc-1.sql.gz"
        self._count()
        if self.refusal:
            raise DatabaseError(self.refusal)
        for table, content in self.dump.items():
            self._count()
            self.databases[database][table] = content

    def _count(self) -> None:
        if self.calls_left is not None:
            if self.calls_left == 0:
                raise KilledError
            self.calls_left -= 1

    def _carry_out(self, statement: str) -> str:
        self._count()
        words = statement.removesuffix(";").split()
        match words[0]:
            case "SELECT" if "PROCESSLIST" in statement:
                return f"{self.connections}\n"
            case "SELECT":
                (name,) = re.findall(r"TABLE_SCHEMA = '(\w+)'", statement)
                return "".join(f"{table}\n" for table in self.databases.get(name, {}))
            case "DROP":
                self.databases.pop(words[-1], None)
            case "CREATE":
                assert "EXISTS" in words or words[-1] not in self.databases
                self.databases.setdefault(words[-1], {})
            case "RENAME":
                for source, table, target, to in re.findall(r"(\w+)\.`(\w+)` TO (\w+)\.`(\w+)`", statement):
                    assert to not in self.databases[target]
                    self.databases[target][to] = self.databases[source].pop(table)
            case other:
                assert other in {"GRANT", "REVOKE"}
        return ""


def restore(database: Any) -> Restore:
    return Restore(database, database, lambda _text: None)


def test_a_restore_keeps_the_replaced_database_until_it_is_forgotten() -> None:
    database = Database()
    restore(database).run("hpc-1.sql.gz")
    assert database.databases == {LIVE: DUMPED, REPLACED: FORMER}
    with pytest.raises(DatabaseError, match=f"keeps the database {REPLACED} of an earlier restore"):
        restore(database).run("hpc-1.sql.gz")
    assert restore(database).forget()
    assert database.databases == {LIVE: DUMPED}
    assert not restore(database).forget()


def test_a_database_with_connections_is_left_alone() -> None:
    database = Database(connections=3)
    with pytest.raises(DatabaseError, match=r"3 connections.* statefulset/accounting -n hpc --replicas=0"):
        restore(database).run("hpc-1.sql.gz")
    assert database.databases == {LIVE: FORMER}


def test_a_slurmdbd_that_comes_while_a_dump_is_loaded_keeps_the_live_database(monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database()
    load = database.load

    def loading(dump: str, target: str) -> None:
        load(dump, target)
        database.connections = 1

    monkeypatch.setattr(database, "load", loading)
    with pytest.raises(DatabaseError, match="1 connections"):
        restore(database).run("hpc-1.sql.gz")
    assert database.databases == {LIVE: FORMER}


@pytest.mark.parametrize("changes", [{"refusal": "a.sql.gz is incomplete"}, {"dump": {}}])
def test_a_dump_that_is_refused_or_empty_changes_nothing(changes: dict[str, Any]) -> None:
    database = Database(**changes)
    with pytest.raises(DatabaseError, match=r"is incomplete|has no table"):
        restore(database).run("hpc-1.sql.gz")
    assert database.databases == {LIVE: FORMER}


@pytest.mark.parametrize("survived_calls", range(16))
def test_a_restore_that_is_killed_at_any_call_is_whole_or_not_begun_and_the_next_one_ends_it(
    survived_calls: int,
) -> None:
    database = Database(calls_left=survived_calls)
    with contextlib.suppress(KilledError):
        restore(database).run("hpc-1.sql.gz")
    database.calls_left = None
    exchanged = database.databases[LIVE] == DUMPED
    assert exchanged or database.databases[LIVE] == FORMER
    with pytest.raises(DatabaseError) if exchanged else contextlib.nullcontext():
        restore(database).run("hpc-1.sql.gz")
    assert database.databases[LIVE] == DUMPED
    assert database.databases[REPLACED] == FORMER
    assert exchanged or RESTORING not in database.databases
