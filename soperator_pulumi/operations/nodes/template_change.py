"""Effect of applying a pod template to the live one, as Kubernetes' server-side apply would have it.

A preview has the template as Pulumi registered it, after all transforms of the program: Kubernetes' answer to a dry run
or, where the caller may not ask for one, the program's own values. These lack Kubernetes' defaults, and spell amounts
as the program does.
"""

import json
from decimal import Decimal
from typing import Any

from soperator_pulumi.operations.kube import Json
from soperator_pulumi.operations.nodes.live_node_set import IDENTITY_ANNOTATION
from soperator_pulumi.spec.types.quantity import amount

_AMOUNTS = frozenset({"limits", "requests"})
_AMOUNT = frozenset({"sizelimit", "divisor"})

_DEFAULTED = frozenset(
    {
        "apiversion",
        "defaultmode",
        "dnspolicy",
        "failurethreshold",
        "imagepullpolicy",
        "periodseconds",
        "protocol",
        "restartpolicy",
        "schedulername",
        "scheme",
        "securitycontext",
        "serviceaccount",
        "successthreshold",
        "terminationgraceperiodseconds",
        "terminationmessagepath",
        "terminationmessagepolicy",
        "timeoutseconds",
        "type",
    }
)
"""Fields that Kubernetes fills in: a template without one does not remove it."""


def changes_pods(template: Json, stateful_set: Json) -> bool:
    """Return True where a live StatefulSet would have another template of its pods with `template` applied.

    Values that somebody else has added to it stay, as nobody applies them away.

    Args:
        template: The template to apply. Keys may be spelled in Python's way: `image_pull_policy`.
        stateful_set: The live StatefulSet, with its `managedFields`.
    """
    wanted = _comparable(template)
    live = _comparable(stateful_set.get("spec", {}).get("template", {}))
    return not _holds(live, wanted) or _removes(_applied_fields(stateful_set), wanted, live)


def _comparable(value: Any, key: str = "") -> Any:  # noqa: ANN401 JSON
    """Return a tree with keys in one spelling, and amounts as numbers."""
    if isinstance(value, dict):
        below = {_spelled(name): each for name, each in value.items()}
        return {name: _comparable(each, key if key in _AMOUNTS else name) for name, each in below.items()}
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    return _as_number(value) if key in _AMOUNTS | _AMOUNT else value


def _spelled(key: str) -> str:
    return key.replace("_", "").lower()


def _as_number(value: object) -> Decimal | object:
    try:
        return amount(str(value))
    except ValueError:  # an amount of a form that only Kubernetes knows
        return value


def _holds(live: Any, wanted: Any) -> bool:  # noqa: ANN401 JSON
    """Return True where the live tree has all of the wanted one. Kubernetes drops what is empty."""
    if not wanted and not live:
        return True
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(_holds(live.get(key), each) for key, each in wanted.items())
    if isinstance(wanted, list) and isinstance(live, list):
        return len(wanted) == len(live) and all(map(_holds, live, wanted))
    return bool(wanted == live)


def _applied_fields(stateful_set: Json) -> Json:
    """Return the fields of the template that Pulumi has applied: it is who set our own annotation."""
    for entry in stateful_set.get("metadata", {}).get("managedFields") or []:
        fields = entry.get("fieldsV1", {})
        if f"f:{IDENTITY_ANNOTATION}" in fields.get("f:metadata", {}).get("f:annotations", {}):
            return dict(fields.get("f:spec", {}).get("f:template", {}))
    return {}


def _removes(fields: Json, wanted: Any, live: Any) -> bool:  # noqa: ANN401 JSON
    """Return True where the live tree has one of these fields, as `managedFields` has them, and the wanted one not."""
    for field, below in fields.items():
        kind, _, name = field.partition(":")
        if kind not in {"f", "k"} or _spelled(name) in _DEFAULTED:
            continue
        there = _found(live, kind, name)
        if there and (not (kept := _found(wanted, kind, name)) or _removes(below, kept, there)):
            return True
    return False


def _found(tree: Any, kind: str, name: str) -> Any:  # noqa: ANN401 JSON
    """Return the value of a field, or the item of a list with these keys; None where there is none."""
    if kind == "f":
        return tree.get(_spelled(name)) if isinstance(tree, dict) else None
    keys = _comparable(json.loads(name))
    items = tree if isinstance(tree, list) else []
    return next((each for each in items if all(each.get(key, value) == value for key, value in keys.items())), None)
