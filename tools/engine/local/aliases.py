"""Under which URNs a resource may be in the state: those that its aliases name, and those that its parent's imply."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tools.engine.protocol import STACK_TYPE


@dataclass(frozen=True, kw_only=True)
class Alias:
    """A name that a resource had. What is empty is as it is now.

    Attributes:
        urn: The whole; the others are empty then.
        name: Its name.
        type: Its type.
        stack: The stack's name.
        project: The project's name.
        parent: URN of its parent.
        no_parent: The stack was its parent.
    """

    urn: str = ""
    name: str = ""
    type: str = ""
    stack: str = ""
    project: str = ""
    parent: str = ""
    no_parent: bool = False


def make_urn(stack: str, project: str, parent: str, resource_type: str, name: str) -> str:
    """Return the URN of a resource; `parent` is its parent's, or empty."""
    parents = _types(parent) if parent else STACK_TYPE
    qualified = resource_type if parents == STACK_TYPE else f"{parents}${resource_type}"
    return f"urn:pulumi:{stack}::{project}::{qualified}::{name}"


def former_urns(urn: str, parent: str, aliases: Iterable[Alias], renamed: Mapping[str, str]) -> list[str]:
    """Return the URNs under which a resource may be in the state besides its own, by the rules of Pulumi's engine.

    Args:
        urn: Its URN.
        parent: Its parent's, or empty.
        aliases: What the program says.
        renamed: URNs in the state by those of now, of the resources that this run has found under another one.
    """
    own = [_resolved(alias, urn, parent, renamed) for alias in aliases]
    if not parent or parent not in renamed:
        return [*dict.fromkeys(own)]
    return [*dict.fromkeys([*own, *_inherited([urn, *own], urn, parent, renamed[parent])])]


def _resolved(alias: Alias, urn: str, parent: str, renamed: Mapping[str, str]) -> str:
    if alias.urn:
        return alias.urn
    stack, project = urn.removeprefix("urn:pulumi:").split("::")[:2]
    above = renamed.get(alias.parent, alias.parent) or parent
    return make_urn(
        alias.stack or stack,
        alias.project or project,
        "" if alias.no_parent else above,
        alias.type or _types(urn).rpartition("$")[2],
        alias.name or _name(urn),
    )


def _inherited(urns: Iterable[str], urn: str, parent: str, parent_before: str) -> Iterator[str]:
    """Yield what children are called after a parent that had another name: by it, where their own begins with it."""
    stack, project = urn.removeprefix("urn:pulumi:").split("::")[:2]
    for each in urns:
        name = _name(each)
        if name.startswith(_name(parent)):
            name = _name(parent_before) + name.removeprefix(_name(parent))
        yield make_urn(stack, project, parent_before, _types(each).rpartition("$")[2], name)


def _types(urn: str) -> str:
    return urn.split("::")[2]


def _name(urn: str) -> str:
    return urn.split("::", 3)[3]
