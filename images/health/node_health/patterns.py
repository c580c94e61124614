"""Regular expressions that are compiled when they are first used.

A round, which every node starts once a minute, uses few of them: most read answers of GPUs and failures in the kernel's
log. Compiling all of them took a quarter of the time of a round's start.
"""

import re
from typing import Any, cast


class _Pattern:
    def __init__(self, text: str, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute of a compiled pattern
        value = getattr(re.compile(*self._given), name)  # re keeps it
        setattr(self, name, value)
        return value


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern like that of `re.compile`, which is compiled at its first use; an error comes only then."""
    return cast("re.Pattern[str]", _Pattern(text, flags))
