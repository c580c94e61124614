"""Reader of YAML 1.2, as Pulumi reads its files: `12:00:00`, `yes` and dates are text."""

import re
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """PyYAML loader, which implements version 1.1, with the plain values of version 1.2."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))
_Loader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile("^<<$"), ["<"])
_Loader.add_constructor(
    "tag:yaml.org,2002:int", lambda _, node: int(node.value, 0 if node.value[:2] in {"0o", "0x"} else 10)
)


def read_yaml(text: str) -> Any:  # noqa: ANN401 - YAML
    """Return the value of a document; None if it is empty.

    Raises:
        ValueError: The text is not YAML, or nested deeper than Python can follow.
    """
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - it is a SafeLoader
    except (RecursionError, yaml.YAMLError) as error:
        raise ValueError(str(error)) from None


def read_nodes(text: str) -> yaml.Node | None:
    """Return the nodes of a document, which know where they stand in the text; None if it is empty.

    Raises:
        ValueError: The text is not YAML, or nested deeper than Python can follow.
    """
    try:
        found: yaml.Node | None = yaml.compose(text, _Loader)
    except (RecursionError, yaml.YAMLError) as error:
        raise ValueError(str(error)) from None
    return found
