"""Values from other stacks: `{from_stack: org/project/stack, output: name}` in place of a value.

Any field that takes an Output takes one: storage classes, claims, images, names of Secrets; and `soperator:kubeconfig`.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

import pulumi

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.validation.messages import shown
from stacks import stack_config

STACK = "from_stack"
OUTPUT = "output"
STACK_PATTERN = r"[^/\s]+/[^/\s]+/[^/\s]+"

_WANTED = "<organization>/<project>/<stack>"


class StackOutputs:
    """Reads outputs of other stacks, each stack once.

    Without `read` their values are unknown: a description can be checked before another stack is asked for anything.
    """

    def __init__(self, *, read: bool) -> None:
        self.problems: list[Problem] = []
        """Malformed references."""
        self.found = False
        """True after the first reference."""
        self._read_them = read
        self._stacks: dict[str, pulumi.StackReference] = {}

    def resolve(self, value: object, place: Callable[[str], str], path: str = "") -> object:
        """Return a value with an Output in place of each reference in it.

        Args:
            value: A description of a cluster, or a part of it.
            place: Returns the path in the configuration of a path in the description.
            path: Path of the part in the description.
        """
        if is_reference(value):
            return self.output(value, place(path))
        if isinstance(value, Mapping):
            return {key: self.resolve(each, place, f"{path}.{key}".removeprefix(".")) for key, each in value.items()}
        if isinstance(value, list):
            return [self.resolve(each, place, f"{path}[{index}]") for index, each in enumerate(value)]
        return value

    def output(self, reference: Mapping[str, object], path: str) -> pulumi.Output[Any] | None:
        """Return the output that a reference at `path` of the configuration names; None if it is malformed."""
        self.found = True
        stack, name = reference[STACK], reference.get(OUTPUT)
        if {*reference} != {STACK, OUTPUT} or not isinstance(stack, str) or not isinstance(name, str):
            text = f"got a mapping of {', '.join(reference)}, needs {STACK}: {_WANTED} and {OUTPUT}: <name>, both text."
        elif not re.fullmatch(STACK_PATTERN, stack):
            text = (
                f"got {STACK}: {shown(stack)}, needs {_WANTED}. "
                "In a backend other than Pulumi Cloud, the organization is `organization`."
            )
        else:
            return self._read(stack, name, path) if self._read_them else pulumi.Output.from_input(pulumi.UNKNOWN)
        self.problems.append(Problem(path, text))
        return None

    def _read(self, stack: str, name: str, path: str) -> pulumi.Output[Any]:
        if stack not in self._stacks:
            self._stacks[stack] = pulumi.StackReference(stack)
        reference = self._stacks[stack]

        def refuse(outputs: Mapping[str, object]) -> object:
            there = ", ".join(sorted(outputs)) or "none"
            raise stack_config.error([Problem(path, f'stack {stack} has no output "{name}". Its outputs: {there}.')])

        def given(value: object) -> object:
            return reference.outputs.apply(refuse) if value is None else value

        return reference.get_output(name).apply(given)


def is_reference(value: object) -> TypeGuard[Mapping[str, object]]:
    """Return True for a mapping that is meant as a reference, if a malformed one."""
    return isinstance(value, Mapping) and STACK in value


def as_text(value: object) -> str:
    """Return a kubeconfig as text: stacks export it as a mapping, too."""
    return value if isinstance(value, str) else json.dumps(value)
