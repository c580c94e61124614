"""Waiting in tests: for a condition, never for a time."""

import sys
import time
from collections.abc import Callable


def _unnoticed(caller: str, seconds: float, looks: int) -> None:
    """Take no notice of a wait."""


waited: Callable[[str, float, int], None] = _unnoticed
"""Receives the file of a caller that has waited, the seconds, and how often it looked: `tests/time_spent.py`."""


def wait_until(
    condition: Callable[[], bool], what: str, *, timeout_seconds: float = 240, seen: Callable[[], object] = str
) -> None:
    """Return as soon as the condition holds. Fail, with what was awaited and what is seen instead, when it does not.

    The time is for a machine that is busy with other things: pods, engines and daemons start meanwhile.
    It is looked at often in the beginning, and at most twice a second later: to look may cost more than to wait.
    """
    began = time.monotonic()
    looks = 1
    while not condition():
        waited_seconds = time.monotonic() - began
        assert waited_seconds < timeout_seconds, f"not within {timeout_seconds} s: {what} {seen()}"
        time.sleep(min(0.5, max(0.01, waited_seconds / 10)))
        looks += 1
    waited(sys._getframe(1).f_code.co_filename, time.monotonic() - began, looks)
