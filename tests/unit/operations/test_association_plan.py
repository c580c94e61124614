"""Plan of the accounting database: additions alone, none of them twice."""

from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.operations.association_plan import RecordedAssociations, plan
from soperator_pulumi.slurm.sacctmgr import Association, Sacctmgr
from tests.fakes.slurmdbd import Database

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
