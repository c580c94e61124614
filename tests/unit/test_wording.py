"""Counts and lists, as messages say them. Final stops of sentences are in test_errors.py."""

from soperator_pulumi.wording import counted, listed


def test_one_thing_is_not_many() -> None:
    assert [counted(count, "node") for count in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]


def test_a_long_list_says_how_many_are_left_out() -> None:
    assert listed(["a", "b"], 2) == "a, b"
    assert listed(["a", "b", "c", "d"], 2) == "a, b and 2 more"
