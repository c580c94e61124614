"""Effect of applying a pod template to the live one, as predicted for Kubernetes' server-side apply.

A preview has the template as Pulumi registered it, after all transforms in the program: Kubernetes' answer to a dry run
or, if the caller may not request one, the program's own values. The latter lack Kubernetes' defaults, and amounts are
spelled as in the program.
"""

import json
from decimal import Decimal
from typing import Any

from soperator_pulumi.kube.verbs import Json
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
"""Fields that Kubernetes fills in: a template without such a field does not remove it."""


def changes_pods(template: Json, stateful_set: Json) -> bool:
    """Return True if applying `template` would change the pod template of a live StatefulSet.

    Values that others have added to it stay, as applying does not remove them.

    Args:
        template: The template to apply. Keys may be spelled as in Python: `image_pull_policy`.
        stateful_set: The live StatefulSet, with its `managedFields`.
    """
    wanted = _comparable(template)
    live = _comparable(stateful_set.get("spec", {}).get("template", {}))
    return not _holds(live, wanted) or _removes(_applied_fields(stateful_set), wanted, live)


def _comparable(value: Any, key: str = "") -> Any:  # noqa: ANN401 JSON
    """Return a tree with a uniform spelling of keys, and amounts as numbers."""
    if isinstance(value, dict):
        below = {_spelled(name): item for name, item in value.items()}
        return {name: _comparable(item, key if key in _AMOUNTS else name) for name, item in below.items()}
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    return _as_number(value) if key in _AMOUNTS | _AMOUNT else value


def _spelled(key: str) -> str:
    return key.replace("_", "").lower()


def _as_number(value: object) -> Decimal | object:
    try:
        return amount(str(value))
    except ValueError:  # an amount in a form that only Kubernetes knows
        return value


def _holds(live: Any, wanted: Any) -> bool:  # noqa: ANN401 JSON
    """Return True if the live tree contains all of the wanted one. Kubernetes drops empty values."""
    if not wanted and not live:
        return True
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(_holds(live.get(key), item) for key, item in wanted.items())
    if isinstance(wanted, list) and isinstance(live, list):
        return len(wanted) == len(live) and all(map(_holds, live, wanted))
    return bool(wanted == live)


def _applied_fields(stateful_set: Json) -> Json:
    """Return the fields of the template that Pulumi has applied, as the manager that set this package's annotation."""
    for entry in stateful_set.get("metadata", {}).get("managedFields") or []:
        fields = entry.get("fieldsV1", {})
        if f"f:{IDENTITY_ANNOTATION}" in fields.get("f:metadata", {}).get("f:annotations", {}):
            return dict(fields.get("f:spec", {}).get("f:template", {}))
    return {}


def _removes(fields: Json, wanted: Any, live: Any) -> bool:  # noqa: ANN401 JSON
    """Return True if the live tree has one of these `managedFields` and the wanted one does not."""
    for field, below in fields.items():
        kind, _, name = field.partition(":")
        if kind not in {"f", "k"} or _spelled(name) in _DEFAULTED:
            continue
        there = _found(live, kind, name)
        if there and (not (kept := _found(wanted, kind, name)) or _removes(below, kept, there)):
            return True
    return False


def _found(tree: Any, kind: str, name: str) -> Any:  # noqa: ANN401 JSON
    """Return the value of a field, or the item of a list with these keys; None if there is none."""
    if kind == "f":
        return tree.get(_spelled(name)) if isinstance(tree, dict) else None
    keys = _comparable(json.loads(name))
    items = tree if isinstance(tree, list) else []
    return next((item for item in items if all(item.get(key, value) == value for key, value in keys.items())), None)
