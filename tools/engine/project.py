"""Project folder in Pulumi's layout: `Pulumi.yaml`, the stack's configuration, program and interpreter."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soperator_pulumi.stack.stack_file import as_texts, full_key, is_encrypted, with_defaults
from soperator_pulumi.yaml_reader import read_yaml
from tools.console import UserError
from tools.engine.protocol import Target


@dataclass(frozen=True, kw_only=True)
class Project:
    """A project and one of its stacks.

    Attributes:
        name: Name of the project.
        root: Folder of `Pulumi.yaml`.
        program: Folder of the program (`main:`).
        python: Interpreter (`runtime.options.virtualenv`, or that of this process).
        config: Configuration by full key, as text; objects are JSON.
        secret_keys: Keys of secret values.
        plugins: Folders of plugins by package (`packages:`).
    """

    name: str
    root: Path
    program: Path
    python: Path
    config: Mapping[str, str]
    secret_keys: tuple[str, ...] = ()
    plugins: Mapping[str, Path] = field(default_factory=dict)


def load(target: Target) -> Project:
    """Read a project and the configuration of a stack.

    Raises:
        UserError: A file is missing, is not YAML, or uses an unsupported feature.
    """
    path = target.project / "Pulumi.yaml"
    data = _yaml(path)
    name = name_of(target)
    runtime = data.get("runtime")
    language = runtime.get("name") if isinstance(runtime, Mapping) else runtime
    if language != "python":
        raise UserError(f"{path}: runtime {language!r} is not supported, only python")
    return Project(
        name=name,
        root=target.project,
        program=target.project / (data.get("main") or ""),
        python=interpreter(target),
        config=_config(target),
        plugins=_plugins(data, target),
    )


def _plugins(data: Mapping[str, Any], target: Target) -> dict[str, Path]:
    """Return the folders that `packages` names. Packages from elsewhere are refused once a resource needs one."""
    packages = data.get("packages") or {}
    return {
        name: (target.project / source).resolve()
        for name, source in packages.items()
        if isinstance(source, str) and source.startswith((".", "/"))
    }


def name_of(target: Target) -> str:
    """Return the project's name."""
    path = target.project / "Pulumi.yaml"
    if not isinstance(name := _yaml(path).get("name"), str):
        raise UserError(f"{path}: `name` is missing")
    return name


def virtualenv(target: Target, file: str = "Pulumi.yaml") -> str | None:
    """Return the virtual environment of the project's program, or of the pack in `file`; None if missing."""
    runtime = _yaml(target.project / file).get("runtime")
    options = runtime.get("options") if isinstance(runtime, Mapping) else None
    return (options or {}).get("virtualenv")


def stack_settings(target: Target) -> dict[str, Any]:
    """Return the content of the stack's file, with the values that override it."""
    file = stack_file(target)
    settings = _yaml(file) if file.exists() else {}
    if not settings and not target.config:
        found = sorted(path.name.split(".", 1)[1].removesuffix(".yaml") for path in file.parent.glob("Pulumi.*.yaml"))
        others = f"name one of {', '.join(found)}, or create the file." if found else "create the file."
        raise UserError(f"stack {target.stack!r} has no configuration: {file} does not exist. Next: {others}")
    name = name_of(target)
    values = {full_key(name, key): value for key, value in (settings.get("config") or {}).items()}
    return {**settings, "config": {**values, **target.config}}


def interpreter(target: Target, file: str = "Pulumi.yaml") -> Path:
    """Return the interpreter of the project's program, or of the pack that `file` describes."""
    if target.python is not None:
        return target.python
    python = target.project / (virtualenv(target, file) or "") / "bin" / "python"
    return python if python.exists() else Path(sys.executable)


def stack_file(target: Target) -> Path:
    """Return the path of the stack's configuration, which may not exist."""
    folder = _yaml(target.project / "Pulumi.yaml").get("stackConfigDir") or ""
    return target.project / folder / f"Pulumi.{target.stack}.yaml"


def configuration(target: Target) -> dict[str, Any]:
    """Return the configuration by full key: the project's, overridden by the stack's, and both by the given values.

    A value is replaced as a whole, as in Pulumi, even if both are objects.
    """
    project = _yaml(target.project / "Pulumi.yaml")
    return with_defaults(project, stack_settings(target)["config"], name_of(target))


def _config(target: Target) -> dict[str, str]:
    file = stack_file(target)
    if "environment" in stack_settings(target):
        raise UserError(f"{file}: `environment` (Pulumi ESC) is not supported by the local engine")
    values = configuration(target)
    for key, value in values.items():
        if is_encrypted(value):
            raise UserError(
                f"{file}: {key} was encrypted by the Pulumi CLI, which the local engine cannot read. "
                "Take the value from a Kubernetes Secret, or use the CLI."
            )
    if engines := sorted(key for key in values if key.startswith("pulumi:") and key != "pulumi:tags"):
        raise UserError(f"{file}: {', '.join(engines)} is not supported by the local engine")
    return as_texts(values)


def _yaml(path: Path) -> dict[str, Any]:
    try:
        data = read_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{path} is not YAML: {error}") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise UserError(f"{path}: expected keys and values")
    return data
