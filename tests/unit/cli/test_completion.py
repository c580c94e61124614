"""Completion, as bash does it."""

import shlex
import subprocess

import pytest

from soperator_pulumi.cli import COMMANDS, completion

SCRIPT = completion.bash(completion.words_by_place())


def completed(*words: str) -> list[str]:
    """Return the words that bash offers for the last one."""
    line = " ".join(map(shlex.quote, ["soperator", *words]))
    ask = f"COMP_WORDS=({line}); COMP_CWORD={len(words)}; _soperator; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{SCRIPT}\n{ask}"], cwd="/", capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ([""], {*COMMANDS, "--help", "--version"}),
        (["pre"], {"preflight", "preview"}),
        (["nodes", ""], {"drain", "undrain", "explain", "--help"}),
        (["nodes", "drain", "--re"], {"--reason"}),
        (["dumps", "-n", "list", "list", "--j"], {"--json"}),
        (["completion", ""], {"bash", "zsh", "--help"}),
        (["status", "--kubeconfig", "file", "--js"], {"--json"}),
    ],
)
def test_words_are_those_of_the_parser_at_that_place(words: list[str], offered: set[str]) -> None:
    assert {*completed(*words)} == offered


def test_a_file_is_offered_if_no_word_fits() -> None:
    assert completed("render", "/et") == ["/etc"]
