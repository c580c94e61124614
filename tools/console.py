"""Output of the tools for a person: steps with their times, progress, and errors without a traceback."""

import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from soperator_pulumi.errors import SoperatorError

EXIT_USER_ERROR = 1
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class UserError(SoperatorError):
    """A problem that the user can fix. The message gives the place, the finding and the next step."""


_prefix: ContextVar[str] = ContextVar("prefix", default="")


@contextmanager
def prefixed(name: str) -> Iterator[None]:
    """Prefix every line printed inside the context with a name, while other tasks also print."""
    token = _prefix.set(f"{name:10} | ")
    try:
        yield
    finally:
        _prefix.reset(token)


def say(text: str) -> None:
    """Print text to standard error at once: standard output is for a command's answer."""
    sys.stderr.write(textwrap.indent(f"{text}\n", _prefix.get()))
    sys.stderr.flush()


@contextmanager
def step(title: str) -> Iterator[Callable[[str], None]]:
    """Print a step's title, yield a function that reports its progress, and print its duration."""
    started = time.monotonic()
    say(f"==> {title}")

    def progress(text: str) -> None:
        say(f"    {time.monotonic() - started:5.1f} s  {text}")

    yield progress
    say(f"    {time.monotonic() - started:5.1f} s  done")


def run(command: Callable[[], int | None]) -> int:
    """Run a command's body and return its exit code. A user's mistake and Ctrl-C are printed without a traceback."""
    try:
        return command() or 0
    except SoperatorError as error:
        say(f"error: {error}")
        return EXIT_USER_ERROR
    except KeyboardInterrupt:
        say("interrupted: rerun the same command to continue")
        return EXIT_INTERRUPTED
