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
        return {key: each if isinstance(each, str) else json.dumps(each) for key, each in values.items()}


EXAMPLES = [Example(file.parent) for file in sorted(FOLDER.glob("**/Pulumi.yaml"))]
PYTHON = [each for each in EXAMPLES if (each.folder / "__main__.py").exists()]


def example(name: str) -> Example:
    """Return the example of a name."""
    (found,) = (each for each in EXAMPLES if each.name == name)
    return found
