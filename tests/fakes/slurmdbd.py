"""slurmdbd behind sacctmgr: the accounts and users of one cluster."""

from collections.abc import Sequence

from soperator_pulumi.operations.association_plan import RecordedAssociations
from soperator_pulumi.slurm.sacctmgr import Sacctmgr
from soperator_pulumi.slurm.transport import Answer


class Database:
    """slurmdbd, as far as sacctmgr's commands of one cluster need it; a user's first account is the default one."""

    def __init__(self) -> None:
        self.clusters: set[str] = set()
        self.rows: list[tuple[str, str]] = []
        self.defaults: dict[str, str] = {}
        self.changes: list[str] = []

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:  # noqa: ARG002
        words = [word for word in command[1:] if not word.startswith("--")]
        if words[0] == "show":
            return Answer(0, "".join(f"{line}\n" for line in self._shown(words[1])), "")
        self.changes.append(" ".join(words))
        values = dict(word.split("=", 1) for word in words if "=" in word)
        names = values["name"].split(",")
        if words[1] == "cluster":
            self.clusters |= {*names}
        elif words[1] == "account":
            self.rows += [(name, "") for name in names]
        elif words[0] == "add":
            assert (values["account"], "") in self.rows, "sacctmgr refuses users of an unknown account"
            for name in names:
                self.rows.append((values["account"], name))
                self.defaults.setdefault(name, values["account"])
        else:
            for name in names:
                assert (values["defaultaccount"], name) in self.rows
                self.defaults[name] = values["defaultaccount"]
        return Answer(0, "", "")

    def _shown(self, what: str) -> list[str]:
        if what == "cluster":
            return sorted(self.clusters)
        if what == "user":
            return [f"{user}|{account}" for user, account in self.defaults.items()]
        return [f"{account}|{user}" for account, user in self.rows]

    def now(self) -> RecordedAssociations:
        sacctmgr = Sacctmgr(self, "hpc")
        return RecordedAssociations("hpc" in sacctmgr.clusters(), sacctmgr.associations())
