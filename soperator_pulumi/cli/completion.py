"""`soperator completion`: completion for bash and zsh, written from the parsers of all commands."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence

from soperator_pulumi.cli import COMMANDS, load, parser_of
from soperator_pulumi.cli.any_command import Command

_BASH = """\
_soperator() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} place="" word words
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "${{place:+$place }}$word" in
{places}
        esac
    done
    case "$place" in
{words}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    [ ${{#COMPREPLY[@]}} -gt 0 ] || COMPREPLY=($(compgen -f -- "$current"))
}}
complete -o filenames -F _soperator soperator
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("shell", choices=("bash", "zsh"), help="shell to complete in")


def run(given: argparse.Namespace) -> int:
    """Print the completion of a shell."""
    sys.stdout.write((_ZSH if given.shell == "zsh" else "") + bash(words_by_place()))
    return 0


def bash(words: Mapping[str, Sequence[str]]) -> str:
    """Return the script for bash, which zsh takes as well.

    Args:
        words: Words to complete, by the commands before them: `""`, `dumps`, `dumps list`.
    """
    places = "\n".join(f'            "{place}") place="{place}" ;;' for place in words if place)
    cases = "\n".join(f'        "{place}") words="{" ".join(known)}" ;;' for place, known in words.items())
    return _BASH.format(places=places, words=cases)


def words_by_place() -> dict[str, list[str]]:
    """Return the words of all commands, by the words before them."""
    found = {"": [*COMMANDS, "--help", "--version"]}
    for name in COMMANDS:
        found |= _words(name, parser_of(name, load(name)))
    return found


def _words(place: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[str]]]:
    """Yield the options, choices and subcommands at a place, and those below it."""
    actions = parser._actions  # noqa: SLF001 - argparse offers no other look
    options = [option for action in actions for option in action.option_strings if option.startswith("--")]
    choices = [str(choice) for action in actions if not action.option_strings for choice in action.choices or ()]
    yield place, [*choices, *options]
    for action in actions:
        if isinstance(action.choices, Mapping):  # subcommands
            for name, inner in action.choices.items():
                yield from _words(f"{place} {name}", inner)


COMMAND = Command(configure=configure, run=run, example='eval "$(soperator completion bash)"')
