"""Single values that helm lays over a chart's values files: `--set`, as Argo CD and helmfile give it by name.

Names have the grammar of helm's `pkg/strvals`: dots separate keys, `[0]` is an item of a list, and a backslash takes
the next character as it is. Argo CD and helmfile escape the commas of a value, so a value is one text.
"""

import re
from collections.abc import Mapping

from soperator_pulumi.convert.yaml_tree import Leaf, Section, Tree, joined
from soperator_pulumi.errors import ConversionError

MAX_INDEX = 65_536
"""Largest index of a list that helm accepts (MaxIndex in `pkg/strvals`)."""

_PARTS = re.compile(r"(?P<key>(?:\\.|[^.\[\]\\])+)|\[(?P<index>[0-9]{1,9})\]|(?P<dot>\.)", re.DOTALL)
WORDS = {"true": True, "false": False, "null": None}
"""Texts of which helm makes other values, in letters of any case."""
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""Whole numbers of which helm makes numbers. Those of more digits, of which few fit into its 64 bits, stay texts."""

Keys = tuple[str | int, ...]


def set_keys(name: str, where: str) -> Keys:
    r"""Return the keys of a name, such as `("a", "b.c", 0)` for `a.b\.c[0]`.

    Raises:
        ConversionError: helm accepts no such name.
    """
    keys: list[str | int] = []
    at, before = 0, "."
    while at < len(name):
        found = _PARTS.match(name, at)
        kind = found.lastgroup if found else None
        # A key follows a dot or begins the name; everything else follows a key or an index.
        if found is None or kind is None or (kind == "key") != (before == "."):
            break
        if kind == "key":
            keys.append(re.sub(r"\\(.)", r"\1", found["key"], flags=re.DOTALL))
        elif kind == "index":
            keys.append(int(found["index"]))
        at, before = found.end(), found[0]
    if at < len(name) or before == "." or any(isinstance(key, int) and key > MAX_INDEX for key in keys):
        raise ConversionError(
            f'{where}: got the name "{name}", which helm does not accept. Separate keys by dots, and write an item of '
            f"a list as [0], up to [{MAX_INDEX}]."
        )
    return tuple(keys)


def set_value(text: str, *, as_text: bool = False) -> object:
    """Return the value that helm reads from a text: true, false, null, a whole number, or the text itself.

    Args:
        text: The text.
        as_text: Keep every text as it is, as `--set-string` does.
    """
    if as_text:
        return text
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    return int(text) if _WHOLE.fullmatch(text) else text


def value_at(place: Section, *, lists: bool, as_text: bool = False) -> object:
    """Return the value of a text, which is a list if it is in braces and `lists` is True: `{a,b}`."""
    text = place.text()
    if not (lists and text.startswith("{") and text.endswith("}")):
        return set_value(text, as_text=as_text)
    items = re.findall(r"(?:\\.|[^,\\])+", text[1:-1], re.DOTALL)
    return [set_value(re.sub(r"\\(.)", r"\1", item, flags=re.DOTALL), as_text=as_text) for item in items]


def with_value(tree: Tree | None, keys: Keys, value: object, where: str, line: int) -> Tree:
    """Return a tree with a value at some keys, in place of what is there; lists grow by nulls as in helm.

    Args:
        tree: The tree; None for an empty one.
        keys: Keys from the root of the values.
        value: Text, number, true, false, null, or a list of these.
        where: Place of the value in the input, as a prefix of its path.
        line: Line of the value.
    """

    def placed(old: Tree | None, above: Keys, path: str) -> Tree:
        if len(above) == len(keys):
            return _leaves(value, keys, path, line)
        key = keys[len(above)]
        deeper, place = (*above, key), joined(path, key)
        if isinstance(key, str):
            entries = dict(old) if isinstance(old, Mapping) else {}
            return {**entries, key: placed(entries.get(key), deeper, place)}
        items = [*old] if isinstance(old, list) else []
        items += [Leaf(joined(path, index), (*above, index), None, line) for index in range(len(items), key + 1)]
        items[key] = placed(items[key], deeper, place)
        return items

    return placed(tree, (), f"{where}: ")


def _leaves(value: object, keys: Keys, path: str, line: int) -> Tree:
    if isinstance(value, list) and value:
        return [_leaves(item, (*keys, index), joined(path, index), line) for index, item in enumerate(value)]
    return Leaf(path, keys, value, line)
