"""Laws of declared accounts in the jail's own files, for any accounts on either side."""

from hypothesis import given
from hypothesis import strategies as st

from jail_tools.accounts.account_resolution import Accounts, before, for_daemons, for_tree
from jail_tools.accounts.tables import AccountFile, Record, Table, identity, is_user

NAMES = st.sampled_from(["alice", "bob", "eve", "zoe"])
IDS = st.integers(1000, 1003).map(str)
NOBODY: Accounts = {kind: {} for kind in AccountFile}


def passwd(name: str, number: str, group: str, shell: str) -> Record:
    return (name, "x", number, group, "", f"/home/{name}", shell)


@st.composite
def accounts(draw: st.DrawFn, system_groups: tuple[str, ...] = ()) -> dict[AccountFile, dict[str, Record]]:
    """Users with ids of their own, some of them with a line in shadow, or a primary group of the system."""
    names = draw(st.lists(NAMES, unique=True))
    numbers = draw(st.lists(IDS, unique=True, min_size=len(names), max_size=len(names)))
    users: dict[str, Record] = {
        name: passwd(
            name, number, draw(st.sampled_from([number, *system_groups])), draw(st.sampled_from(["sh", "zsh"]))
        )
        for name, number in zip(names, numbers, strict=True)
    }
    groups: dict[str, Record] = {
        name: (name, "x", record[2], ",".join(draw(st.sets(NAMES)))) for name, record in users.items()
    }
    shadow: dict[str, Record] = {name: (name, "*", *[""] * 7) for name in users if draw(st.booleans())}
    return {AccountFile.PASSWD: users, AccountFile.GROUP: groups, AccountFile.SHADOW: shadow}


def tables(found: Accounts) -> dict[AccountFile, Table]:
    """The files that hold some accounts."""
    return {kind: Table(kind, ("# ours",)).with_records(found[kind]) for kind in AccountFile}


@given(accounts(), accounts())
def test_what_was_declared_and_is_no_longer_leaves_no_trace(declared: Accounts, tree: Accounts) -> None:
    files = tables(tree)

    written = for_tree(declared, NOBODY, files)
    taken_back = for_tree(NOBODY, written.managed, written.tables)

    assert taken_back.tables == files
    assert taken_back.managed == NOBODY


@given(accounts(), accounts())
def test_a_second_look_changes_nothing(declared: Accounts, tree: Accounts) -> None:
    once = for_tree(declared, NOBODY, tables(tree))

    assert for_tree(declared, once.managed, once.tables) == once


@given(accounts(), accounts(), accounts())
def test_whatever_was_declared_before_the_result_is_what_is_declared_now(
    earlier: Accounts, declared: Accounts, tree: Accounts
) -> None:
    first = for_tree(earlier, NOBODY, tables(tree))

    through_earlier = for_tree(declared, first.managed, first.tables)

    assert records(through_earlier.tables) == records(for_tree(declared, NOBODY, tables(tree)).tables)


@given(accounts(), accounts(), accounts(), st.sets(st.sampled_from(AccountFile)))
def test_killed_between_any_two_files_the_next_run_comes_to_the_same(
    earlier: Accounts, declared: Accounts, tree: Accounts, done: set[AccountFile]
) -> None:
    first = for_tree(earlier, NOBODY, tables(tree))
    wanted = for_tree(declared, first.managed, first.tables)
    noted = before(first.managed, wanted.managed)
    half = {kind: (wanted if kind in done else first).tables[kind] for kind in AccountFile}

    assert records(for_tree(declared, noted, half).tables) == records(wanted.tables)


@given(accounts(), accounts(system_groups=("0", "100", "65534")))
def test_daemons_know_every_declared_account_as_declared_and_no_id_twice(declared: Accounts, tree: Accounts) -> None:
    known = for_daemons(declared, tree, NOBODY).accounts

    assert known[AccountFile.PASSWD].items() >= declared[AccountFile.PASSWD].items()
    assert known[AccountFile.SHADOW].items() >= declared[AccountFile.SHADOW].items()
    for kind in (AccountFile.PASSWD, AccountFile.GROUP):
        numbers = [identity(kind, record) for record in known[kind].values()]
        assert len(numbers) == len(set(numbers))
        assert all(is_user(number or 0) for number in numbers)
    assert all(is_user(int(record[3])) for record in known[AccountFile.PASSWD].values())


def records(files: dict[AccountFile, Table]) -> dict[AccountFile, dict[str, Record]]:
    """The accounts in files, in whatever order."""
    return {kind: table.records for kind, table in files.items()}
