"""Relations between objects of a program: patches and what they patch, selectors and labels, parts and companions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any

from soperator_pulumi.policy.value_tree import UNKNOWN, listed, look, mapped
from soperator_pulumi.policy.view import ResourceView

_ATOMIC = ("podSelector", "selector")
"""Fields that a patch replaces as a whole: a LabelSelector is `x-kubernetes-map-type: atomic`."""

_MOST_EXAMPLES = 256
_ANY_VALUE = "a value that only Exists covers"


def patched(resources: Sequence[ResourceView]) -> list[ResourceView]:
    """Return the resources that are not patches, with all patches to them applied."""
    patches = [resource for resource in resources if resource.is_patch]
    return [_after(resource, patches) for resource in resources if not resource.is_patch]


def objects_and_patches(resources: Sequence[ResourceView]) -> list[ResourceView]:
    """Return the Kubernetes objects with all patches applied, then the patches, which may patch objects elsewhere."""
    patches = [resource for resource in resources if resource.is_patch]
    return [resource for resource in (*patched(resources), *patches) if resource.is_kubernetes]


def changes(patch: ResourceView, resource: ResourceView) -> bool:
    """Return True if a patch applies to this object, or may: a preview may not know the namespace yet."""
    spaces, names = (patch.namespace, resource.namespace), (_name(patch), _name(resource))
    same_space = UNKNOWN in spaces or spaces[0] == spaces[1]
    return resource.is_kubernetes and patch.kind == resource.kind and same_space and names[0] == names[1] is not None


def _name(resource: ResourceView) -> Any:  # noqa: ANN401 a text, UNKNOWN or None
    return look(resource.props, "metadata", "name")


def _after(resource: ResourceView, patches: Sequence[ResourceView]) -> ResourceView:
    props: Any = resource.props
    for patch in patches:
        if changes(patch, resource):
            props = _merged(props, patch.props)
    return replace(resource, props=props)


def _merged(given: Any, change: Any) -> Any:  # noqa: ANN401 any tree of values
    """Return a value after a change: mappings merge by key, lists of named items by name, the rest is replaced."""
    if change is None:
        return given
    if isinstance(given, Mapping) and isinstance(change, Mapping):
        changed = {
            key: item if key in _ATOMIC and item is not None else _merged(given.get(key), item)
            for key, item in change.items()
        }
        return {**given, **changed}
    if _has_names(given) and _has_names(change):
        by_name = {item["name"]: item for item in given}
        return [*{**by_name, **{item["name"]: _merged(by_name.get(item["name"]), item) for item in change}}.values()]
    return change


def _has_names(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, Mapping) and isinstance(item.get("name"), str) for item in value
    )


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


def stateful_sets(resources: Iterable[ResourceView], part: str) -> Iterator[ResourceView]:
    """Yield the StatefulSets that belong to a part of a cluster, such as `Controller`."""
    return (resource for resource in resources if resource.kind == "StatefulSet" and resource.part == part)


def running_cron_jobs(resources: Iterable[ResourceView], part: str) -> Iterator[ResourceView]:
    """Yield the CronJobs that belong to a part of a cluster, without suspended ones."""
    for resource in resources:
        if resource.kind == "CronJob" and resource.part == part and look(resource.props, "spec", "suspend") is not True:
            yield resource


def without_companion(parts: Iterable[ResourceView], companions: Iterable[ResourceView]) -> Iterator[ResourceView]:
    """Yield the parts whose namespace has none of the companions."""
    accompanied = {str(companion.namespace) for companion in companions}
    return (part for part in parts if str(part.namespace) not in accompanied)
