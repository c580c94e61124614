"""Plan of the accounting database: additions alone, none of them twice."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.operations.association_plan import RecordedAssociations, plan
from soperator_pulumi.slurm.sacctmgr import Association, Sacctmgr
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


ACCOUNTS = st.sampled_from(["default", "physics", "bio", "ml"])
USERS = st.dictionaries(
    st.sampled_from(["alice", "bob", "carol"]), st.lists(ACCOUNTS, min_size=1, max_size=3, unique=True)
)


@given(USERS, USERS)
def test_a_plan_leads_to_the_spec_at_once_whatever_the_database_had(
    before: dict[str, list[str]], wanted: dict[str, list[str]]
) -> None:
    database = Database()
    for users in (before, wanted):
        had = {*database.rows}
        plan("hpc", ["default"], users, database.now()).run(Sacctmgr(database, "hpc"))
        assert had <= {*database.rows}, "nothing is removed"
    assert plan("hpc", ["default"], wanted, database.now()).is_empty
    assert {user: database.defaults[user] for user in wanted} == {user: own[0] for user, own in wanted.items()}
    assert len(database.rows) == len({*database.rows}), "nothing is added twice"


def test_a_database_that_has_everything_needs_no_change() -> None:
    has = [Association("default", ""), Association("default", "alice", is_default=True)]
    found = plan("hpc", ["default"], {"alice": ["default"]}, RecordedAssociations(has_cluster=True, associations=has))
    assert found.is_empty
    assert not [*found.lines()]


def test_users_that_the_spec_does_not_name_stay() -> None:
    has = [Association("default", ""), Association("secret-project", ""), Association("secret-project", "eve")]
    assert plan("hpc", ["default"], {}, RecordedAssociations(has_cluster=True, associations=has)).is_empty


def test_the_steps_are_reported_before_they_are_done() -> None:
    users = {"alice": ["physics"], "bob": ["default"]}
    lines = [*plan("hpc", ["default"], users, RecordedAssociations(has_cluster=False)).lines()]
    assert lines == [
        "accounting: registers cluster hpc",
        "accounting: adds 2 accounts (default, physics)",
        "accounting: adds user alice to account physics",
        "accounting: adds user bob to account default",
    ]


def test_thousands_of_users_are_added_by_commands_of_a_bounded_length() -> None:
    database = Database()
    users = {f"user{number}": ["default"] for number in range(3000)}
    plan("hpc", ["default"], users, database.now()).run(Sacctmgr(database, "hpc"))
    assert len(database.defaults) == 3000
    assert all(len(change) < 5000 for change in database.changes)
