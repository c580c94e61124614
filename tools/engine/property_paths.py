"""Property paths, as in `spec.template.metadata.labels["app.kubernetes.io/name"]` or `containers[0].image`."""

import re
from collections.abc import Iterable, Mapping, Sequence

from pulumi.provider.experimental.property_value import PropertyValue

from tools.console import UserError
from tools.engine.values import Properties

Step = str | int
Path = tuple[Step, ...]

ANY = "*"
"""Matches any key or index in a pattern."""

_STEP = re.compile(r"""\.?(?:([^.\[\]"]+)|\[(\d+|\*)\]|\["((?:[^"\\]|\\.)*)"\])""")
_PLAIN_KEY = re.compile(r"""[^.\[\]"]+""")


def parse(text: str) -> Path:
    """Parse a path.

    Raises:
        UserError: The text is not a property path.
    """
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise UserError(f'"{text}" is not a property path: after "{text[:position]}" comes no key')
        key, index, quoted = match.groups()
        if quoted is not None:
            steps.append(re.sub(r"\\(.)", r"\1", quoted))
        elif index is not None and index != ANY:
            steps.append(int(index))
        else:
            steps.append(key or ANY)
        position = match.end()
    return tuple(steps)


def text(path: Iterable[Step]) -> str:
    """Return a path in Pulumi's notation."""
    written = ""
    for step in path:
        if isinstance(step, int):
            written += f"[{step}]"
        elif not _PLAIN_KEY.fullmatch(step):
            quoted = step.replace("\\", "\\\\").replace('"', '\\"')
            written += f'["{quoted}"]'
        else:
            written += f".{step}" if written else step
    return written


def contains(pattern: Path, path: Path) -> bool:
    """Return True if a pattern matches a path or one above it."""
    return len(pattern) <= len(path) and all(want in {ANY, have} for want, have in zip(pattern, path, strict=False))


def keep_old(news: Properties, olds: Mapping[str, PropertyValue], ignored: Iterable[str]) -> Properties:
    """Return `news` with the old value at every ignored path, as `ignore_changes` requires."""
    kept = PropertyValue(news)
    for pattern in ignored:
        kept = _keep(kept, PropertyValue(dict(olds)), parse(pattern))
    assert isinstance(kept.value, Mapping)  # noqa: S101 - it began as one, and only its items were replaced
    return dict(kept.value)


def _keep(new: PropertyValue, old: PropertyValue, path: Path) -> PropertyValue:
    step, rest = path[0], path[1:]
    items, old_items = new.value, old.value
    if isinstance(items, Mapping) and isinstance(old_items, Mapping):
        merged = dict(items)
        for key in sorted(items.keys() | old_items.keys()) if step == ANY else [str(step)]:
            if rest:
                if key in items and key in old_items:
                    merged[key] = _keep(items[key], old_items[key], rest)
            elif key in old_items:
                merged[key] = old_items[key]
            else:
                merged.pop(key, None)
        return new.with_value(merged)
    if isinstance(items, Sequence) and isinstance(old_items, Sequence) and not isinstance(items, str):
        listed = list(items)
        for index in range(len(listed)) if step == ANY else [step]:
            if isinstance(index, int) and index < min(len(listed), len(old_items)):
                before = old_items[index]
                assert isinstance(before, PropertyValue)  # noqa: S101 - a list of property values has nothing else
                listed[index] = _keep(listed[index], before, rest) if rest else before
        return new.with_value(listed)
    return new
