"""The example programs, as their folders have them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tools import paths

FOLDER = paths.ROOT / "examples"


@dataclass(frozen=True)
class Example:
    """A Pulumi project of `examples/`."""

    folder: Path

    @property
    def name(self) -> str:
        return str(self.folder.relative_to(FOLDER))

    @property
    def project(self) -> dict[str, Any]:
        loaded: dict[str, Any] = yaml.safe_load((self.folder / "Pulumi.yaml").read_text())
        return loaded

    def stack_file(self) -> Path:
        return self.folder / "Pulumi.dev.yaml"

    def config(self) -> dict[str, Any]:
        """Return the values of the stack `dev`, by full key."""
        loaded: dict[str, Any] = yaml.safe_load(self.stack_file().read_text())["config"]
        return loaded

    def texts(self, **changes: Any) -> dict[str, str]:
        """Return the values as a program reads them, with those of other keys."""
        values = {**self.config(), **changes}
        return {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}


EXAMPLES = [Example(file.parent) for file in sorted(FOLDER.glob("**/Pulumi.yaml"))]
PYTHON = [item for item in EXAMPLES if (item.folder / "__main__.py").exists()]


def example(name: str) -> Example:
    """Return the example of a name."""
    (found,) = (item for item in EXAMPLES if item.name == name)
    return found
