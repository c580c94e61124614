"""Output of a conversion: the stack file, and the report, with every value of the input by what became of it."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby
from typing import Any

import yaml
from pydantic import BaseModel

from soperator_pulumi.convert.conversion import Conversion, Fate, LeafAccount, Placed
from soperator_pulumi.convert.yaml_tree import Leaf, joined
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.validation.partial import model_in

_WIDTH = 118
_INDENT = "  "
_OWN_DEFAULTS = "soperator:defaults: {} # the whole cluster is here: nothing comes from the project's defaults"


def stack_text(work: Conversion, title: str) -> str:
    """Return the stack file of a conversion."""
    count = len(work.additions())
    head = [f"A cluster from {title}, written by `soperator convert`."]
    if count:
        head.append(f"{count} values are yours to give: each has a comment that begins with ADD.")
    head += work.remarks
    lines = [*_comment(" ".join(head), ""), "config:", f"{_INDENT}{_OWN_DEFAULTS}", f"{_INDENT}soperator:cluster:"]
    for addition in work.to_correct:
        lines += _comment(f"CORRECT {addition.path}: {addition.text}", _INDENT * 2)
    lines += _mapping(work.stack, ClusterSpec, _INDENT * 2)
    return "\n".join(lines) + "\n"


def _mapping(tree: Mapping[str, Any], model: type[BaseModel] | None, indent: str) -> Iterator[str]:
    """Yield the lines of a mapping: the name first, then the other keys in the order of the spec."""
    fields = [*model.model_fields] if model is not None else []
    for key in sorted(tree, key=lambda key: (key != "name", fields.index(key) if key in fields else len(fields))):
        value = tree[key]
        field = model.model_fields.get(key) if model is not None else None
        below = model_in(field.annotation) if field is not None else None
        yield from _comments(value, indent)
        yield from _entry(f"{indent}{_scalar(key)}:", value, below, indent)


def _entry(start: str, value: Any, model: type[BaseModel] | None, indent: str) -> Iterator[str]:  # noqa: ANN401
    plain = value.value if isinstance(value, Placed) else value
    if isinstance(plain, Mapping) and plain:
        yield start
        yield from _mapping(plain, model, indent + _INDENT)
    elif isinstance(plain, Sequence) and not isinstance(plain, str) and plain:
        yield start
        yield from _sequence(plain, model, indent + _INDENT)
    else:
        yield f"{start} {_scalar(plain)}"


def _sequence(items: Sequence[Any], model: type[BaseModel] | None, indent: str) -> Iterator[str]:
    for item in items:
        plain = item.value if isinstance(item, Placed) else item
        yield from _comments(item, indent)
        if isinstance(plain, Mapping) and plain:
            lines = [*_mapping(plain, model, indent + _INDENT)]
            first = next(index for index, line in enumerate(lines) if not line.lstrip().startswith("#"))
            yield from (line.removeprefix(_INDENT) for line in lines[:first])
            yield f"{indent}- {lines[first].lstrip()}"
            yield from lines[first + 1 :]
        else:
            yield f"{indent}- {_scalar(plain)}"


def _comments(value: object, indent: str) -> Iterator[str]:
    if isinstance(value, Placed) and value.to_add:
        yield from _comment(f"ADD {value.to_add}", indent)
    elif isinstance(value, Placed) and value.how:
        yield from _comment(value.how, indent)


def _comment(text: str, indent: str) -> list[str]:
    start = f"{indent}# "
    return textwrap.wrap(text, _WIDTH, initial_indent=start, subsequent_indent=start, break_on_hyphens=False)


def _scalar(value: object) -> str:
    """Return a value as a single line of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return str(text).removesuffix("\n").removesuffix("\n...")


_Place = tuple[str | int, ...]


class Covers:
    """Finds places that hold exactly given values of an input."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self.leaves = leaves
        self._below: dict[tuple[str, _Place], set[Leaf]] = {}
        for leaf in leaves:
            for depth in range(len(leaf.keys) + 1):
                self._below.setdefault((_document(leaf), leaf.keys[:depth]), set()).add(leaf)

    def of(self, leaves: Iterable[Leaf], absorbing: set[Leaf] | None = None) -> str:
        """Return the places that hold exactly these values, in words, with the number of values if there are several.

        Args:
            leaves: The values.
            absorbing: Values that a place may hold besides. Those that the result covers are removed from the set.
        """
        wanted = dict.fromkeys(leaves)
        spare = absorbing if absorbing is not None else set()
        places: dict[str, list[str]] = {}
        while wanted:
            leaf = next(iter(wanted))
            document, keys = self._widest(leaf, wanted.keys() | spare)
            held = self._below[document, keys]
            spare -= held
            for word in held:
                wanted.pop(word, None)
            whole = f"{reduce(joined, keys, '') or 'all'} ({len(held)})"
            place = leaf.path.removeprefix(f"{document}: ") if len(held) == 1 else whole
            places.setdefault(document, []).append(place)
        return "; ".join(f"{name}: {', '.join(words)}" if name else ", ".join(words) for name, words in places.items())

    def _widest(self, leaf: Leaf, allowed: set[Leaf]) -> tuple[str, _Place]:
        """Return the widest place around a value that holds only allowed values."""
        document, found = _document(leaf), leaf.keys
        for depth in range(len(leaf.keys) - 1, -1 if document else 0, -1):
            if not self._below[document, leaf.keys[:depth]] <= allowed:
                break
            found = leaf.keys[:depth]
        return document, found


def _document(leaf: Leaf) -> str:
    """Return the file and the resource of a value, if there are several."""
    return leaf.path.rpartition(": ")[0]


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
