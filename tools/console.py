"""What a person sees of the tools: steps with their times, progress, and errors without a traceback."""

import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

EXIT_USER_ERROR = 1
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class UserError(Exception):
    """Something that the user can mend. The message says where, what was found, and what to do next."""


_prefix: ContextVar[str] = ContextVar("prefix", default="")


@contextmanager
def part(name: str) -> Iterator[None]:
    """Open each line that the body prints with a name: a part that runs beside others, which print, too."""
    token = _prefix.set(f"{name:10} | ")
    try:
        yield
    finally:
        _prefix.reset(token)


def say(text: str) -> None:
    """Print text to standard error at once: standard output belongs to what a command answers."""
    sys.stderr.write(textwrap.indent(f"{text}\n", _prefix.get()))
    sys.stderr.flush()


@contextmanager
def step(title: str) -> Iterator[Callable[[str], None]]:
    """Announce a step, give the caller a function that reports progress in it, and print the time it took."""
    started = time.monotonic()
    say(f"==> {title}")

    def progress(text: str) -> None:
        say(f"    {time.monotonic() - started:5.1f} s  {text}")

    yield progress
    say(f"    {time.monotonic() - started:5.1f} s  done")


def run(command: Callable[[], int | None]) -> int:
    """Run a command's body and return its exit code. A UserError and Ctrl-C are told in words."""
    try:
        return command() or 0
    except UserError as error:
        say(f"error: {error}")
        return EXIT_USER_ERROR
    except KeyboardInterrupt:
        say("interrupted: run the same command again to go on")
        return EXIT_INTERRUPTED
