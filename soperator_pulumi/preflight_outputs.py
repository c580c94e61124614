"""Outputs of other stacks in a stack's file: replaced by values given on the command line, or all refused at once."""

from collections.abc import Iterator, Mapping
from typing import Any

from soperator_pulumi.errors import Problem, SpecError

_STACK, _OUTPUT = "from_stack", "output"

StackOutputs = Mapping[str, Mapping[str, str]]
"""Values by stack and name."""


def with_outputs(config: Mapping[str, Any], outputs: StackOutputs, where: str) -> dict[str, Any]:
    """Return a stack's configuration with values in place of references to other stacks.

    Args:
        config: The configuration.
        outputs: Values that are given.
        where: File of the configuration, for messages.

    Raises:
        SpecError: Values are missing. All of them are in one message.
    """
    missing: list[Problem] = []
    replaced = {key: _replaced(value, key, outputs, missing) for key, value in config.items()}
    if missing:
        raise SpecError(where, missing)
    return replaced


def _replaced(value: object, path: str, outputs: StackOutputs, missing: list[Problem]) -> Any:  # noqa: ANN401 - YAML
    if isinstance(value, Mapping):
        if _STACK not in value:
            return {key: _replaced(each, f"{path}.{key}", outputs, missing) for key, each in value.items()}
        stack, name = str(value[_STACK]), str(value.get(_OUTPUT))
        if name in outputs.get(stack, {}):
            return outputs[stack][name]
        missing.extend(_problems(path, stack, name))
        return None
    if isinstance(value, list):
        return [_replaced(each, f"{path}[{index}]", outputs, missing) for index, each in enumerate(value)]
    return value


def _problems(path: str, stack: str, name: str) -> Iterator[Problem]:
    text = (
        f'names the output "{name}" of another stack, which a preflight does not read. Give its value: --stack-output '
    )
    yield Problem(path, f"{text}{stack}:{name}=<value>")
