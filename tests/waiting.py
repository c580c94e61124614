"""Waiting in tests: for a condition, never for a time."""

import time
from collections.abc import Callable


def wait_until(
    condition: Callable[[], bool], what: str, *, timeout_seconds: float = 240, seen: Callable[[], object] = str
) -> None:
    """Return as soon as the condition holds. Fail, with what was awaited and what is seen instead, when it does not.

    The time is for a machine that is busy with other things: pods, engines and daemons start meanwhile.
    It is looked at often in the beginning, and at most twice a second later: to look may cost more than to wait.
    """
    began = time.monotonic()
    while not condition():
        waited_seconds = time.monotonic() - began
        assert waited_seconds < timeout_seconds, f"not within {timeout_seconds} s: {what} {seen()}"
        time.sleep(min(0.5, max(0.01, waited_seconds / 10)))
