"""The small Kubernetes with slurmdbd and its MariaDB, whose account accepts several passwords."""

import json
import re
from dataclasses import dataclass

from soperator_pulumi.operations.database.accounts import native_hash
from soperator_pulumi.slurm.transport import Answer
from tests.fakes.accounting import DENIED, AccountingWorld
from tests.fakes.objects import PODS, STATEFUL_SETS
from tests.fakes.pods import a_pod
from tests.fakes.small_world import FakeTransport

USER = "slurm"


def password_in(text: str) -> str:
    """Return the password in a slurmdbd.conf, as Slurm reads it: escapes go first, then quotes."""
    found = next(line.partition("=")[2] for line in text.splitlines() if line.startswith("StoragePass="))
    return re.sub(r"\\(.)", r"\1", found).strip('"')


class DatabaseWorld(AccountingWorld):
    """A cluster with MariaDB, once `add_database` has been called."""

    def __init__(self) -> None:
        super().__init__()
        self.hashes: tuple[str, ...] = ()
        """Hashes of the passwords that the account accepts."""
        self.refuses_statement = ""
        """MariaDB's words about statements that change something; empty to carry them out."""
        self.locked_out = False
        """True once slurmdbd could not have connected."""
        self.complains = lambda files: "" if self._accepts(files["slurmdbd.conf"]) else DENIED

    def add_database(self, password: str, state: str = "running") -> None:
        """Add MariaDB's pod, whose account has a password."""
        self.changes += 1
        self.hashes = (native_hash(password),)
        self.objects[f"{PODS}/database-0"] = a_pod("database-0", "database", "mariadb", state, uid=str(self.changes))
        self.objects[f"{STATEFUL_SETS}/database"] = {"metadata": {}}

    def transport(self, namespace: str, pod: str, container: str, *, coreutils: bool = True) -> FakeTransport:
        if container != "mariadb":
            return super().transport(namespace, pod, container, coreutils=coreutils)
        return _MariadbTransport(self, pod, container)

    def query(self, statement: str) -> Answer:
        """Carry out what an administrator of the accounts asks for."""
        if statement.startswith("SELECT Priv"):
            first, *others = self.hashes
            way = {"plugin": "mysql_native_password"}
            also = [{}, *({**way, "authentication_string": other} for other in others)] if others else []
            row = {"access": 0, **way, "authentication_string": first, **({"auth_or": also} if also else {})}
            return Answer(0, json.dumps(row) + "\n", "")
        assert statement.startswith(f"ALTER USER '{USER}'@'%' IDENTIFIED VIA "), statement
        if self.refuses_statement:
            return Answer(1, "", f"--------------\n{statement}--------------\n\n{self.refuses_statement}\n")
        self.hashes = tuple(re.findall(r"mysql_native_password USING '(\*[0-9A-F]{40})'", statement))
        if self.slurmdbd_runs_on is not None and not self._accepts(self.slurmdbd_runs_on["slurmdbd.conf"]):
            self.locked_out = True
        return Answer(0, "", "")

    def _accepts(self, conf: str) -> bool:
        return native_hash(password_in(conf)) in self.hashes


@dataclass
class _MariadbTransport(FakeTransport):
    world: DatabaseWorld

    def _answer(self, text: str, stdin: bytes) -> Answer:
        assert text.startswith(f"/bin/sh -c head -c {len(stdin)} | mariadb ")
        return self.world.query(stdin.decode())
