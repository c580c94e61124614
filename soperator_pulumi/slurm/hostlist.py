"""Hostlist expressions, Slurm's notation for many nodes: `gpu-[0-3,7],login-0`.

Order, duplicates and leading zeros are kept, as `scontrol show hostnames` and `scontrol show hostlist` keep them.
"""

import itertools
import re
from collections.abc import Iterable

_PART = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_PIECE = re.compile(r"\[(?P<ranges>[^\[\]]*)\]|(?P<text>[^\[\]]+)")
_RANGE = re.compile(r"(?P<first>\d+)(?:-(?P<last>\d+))?")
_NUMBERED = re.compile(r"(?P<prefix>.*?)(?P<number>\d+)", re.DOTALL)


def expand(expression: str) -> list[str]:
    """Return the names in an expression, in its order; empty for an empty expression.

    Raises:
        ValueError: the text is not a hostlist expression.
    """
    parts: list[str] = _PART.findall(expression)
    if ",".join(parts) != expression:
        raise ValueError(f"{expression!r} is not a hostlist expression such as 'gpu-[0-3,7],login-0'.")
    return [name for part in parts for name in _names(part)]


def compress(names: Iterable[str]) -> str:
    """Return an expression for the names: consecutive names that differ only in their last number share brackets."""
    parts: list[str] = []
    for (prefix, numbered), group in itertools.groupby(
        map(_split, names), key=lambda split: (split[0], bool(split[1]))
    ):
        numbers = [number for _, number in group]
        ranges = _ranges(numbers) if numbered else []
        if not numbered:
            parts += [prefix] * len(numbers)
        elif len(ranges) == 1 and "-" not in ranges[0]:
            parts.append(prefix + ranges[0])
        else:
            parts.append(f"{prefix}[{','.join(ranges)}]")
    return ",".join(parts)


def in_order(names: Iterable[str]) -> list[str]:
    """Return the names sorted by their numbers, gpu-2 before gpu-10, so that `compress` joins them."""

    def split(name: str) -> tuple[str, int, str]:
        prefix = name.rstrip("0123456789")
        number = name[len(prefix) :]
        return prefix, int(number or 0), number

    return sorted(names, key=split)


def _names(part: str) -> list[str]:
    pieces = [
        [piece["text"]] if piece["text"] is not None else _numbers(piece["ranges"]) for piece in _PIECE.finditer(part)
    ]
    return ["".join(parts) for parts in itertools.product(*pieces)]


def _numbers(ranges: str) -> list[str]:
    """Return the numbers in brackets, with as many digits as the first number of their range."""
    numbers: list[str] = []
    for text in ranges.split(","):
        found = _RANGE.fullmatch(text)
        if not found:
            raise ValueError(f"[{ranges}] holds {text!r}, which is neither a number nor a range such as 0-3.")
        first, last = found["first"], found["last"] or found["first"]
        if int(last) < int(first):
            raise ValueError(f"[{ranges}] holds {text!r}, which ends before it starts.")
        numbers += [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
    return numbers


def _split(name: str) -> tuple[str, str]:
    found = _NUMBERED.fullmatch(name)
    return (found["prefix"], found["number"]) if found else (name, "")


def _ranges(numbers: Iterable[str]) -> list[str]:
    """Return numbers as ranges: 0, 1, 2, 7 become 0-2 and 7."""
    ranges: list[list[str]] = []
    for number in numbers:
        if ranges and f"{int(ranges[-1][-1]) + 1:0{len(ranges[-1][0])}d}" == number:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number])
    return ["-".join(bounds) for bounds in ranges]
