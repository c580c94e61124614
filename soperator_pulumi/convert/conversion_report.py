"""Text of the report: values by what became of them, starting with those that need a decision."""

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
    Fate.UNKNOWN: "Unknown: the converted release has no such keys, or not in this form; nothing reads them",
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
    given = [entry for entry in entries if not entry.leaf.is_default]
    beyond = [entry for entry in entries if entry.leaf.is_default and entry.fate is not Fate.NOT_NEEDED]
    counts = ", ".join(f"{sum(entry.fate is fate for entry in given)} {fate.value}" for fate in TITLES)
    blocks = [_wrapped(f"From {title}: {len(given)} values, {counts}.")]
    blocks += [_wrapped(remark) for remark in work.remarks]
    if additions := work.additions():
        blocks.append([f"To add or correct before the first deployment ({len(additions)})"])
        blocks[-1] += [line for addition in additions for line in _item(addition.path, addition.text)]
    if references := _references(work):
        blocks.append(["Objects that must exist; claims and Secrets in the cluster's namespace", *references])
    covers = Covers([entry.leaf for entry in given])
    empty = {entry.leaf for entry in given if entry.fate is Fate.NOT_NEEDED and entry.leaf.is_empty}
    for fate, heading in TITLES.items():
        chosen = [entry for entry in given if entry.fate is fate]
        if chosen:
            blocks.append([f"{heading} ({len(chosen)})", *_lines(fate, chosen, covers, empty)])
    if beyond:
        covers = Covers([entry.leaf for entry in beyond])
        blocks.append([f"Defaults of what the input leaves out ({len(beyond)})", *_moved(beyond, covers)])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _lines(fate: Fate, chosen: Sequence[LeafAccount], covers: Covers, empty: set[Leaf]) -> Iterator[str]:
    match fate:
        case Fate.UNKNOWN:
            for entry in chosen:
                yield from _item(f"{entry.leaf.path}, line {entry.leaf.line}")
        case Fate.CHANGED | Fate.TAKEN:
            yield from _moved(chosen, covers)
        case _:
            yield from _left(chosen, covers, empty)


def _moved(chosen: Sequence[LeafAccount], covers: Covers) -> Iterator[str]:
    """Yield the values with their places in the stack; neighbours with the same place share a line."""
    for (text, targets), group in groupby(chosen, key=lambda entry: (entry.text, entry.targets)):
        place = covers.of([entry.leaf for entry in group])
        yield from _item(f"{place} -> {_shortened(targets)}" if targets else place, text)


def _left(chosen: Sequence[LeafAccount], covers: Covers, empty: set[Leaf]) -> Iterator[str]:
    """Yield the reasons with the places that they apply to. Empty values share the reason of the values around them."""
    reasons: dict[str, list[Leaf]] = {}
    for entry in chosen:
        if entry.text != "empty":
            reasons.setdefault(entry.text, []).append(entry.leaf)
    for text, leaves in reasons.items():
        yield from _reason(text, covers.of(leaves, absorbing=empty))
    if chosen[0].fate is Fate.NOT_NEEDED and empty:
        yield from _reason("empty", covers.of([entry.leaf for entry in chosen if entry.leaf in empty]))


def _reason(text: str, places: str) -> Iterator[str]:
    yield from _item(text)
    yield from _wrapped(places, "    ", "    ")


def _shortened(targets: Sequence[str]) -> str:
    targets = [*dict.fromkeys(targets)]
    if len(targets) <= _FEW:
        return ", ".join(targets)
    return ", ".join(dict.fromkeys(re.split(r"[.\[]", target)[0] for target in targets))


def _references(work: Conversion) -> list[str]:
    found: dict[str, str] = {}
    places = dict(work.placed())
    for path, placed in places.items():
        field = path.rpartition(".")[2].partition("[")[0]
        account = path.removesuffix(".name")
        if account.endswith(".service_account") and f"{account}.create" in places:
            found.setdefault(f"ServiceAccount {placed.value}", path)
        if field in _REFERENCES and not placed.to_add:
            found.setdefault(f"{_REFERENCES[field]} {placed.value}", path)
    return [line for name, path in found.items() for line in _item(name, path)]


def _item(place: str, text: str = "") -> list[str]:
    return _wrapped(f"{place}: {text}" if text else place, "  ", "      ")


def _wrapped(text: str, first: str = "", others: str = "") -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )
