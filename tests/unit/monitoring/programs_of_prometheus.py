"""promtool and prometheus, of the distribution's package, unpacked into the cache: nothing is installed."""

import subprocess
from functools import cache
from pathlib import Path

from tests.debian_packages import unpacked_packages

_PACKAGE = "prometheus"
"""Debian 12 has 2.42, older than what users have. The cluster tier has 3.14."""
_WITH_PROGRAMS = {_PACKAGE, "promtool"}
"""Debian 13 has promtool in a package of its own."""


@cache
def program(name: str) -> Path:
    """Return the path of one of the programs, which need no library but C's."""
    root = unpacked_packages(_PACKAGE, [_PACKAGE], lambda apt: apt.fresh_closure([_PACKAGE]) & _WITH_PROGRAMS)
    return root / "usr" / "bin" / name


def promtool(*words: str | Path) -> str:
    """Run promtool and return its output; it has to succeed."""
    done = subprocess.run([program("promtool"), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
