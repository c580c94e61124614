"""Values from other stacks: `{from_stack: org/project/stack, output: name}` in place of a value.

Any field that accepts an Output accepts one: storage classes, claims, images, names of Secrets; and
`soperator:kubeconfig`.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeGuard

import pulumi

from soperator_pulumi.errors import Problem
from soperator_pulumi.spec.validation.messages import shown
from soperator_pulumi.stack import stack_config

STACK = "from_stack"
OUTPUT = "output"
STACK_PATTERN = r"[^/\s]+/[^/\s]+/[^/\s]+"

_WANTED = "<organization>/<project>/<stack>"


Reader: TypeAlias = Callable[[str, str, str], object]
"""Function that returns the value of an output, from the names of stack and output and the place of the reference; or a
`Problem`."""


class StackOutputs:
    """Replaces references by values, and collects the malformed ones."""

    def __init__(self, read: Reader) -> None:
        self.problems: list[Problem] = []
        """Malformed references."""
        self.found = False
        """True after the first reference."""
        self._read = read

    def resolve(self, value: object, place: Callable[[str], str], path: str = "") -> object:
        """Return a value in which Outputs replace all references.

        Args:
            value: A description of a cluster, or a part of it.
            place: Returns the path in the configuration of a path in the description.
            path: Path of the part in the description.
        """
        if is_reference(value):
            return self.output(value, place(path))
        if isinstance(value, Mapping):
            return {key: self.resolve(item, place, f"{path}.{key}".removeprefix(".")) for key, item in value.items()}
        if isinstance(value, list):
            return [self.resolve(item, place, f"{path}[{index}]") for index, item in enumerate(value)]
        return value

    def output(self, reference: Mapping[str, object], path: str) -> Any:  # noqa: ANN401 - any value
        """Return the output that a reference at `path` of the configuration names; None if there is a problem."""
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
            value = self._read(stack, name, path)
            if not isinstance(value, Problem):
                return value
            text = value.text
        self.problems.append(Problem(path, text))
        return None


def unread(_stack: str, _name: str, _path: str) -> object:
    """Return an unknown value, so that a description can be checked before another stack is read."""
    return pulumi.Output.from_input(pulumi.UNKNOWN)


class LiveStacks:
    """Reader that asks Pulumi once for every stack."""

    def __init__(self) -> None:
        self._stacks: dict[str, pulumi.StackReference] = {}

    def __call__(self, stack: str, name: str, path: str) -> object:
        """Return the output as the program's engine answers for it."""
        if stack not in self._stacks:
            self._stacks[stack] = pulumi.StackReference(stack)
        reference = self._stacks[stack]

        def refuse(outputs: Mapping[str, object]) -> object:
            there = ", ".join(sorted(outputs)) or "none"
            raise stack_config.error([Problem(path, f'stack {stack} has no output "{name}". Its outputs: {there}.')])

        def given(value: object) -> object:
            return reference.outputs.apply(refuse) if value is None else value

        return reference.get_output(name).apply(given)


def given_outputs(values: Mapping[str, Mapping[str, str]]) -> Reader:
    """Return a reader of values by stack and name, such as those of a command line."""

    def read(stack: str, name: str, path: str) -> object:
        if name in values.get(stack, {}):
            return values[stack][name]
        text = f'names the output "{name}" of another stack, which is not read here. Give its value: --stack-output '
        return Problem(path, f"{text}{stack}:{name}=<value>")

    return read


def is_reference(value: object) -> TypeGuard[Mapping[str, object]]:
    """Return True for a mapping that is meant as a reference, even a malformed one."""
    return isinstance(value, Mapping) and STACK in value


def as_text(value: object) -> str:
    """Return a kubeconfig as text. Stacks also export it as a mapping."""
    return value if isinstance(value, str) else json.dumps(value)
