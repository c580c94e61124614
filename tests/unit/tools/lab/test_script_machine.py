"""Answers of machines of the lab."""

import pytest

from tools.console import UserError
from tools.lab.script_machine import answer


def test_the_output_of_a_script_ends_before_its_exit_code() -> None:
    assert answer(["cpu memory\r", "the lab's script ended with 0\r", "reboot: Power down"]) == "cpu memory\n"


def test_a_script_that_fails_is_an_error_with_its_words() -> None:
    with pytest.raises(UserError, match=r"exit code 2. Its console:\n    no such file"):
        answer(["no such file", "the lab's script ended with 2"])


def test_a_machine_that_ends_before_its_script_is_an_error_with_its_console() -> None:
    with pytest.raises(UserError, match=r"before its script. Its console:\n    Kernel panic"):
        answer(["Kernel panic - not syncing"])
