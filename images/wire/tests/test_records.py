"""Records of `scontrol show`."""

import pytest

from slurm_wire import records


def test_the_first_of_equal_keys_counts() -> None:
    line = "NodeName=gpu-0 State=IDLE  NtasksPerN:B:S:C=0:0:*:* Comment=x State=DOWN"
    assert records.fields(line)["State"] == "IDLE"
    assert records.fields(line)["NtasksPerN:B:S:C"] == "0:0:*:*"


@pytest.mark.parametrize("apart", ["\t", "\r", "\x1c", "\u2028", "\xa0"])
def test_only_a_space_begins_a_field_and_only_a_newline_a_record(apart: str) -> None:
    text = f"NodeName=gpu-0 Comment=x{apart}State=DOWN\n\nNodeName=gpu-1\n"
    assert [*map(records.fields, records.lines(text))] == [
        {"NodeName": "gpu-0", "Comment": "x" if apart.isspace() else f"x{apart}State=DOWN"},
        {"NodeName": "gpu-1"},
    ]


@pytest.mark.parametrize("user", ["root", "jane@ad.example.com"])
@pytest.mark.parametrize("text", ["disk", "disk [sda] fails", "asked by [jane@site]", "x Reason=y"])
@pytest.mark.parametrize(
    "after", ["", " Extra=health:clock", " ", " Comment=RMA 1 [ops@wiki] ordered Extra=health:clock"]
)
def test_a_reason_is_told_from_its_user_and_time(user: str, text: str, after: str) -> None:
    line = f"NodeName=gpu-0 State=IDLE+DRAIN Reason={text} [{user}@2026-11-23T06:00:00]{after}"
    assert records.reason(line) == (text, user, "2026-11-23T06:00:00")


def test_a_reason_has_no_fields_in_it() -> None:
    line = "NodeName=gpu-0 Reason=see State=DOWN Extra=health:disk [root@2026-11-23T06:00:00] Extra=health:clock"
    assert records.fields(line) == {"NodeName": "gpu-0", "Reason": "", "Extra": "health:clock"}


@pytest.mark.parametrize("line", ["NodeName=gpu-0 State=IDLE", "NodeName=gpu-0 Reason=cut of", ""])
def test_a_node_without_a_whole_reason_has_none(line: str) -> None:
    assert records.reason(line) is None


@pytest.mark.parametrize(("value", "found"), [("", ()), ("(null)", ()), ("main", ("main",)), ("a,b", ("a", "b"))])
def test_a_list_has_its_words(value: str, found: tuple[str, ...]) -> None:
    assert records.words(value) == found
