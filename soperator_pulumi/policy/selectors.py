"""Label selectors of Kubernetes."""

from collections.abc import Mapping

from soperator_pulumi.policy.value_tree import UNKNOWN, listed, look, mapped


def selects(selector: object, labels: object) -> bool:
    """Return True if a selector matches these labels. Values that a preview does not know yet count as a match."""
    if UNKNOWN in (selector, labels):
        return True
    wanted, given = mapped(look(selector, "matchLabels")), mapped(labels)
    same = all(UNKNOWN in (value, given.get(key)) or given.get(key) == value for key, value in wanted.items())
    return same and all(_holds(expression, given) for expression in listed(look(selector, "matchExpressions")))


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
