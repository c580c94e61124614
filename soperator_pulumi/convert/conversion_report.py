"""Text of the report: values by their fate, those first that need a reader's decision."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

from soperator_pulumi.convert.conversion import Conversion, Fate, LeafAccount
from soperator_pulumi.convert.covers import Covers
from soperator_pulumi.convert.yaml_tree import Leaf

_WIDTH = 118
_FEW = 3

TITLES = {
    Fate.NOT_POSSIBLE: "Not possible",
    Fate.UNKNOWN: "Unknown: the release that is converted has no such keys, or not in this form; nothing reads them",
    Fate.CHANGED: "Changed",
    Fate.TAKEN: "Taken over",
    Fate.NOT_NEEDED: "Not needed",
}

_REFERENCES = {
    "existing_claim": "PersistentVolumeClaim",
    "secret": "Secret",
    "pull_secrets": "Secret",
    "priority_class": "PriorityClass",
    "storage_class": "StorageClass",
}


def report_text(work: Conversion, title: str) -> str:
    """Return the report of a conversion."""
    entries = work.entries()
    given = [each for each in entries if not each.leaf.is_default]
    beyond = [each for each in entries if each.leaf.is_default and each.fate is not Fate.NOT_NEEDED]
    counts = ", ".join(f"{sum(each.fate is fate for each in given)} {fate.value}" for fate in TITLES)
    blocks = [_wrapped(f"From {title}: {len(given)} values, {counts}.")]
    blocks += [_wrapped(remark) for remark in work.remarks]
    if additions := work.additions():
        blocks.append([f"To add or correct before the first deployment ({len(additions)})"])
        blocks[-1] += [line for each in additions for line in _item(each.path, each.text)]
    if references := _references(work):
        blocks.append(["Objects that must exist; claims and Secrets in the cluster's namespace", *references])
    covers = Covers([each.leaf for each in given])
    empty = {each.leaf for each in given if each.fate is Fate.NOT_NEEDED and each.leaf.is_empty}
    for fate, heading in TITLES.items():
        chosen = [each for each in given if each.fate is fate]
        if chosen:
            blocks.append([f"{heading} ({len(chosen)})", *_lines(fate, chosen, covers, empty)])
    if beyond:
        covers = Covers([each.leaf for each in beyond])
        blocks.append([f"Defaults that the input leaves out ({len(beyond)})", *_moved(beyond, covers)])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _lines(fate: Fate, chosen: Sequence[LeafAccount], covers: Covers, empty: set[Leaf]) -> Iterator[str]:
    match fate:
        case Fate.UNKNOWN:
            for each in chosen:
                yield from _item(f"{each.leaf.path}, line {each.leaf.line}")
        case Fate.CHANGED | Fate.TAKEN:
            yield from _moved(chosen, covers)
        case _:
            yield from _left(chosen, covers, empty)


def _moved(chosen: Sequence[LeafAccount], covers: Covers) -> Iterator[str]:
    """Yield a line for each value with its place in the stack, and one for neighbours with the same place."""
    for (text, targets), group in groupby(chosen, key=lambda each: (each.text, each.targets)):
        place = covers.of([each.leaf for each in group])
        yield from _item(f"{place} -> {_shortened(targets)}" if targets else place, text)


def _left(chosen: Sequence[LeafAccount], covers: Covers, empty: set[Leaf]) -> Iterator[str]:
    """Yield each reason with the places that it stands for. Empty values go with the reason around them."""
    reasons: dict[str, list[Leaf]] = {}
    for each in chosen:
        if each.text != "empty":
            reasons.setdefault(each.text, []).append(each.leaf)
    for text, leaves in reasons.items():
        yield from _reason(text, covers.of(leaves, absorbing=empty))
    if chosen[0].fate is Fate.NOT_NEEDED and empty:
        yield from _reason("empty", covers.of([each.leaf for each in chosen if each.leaf in empty]))


def _reason(text: str, places: str) -> Iterator[str]:
    yield from _item(text)
    yield from _wrapped(places, "    ", "    ")


def _shortened(targets: Sequence[str]) -> str:
    if len(targets) <= _FEW:
        return ", ".join(targets)
    return ", ".join(dict.fromkeys(re.split(r"[.\[]", target)[0] for target in targets))


def _references(work: Conversion) -> list[str]:
    found: dict[str, str] = {}
    for path, placed in work.placed():
        field = path.rpartition(".")[2].partition("[")[0]
        if field in _REFERENCES and not placed.to_add:
            found.setdefault(f"{_REFERENCES[field]} {placed.value}", path)
    return [line for name, path in found.items() for line in _item(name, path)]


def _item(place: str, text: str = "") -> list[str]:
    return _wrapped(f"{place}: {text}" if text else place, "  ", "      ")


def _wrapped(text: str, first: str = "", others: str = "") -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )
