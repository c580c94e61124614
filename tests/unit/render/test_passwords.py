"""Passwords in slurmdbd.conf, read as Slurm's parser reads them."""

import re

import pytest
from hypothesis import given
from hypothesis.strategies import characters, text

from soperator_pulumi.render.passwords import quoted_password, unquoted_password


@given(text(characters(min_codepoint=32, exclude_categories=["C"]), min_size=1))
def test_slurm_reads_the_password_that_was_written(password: str) -> None:
    """The parser of src/common/parse_config.c takes comments away, then escapes, then quotes."""
    try:
        line = f"StoragePass={quoted_password(password)}"
    except ValueError:
        assert '"' in password
        return
    uncommented = re.match(r"(?:\\.|[^\\#])*", line)
    assert uncommented
    value = re.fullmatch(r'StoragePass=(?:"([^"]*)"|([^ ]+))', re.sub(r"\\(.)", r"\1", uncommented[0]))
    assert value
    assert (value[1] or value[2]) == password
    assert unquoted_password(quoted_password(password)) == password


@pytest.mark.parametrize(
    "password", ["", "a\tb", "two\nlines", "two\u2028lines", "two\x85lines", "a\x7fb", 'a "b', '"quoted"']
)
def test_a_password_that_slurmdbd_could_not_read_is_refused_without_being_shown(password: str) -> None:
    with pytest.raises(ValueError, match=r"is empty|has a") as refused:
        quoted_password(password)
    assert not password or password not in str(refused.value)
