"""Values of secret files that no line and no error shows, and the lines that report changes of such files."""

import base64
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from soperator_pulumi.errors import SoperatorError
from soperator_pulumi.operations.progress import Report

CONCEALED = "[secret]"
"""Text that replaces a value."""

_SETTINGS_FILE = re.compile(r"\.(conf|cnf)$")
_SETTING = re.compile(r"\s*([A-Za-z][A-Za-z0-9_-]*)\s*=\s*(.*?)\s*")
_NO_SETTING = re.compile(r"\s*(#.*|\[[\w-]+\]\s*)?")
_CONTINUED = re.compile(r"(?<!\\)(\\\\)*\\$")
"""End of a line that continues on the next: a backslash that is not itself escaped."""
_ESCAPED = re.compile(r"\\(.)")
_SECRET_KEY = re.compile(r"(?i)(pass|password|secret|token)$")


@dataclass(frozen=True)
class Concealed:
    """Values to replace in texts."""

    values: tuple[str, ...] = ()
    """Longest first, because a value may be part of another."""

    @classmethod
    def of(cls, *sets_of_files: Mapping[str, str]) -> "Concealed":
        """Return the secret values in all these files, also as the API encodes them."""
        found = {value for files in sets_of_files for name, text in files.items() for value in _values(name, text)}
        return cls(tuple(sorted(found - {""}, key=lambda value: (-len(value), value))))

    def text(self, text: str) -> str:
        """Return a text without the values."""
        for value in self.values:
            text = text.replace(value, CONCEALED)
        return text

    def report(self, report: Report) -> Report:
        """Return a report function that replaces the values in its lines."""
        return lambda text: report(self.text(text))

    @contextmanager
    def in_errors(self) -> Iterator[None]:
        """Replace the values in the message of an error raised inside the context."""
        try:
            yield
        except SoperatorError as error:
            error.args = tuple(self.text(str(part)) for part in error.args)
            raise


def changed_keys(secret: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for every changed file of a Secret, with the changed keys of settings, but without values."""
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) == new.get(name):
            continue
        if name not in old or name not in new:
            yield f"{secret}/{name}: {'added' if name in new else 'removed'}"
            continue
        before, after = _settings(name, old[name]), _settings(name, new[name])
        keys: list[str] = []
        if before is not None and after is not None:
            keys = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
        yield f"{secret}/{name}: {', '.join(f'{key} changed' for key in keys) or 'changed'}"


def _values(name: str, text: str) -> Iterator[str]:
    yield from (text, text.strip(), base64.b64encode(text.encode()).decode())
    settings = _settings(name, text)
    if settings is None:
        yield from (line.strip() for line in text.splitlines())
        return
    for key, values in settings.items():
        if _SECRET_KEY.search(key):
            yield from values
            yield from (value.strip("\"'") for value in values)
            # As the daemon prints them, without the escapes in its file.
            yield from (_ESCAPED.sub(r"\1", value).strip('"') for value in values)


def _settings(name: str, text: str) -> dict[str, list[str]] | None:
    """Return the values in a settings file, by key; None for other files, all of whose lines may be secret."""
    lines = [line for line in text.splitlines() if not _NO_SETTING.fullmatch(line)]
    pairs = [_SETTING.fullmatch(line) for line in lines]
    if not _SETTINGS_FILE.search(name) or not all(pairs) or any(map(_CONTINUED.search, lines)):
        return None
    found: dict[str, list[str]] = {}
    for pair in filter(None, pairs):
        found.setdefault(pair[1], []).append(pair[2])
    return found
