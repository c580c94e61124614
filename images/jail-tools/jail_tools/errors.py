"""Errors of commands: the exit code decides whether Kubernetes tries again."""

import errno
import os

EXIT_TRY_AGAIN = 1
EXIT_REFUSED = 78
"""EX_CONFIG of sysexits.h: the Job's podFailurePolicy fails at once on it."""
MESSAGE_BYTES = 4096
"""Length of a termination message that the kubelet reads (Kubernetes, `terminationMessagePath`)."""


class CommandError(Exception):
    """A command failed. The message names the place, what was found, and what to do next."""

    exit_code = EXIT_TRY_AGAIN


class TryAgainError(CommandError):
    """A failure that a retry can cure: a full volume was enlarged, or a server answers again."""


class RefusedError(CommandError):
    """A failure that a retry cannot cure: something declared or found must be changed first."""

    exit_code = EXIT_REFUSED


def reason(error: OSError) -> str:
    """Return an OSError's reason without its path: `No space left on device (ENOSPC)`."""
    number = error.errno or 0
    return f"{os.strerror(number)} ({errno.errorcode.get(number, number)})" if number else str(error)


def bounded(headline: str, lines: list[str], limit_bytes: int = MESSAGE_BYTES) -> str:
    """Return a headline and as many lines as fit into `limit_bytes` of UTF-8. The last line counts the omitted ones."""
    kept = [headline]
    room = limit_bytes - len(encoded(headline)) - len("\n  ... and 1,000,000,000 more")
    for number, line in enumerate(lines):
        room -= len(encoded(line)) + len("\n  ")
        if room < 0:
            kept.append(f"... and {len(lines) - number:,} more")
            break
        kept.append(line)
    return "\n  ".join(kept)


def encoded(text: str) -> bytes:
    """Return text as UTF-8 for a log, with escapes for bytes of a file name that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace")
