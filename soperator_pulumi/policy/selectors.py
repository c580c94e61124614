"""Label selectors of Kubernetes."""

from collections.abc import Iterator, Mapping
from itertools import islice, product

from soperator_pulumi.policy.value_tree import UNKNOWN, listed, look, mapped

_MOST_EXAMPLES = 256
_ANY_VALUE = "a value that only Exists covers"


def selects(selector: object, labels: object) -> bool:
    """Return True if a selector matches these labels. Values that a preview does not know yet count as a match."""
    if UNKNOWN in (selector, labels):
        return True
    wanted, given = mapped(look(selector, "matchLabels")), mapped(labels)
    same = all(UNKNOWN in (value, given.get(key)) or given.get(key) == value for key, value in wanted.items())
    return same and all(_holds(expression, given) for expression in listed(look(selector, "matchExpressions")))


def is_unknown(selector: object) -> bool:
    """Return True if a preview does not know yet a selector or its `matchLabels`."""
    return UNKNOWN in (selector, look(selector, "matchLabels"))


def examples(selector: object) -> Iterator[Mapping[str, object]]:
    """Yield labels of pods that a selector matches: the labels that it requires, with every value that it offers.

    The number is bounded: a selector that offers many values for several labels yields the first of them. Expressions
    that a preview doesn't know yet require nothing. A selector or `matchLabels` that it doesn't know yields none.
    """
    required = {key: [value] for key, value in mapped(look(selector, "matchLabels")).items()}
    if is_unknown(selector):
        return
    for operator in ("In", "Exists"):  # any value will do if no other expression offers some
        for expression in listed(look(selector, "matchExpressions")):
            if look(expression, "operator") == operator:
                offered = [*listed(look(expression, "values"))] if operator == "In" else [_ANY_VALUE]
                required.setdefault(str(look(expression, "key")), offered)
    for values in islice(product(*required.values()), _MOST_EXAMPLES):
        yield dict(zip(required, values, strict=True))


def _holds(expression: object, labels: Mapping[str, object]) -> bool:
    key, values = str(look(expression, "key")), listed(look(expression, "values"))
    match look(expression, "operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return expression is UNKNOWN
