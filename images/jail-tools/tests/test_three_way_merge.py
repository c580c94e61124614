"""Three-way merge: laws that hold for any records."""

from hypothesis import given
from hypothesis import strategies as st

from jail_tools.accounts.three_way_merge import Conflict, settle_group, three_way

RECORDS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2))
MEMBERS = st.sets(st.sampled_from("abcd"))


@given(RECORDS, RECORDS)
def test_a_side_that_changed_nothing_gives_way(base: dict[str, int], changed: dict[str, int]) -> None:
    assert three_way(base, changed, base).records == changed
    assert three_way(base, base, changed).records == changed


@given(RECORDS, RECORDS)
def test_the_same_change_on_both_sides_is_one_change(base: dict[str, int], changed: dict[str, int]) -> None:
    merged = three_way(base, changed, changed)

    assert merged.records == changed
    assert merged.conflicts == ()


@given(RECORDS, RECORDS, RECORDS)
def test_it_does_not_matter_which_side_is_which(
    base: dict[str, int], ours: dict[str, int], theirs: dict[str, int]
) -> None:
    one, other = three_way(base, ours, theirs), three_way(base, theirs, ours)

    assert one.records == other.records
    assert {conflict.key for conflict in one.conflicts} == {conflict.key for conflict in other.conflicts}


@given(RECORDS, RECORDS, RECORDS)
def test_there_is_a_conflict_exactly_where_both_changed_a_record_differently(
    base: dict[str, int], ours: dict[str, int], theirs: dict[str, int]
) -> None:
    merged = three_way(base, ours, theirs)

    assert set(merged.conflicts) == {
        Conflict(key, base.get(key), ours.get(key), theirs.get(key))
        for key in "abcd"
        if base.get(key) != ours.get(key) != theirs.get(key) != base.get(key)
    }
    assert merged.records.keys().isdisjoint(conflict.key for conflict in merged.conflicts)


@given(RECORDS, RECORDS, RECORDS)
def test_merging_the_result_again_changes_nothing(
    base: dict[str, int], ours: dict[str, int], theirs: dict[str, int]
) -> None:
    """A run that was killed between writing and switching is run again."""
    merged = three_way(base, ours, theirs)
    if not merged.conflicts:
        assert three_way(base, ours, merged.records) == merged


@given(MEMBERS, MEMBERS, MEMBERS)
def test_members_of_a_group_are_merged_one_by_one(base: set[str], ours: set[str], theirs: set[str]) -> None:
    def group(members: set[str]) -> tuple[str, ...]:
        return ("g", "x", "100", ",".join(sorted(members)))

    settled = settle_group(group(base), group(ours), group(theirs))

    flags = {
        name: three_way({name: name in base}, {name: name in ours}, {name: name in theirs}).records[name]
        for name in "abcd"
    }
    assert settled == group({name for name, there in flags.items() if there})


def test_groups_with_different_ids_are_not_settled() -> None:
    assert settle_group(None, ("g", "x", "100", ""), ("g", "x", "101", "")) is None
