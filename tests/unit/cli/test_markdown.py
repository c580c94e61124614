"""Texts of others in Markdown stay texts."""

import re

from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.cli import markdown

TEXTS = st.text(alphabet=st.sampled_from("`|~<>@[]()!# \ta\n\r\x1b\u202e"), max_size=40)


@given(st.lists(TEXTS, min_size=1))
def test_no_line_of_a_block_is_its_fence(lines: list[str]) -> None:
    first, *body, last = markdown.block(lines).split("\n")
    fence = first.removesuffix("text")
    assert last == fence
    assert set(fence) == {"`"}
    assert all(fence not in line for line in body)
    assert "".join(body).replace("\t", "").isprintable()


@given(TEXTS)
def test_a_code_span_is_one_cell_of_one_line(text: str) -> None:
    span = markdown.code(text)
    mark = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    inside = span.removeprefix(mark).removesuffix(mark)
    assert len(span) == len(inside) + 2 * len(mark)
    assert mark not in inside
    assert "\n" not in span
    assert "|" not in span.replace("\\|", "")


def test_a_page_that_is_too_long_ends_with_a_note_outside_of_its_blocks() -> None:
    page = markdown.short(markdown.block(["`````", *(f"line {number}" for number in range(100))]), 200)
    assert len(page) < 300
    assert page.endswith("\n``````\n\nThe rest is left out: a page has 200 characters at most.")


def test_a_page_that_is_cut_behind_a_block_needs_no_end_of_one() -> None:
    page = markdown.short("\n\n".join([markdown.block(["a"]), "line\n" * 100]), 100)
    assert page.endswith("line\n\nThe rest is left out: a page has 100 characters at most.")
    assert page.count("````") == 2
