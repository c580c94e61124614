"""Tables of rules: paths of an input, and the account of the values there.

A rule stands for all values at its path that nothing else has accounted for. `*` stands for any characters of one key
or index, `**` at the end for everything below. The first rule that fits counts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from fnmatch import fnmatchcase

from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.yaml_tree import Leaf, Section


class RuleVerdict(Enum):
    """Account of the values of a rule."""

    CANNOT = auto()
    """They have no counterpart."""
    NEEDLESS = auto()
    """Nothing is missed without them."""
    EMPTY = auto()
    """They are empty. Others at the path are accounted for by what they are for, or unknown."""


@dataclass(frozen=True)
class Rule:
    """A path, and the account of the values there."""

    pattern: str
    verdict: RuleVerdict
    text: str
    switch: str = ""
    """Path of the value that turns the feature on, from the same root: where it is off, nothing is missed."""

    def fits(self, keys: Sequence[str | int]) -> bool:
        """Return True where the rule stands for the value at these keys."""
        parts = self.pattern.split(".")
        if parts[-1] == "**":
            parts.pop()
            if len(keys) < len(parts):
                return False
            keys = keys[: len(parts)]
        return len(keys) == len(parts) and all(
            fnmatchcase(str(key), part) for part, key in zip(parts, keys, strict=True)
        )


def cannot(text: str, *patterns: str, switch: str = "") -> tuple[Rule, ...]:
    """Return rules for values without a counterpart, which share a reason."""
    return tuple(Rule(pattern, RuleVerdict.CANNOT, text, switch) for pattern in patterns)


def needless(text: str, *patterns: str) -> tuple[Rule, ...]:
    """Return rules for values without which nothing is missed, which share a reason."""
    return tuple(Rule(pattern, RuleVerdict.NEEDLESS, text) for pattern in patterns)


def empty(*patterns: str) -> tuple[Rule, ...]:
    """Return rules for keys that a conversion reads itself, of which empty ones are left."""
    return tuple(Rule(pattern, RuleVerdict.EMPTY, "empty") for pattern in patterns)


def apply(
    work: Conversion,
    root: Section,
    leaves: Iterable[Leaf],
    depth: int,
    rules: Sequence[Rule],
    *,
    beside: Sequence[tuple[str, ...]] = (),
) -> None:
    """Account for values that nothing else has accounted for.

    Args:
        work: The conversion.
        root: The root of the rules' paths, with defaults: there stand the switches.
        leaves: The values.
        depth: Number of keys from the document to the root.
        rules: The rules, specific ones first.
        beside: Keys, from the document, of places that other rules stand for.
    """
    on = {rule.switch: root.at(*rule.switch.split(".")).is_on() for rule in rules if rule.switch}
    for leaf in leaves:
        if work.is_accounted(leaf) or any(leaf.keys[: len(keys)] == keys for keys in beside):
            continue
        rule = next((each for each in rules if each.fits(leaf.keys[depth:])), None)
        if rule is None or (rule.verdict is RuleVerdict.EMPTY and not leaf.is_empty):
            continue
        if not on.get(rule.switch, True):
            work.needless([leaf], f"{rule.switch} is off")
        elif rule.verdict is RuleVerdict.CANNOT:
            work.cannot([leaf], rule.text)
        else:
            work.needless([leaf], rule.text)
