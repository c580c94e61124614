"""Former URNs of a resource: from its aliases, and from those of its parent."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tools.engine.protocol import STACK_TYPE


@dataclass(frozen=True, kw_only=True)
class Alias:
    """Former name of a resource. Empty fields have their present values.

    Attributes:
        urn: Whole URN; the other fields are empty then.
        name: Name in the program.
        type: Type token.
        stack: Name of the stack.
        project: Name of the project.
        parent: URN of the parent.
        no_parent: The stack was the parent.
    """

    urn: str = ""
    name: str = ""
    type: str = ""
    stack: str = ""
    project: str = ""
    parent: str = ""
    no_parent: bool = False


def make_urn(stack: str, project: str, parent: str, resource_type: str, name: str) -> str:
    """Return the URN of a resource; `parent` is the parent's URN, or empty."""
    parents = _types(parent) if parent else STACK_TYPE
    qualified = resource_type if parents == STACK_TYPE else f"{parents}${resource_type}"
    return f"urn:pulumi:{stack}::{project}::{qualified}::{name}"


def former_urns(urn: str, parent: str, aliases: Iterable[Alias], renamed: Mapping[str, str]) -> list[str]:
    """Return the former URNs under which a resource may be in the state, by the rules of Pulumi's engine.

    Args:
        urn: URN of the resource.
        parent: URN of the parent, or empty.
        aliases: Aliases in the program.
        renamed: Former URNs by present ones, of the resources that this run has found under another one.
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
    """Yield the URNs below a renamed parent. Names of children that begin with the parent's name change with it."""
    stack, project = urn.removeprefix("urn:pulumi:").split("::")[:2]
    for child_urn in urns:
        name = _name(child_urn)
        if name.startswith(_name(parent)):
            name = _name(parent_before) + name.removeprefix(_name(parent))
        yield make_urn(stack, project, parent_before, _types(child_urn).rpartition("$")[2], name)


def _types(urn: str) -> str:
    return urn.split("::")[2]


def _name(urn: str) -> str:
    return urn.split("::", 3)[3]
