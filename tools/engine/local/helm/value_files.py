"""Values from files: the input `valueYamlFiles`, overridden by the values of the program."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pulumi
import yaml
from pulumi.provider.experimental.property_value import PropertyValue

from tools.console import UserError
from tools.engine.local.helm.release_store import merged
from tools.engine.protocol import unsupported


def read_value_files(given: PropertyValue | None, folder: Path) -> dict[str, Any]:
    """Return the merged values of all files. Later files take precedence.

    Args:
        given: The input: assets.
        folder: Folder that relative paths start from.

    Raises:
        UserError: A file is missing, is not a map in YAML, or is not an asset of a supported kind.
    """
    values: dict[str, Any] = {}
    for index, item in enumerate(given.value if given is not None and isinstance(given.value, Sequence) else ()):
        where = f"valueYamlFiles[{index}]"
        content = _content(item.value if isinstance(item, PropertyValue) else item, folder, where)
        try:
            read = yaml.safe_load(content)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            raise UserError(f"{where}: not YAML" + (f", line {mark.line + 1}" if mark else "")) from None
        if read is not None and not isinstance(read, dict):
            raise UserError(f"{where}: got a {type(read).__name__}, must be a map of values")
        values = merged(values, read or {})
    return values


def _content(asset: object, folder: Path, where: str) -> str:
    match asset:
        case pulumi.StringAsset():
            return str(asset.text)
        case pulumi.FileAsset():
            try:
                return (folder / str(asset.path)).read_text(encoding="utf-8")
            except OSError as error:
                raise UserError(f"{where}: {asset.path}: {error.strerror}") from None
        case _:
            raise UserError(unsupported(f"{where}: an asset that is neither a file nor a text: not supported"))
