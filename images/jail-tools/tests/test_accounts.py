"""Files of accounts are read and written without losing a line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jail_tools.accounts.tables import AccountFile, Table, parse, problem

NAMES = st.from_regex(r"[a-z_][a-z0-9_.-]{0,8}", fullmatch=True)
FIELDS = st.text(st.characters(exclude_characters=":\n", exclude_categories=["Cs"]), max_size=5)
IDS = st.integers(0, 2**32 - 2).map(str)
RECORDS = {
    AccountFile.PASSWD: st.tuples(NAMES, FIELDS, IDS, IDS, FIELDS, FIELDS, FIELDS),
    AccountFile.GROUP: st.tuples(NAMES, FIELDS, IDS, FIELDS),
    AccountFile.SHADOW: st.tuples(NAMES, *[FIELDS] * 8),
}
KINDS = st.sampled_from(AccountFile)


@given(KINDS, st.binary(max_size=200))
def test_whatever_a_file_holds_is_written_as_it_was_read(kind: AccountFile, content: bytes) -> None:
    table = parse(kind, content)

    assert table.with_records(table.records).format().removesuffix(b"\n") == content.removesuffix(b"\n")


@given(KINDS.flatmap(lambda kind: st.tuples(st.just(kind), st.lists(RECORDS[kind]))))
def test_what_is_written_can_be_looked_up(case: tuple[AccountFile, list[tuple[str, ...]]]) -> None:
    kind, records = case
    by_name = {record[0]: record for record in records}

    table = Table(kind, ("# a comment", "+::::::")).with_records(by_name)

    assert parse(kind, table.format()).records == by_name
    assert table.lines[:2] == ("# a comment", "+::::::")


def test_records_keep_their_places_and_new_ones_come_last_by_id() -> None:
    table = parse(AccountFile.GROUP, b"root:x:0:\n# mine\nspoilt\nvideo:x:44:\nold:x:50:\n")
    records = {name: record for name, record in table.records.items() if name != "old"}

    changed = table.with_records(
        {
            **records,
            "video": ("video", "x", "44", "alice"),
            "b": ("b", "x", "2000", ""),
            "a": ("a", "x", "1000", ""),
        }
    )

    assert changed.lines == ("root:x:0:", "# mine", "spoilt", "video:x:44:alice", "a:x:1000:", "b:x:2000:")


def test_of_two_lines_of_one_name_the_first_counts_and_the_second_stays() -> None:
    table = parse(AccountFile.GROUP, b"a:x:1:\na:x:2:\n")

    assert table.records == {"a": ("a", "x", "1", "")}
    assert table.with_records({}).lines == ("a:x:2:",)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (("al ice", "x", "1000", "1000", "", "/home", "/bin/sh"), 'the name "al ice"'),
        (("-rf", "x", "1000", "1000", "", "/home", "/bin/sh"), 'the name "-rf"'),
        (("alice", "x", "4294967295", "1000", "", "/home", "/bin/sh"), "4294967295 is not an id"),
        (("alice", "x", "64031", "1000", "", "/home", "/bin/sh"), "64031 is the id of munge"),
        (("alice", "x", "1000", "4294967295", "", "/home", "/bin/sh"), "4294967295 is not an id"),
        (("alice", "x", "1000", "0", "", "/home", "/bin/sh"), "usermod --gid GROUP alice"),
        (("alice", "x", "1000", "1000", "", "home", "/bin/sh"), 'the home "home" is not an absolute path'),
        (("alice", "x", "1000", "1000", "\x1b[31m", "/home", "/bin/sh"), "alice: has control characters"),
    ],
)
def test_an_account_that_could_do_harm_is_named(record: tuple[str, ...], said: str) -> None:
    assert said in str(problem(AccountFile.PASSWD, record))
