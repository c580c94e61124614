"""A stack's file and the project that it belongs to, read as Pulumi reads them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.kube.access import Access, is_content
from soperator_pulumi.stack.stack_config import CONTEXT, KUBECONFIG, NAMESPACE
from soperator_pulumi.stack.stack_outputs import StackOutputs, as_text, given_outputs
from soperator_pulumi.yaml_reader import read_yaml

PROJECT = "Pulumi.yaml"
_UNNAMED = "project"


@dataclass(frozen=True)
class StackFile:
    """A stack's configuration, merged over that of its project."""

    file: Path
    project: str
    """Name of the project; `project` if there is no Pulumi.yaml in the file's folder or above it."""
    stack: str
    """Name of the stack: NAME of Pulumi.NAME.yaml."""
    config: dict[str, Any]
    """Values by full key."""

    def texts(self) -> dict[str, str]:
        """Return the values in the form that a program gets: objects as JSON."""
        return as_texts(self.config)


def read_stack_file(file: Path, outputs: Mapping[str, Mapping[str, str]], access: Access) -> StackFile | None:
    """Return the stack of a file; None if the file has no `config` section.

    Args:
        file: Path of the file.
        outputs: Outputs of other stacks by stack and name, which take the place of references.
        access: Kubernetes that takes the place of the one in the file. Parts that are None are left to the file.

    Raises:
        SpecError: The file cannot be read here as a whole: it is not YAML, has encrypted values, or names outputs that
            are not given.
    """
    content = read_mapping(file)
    if not isinstance(config := content.get("config"), Mapping):
        return None
    if "environment" in content:
        text = "comes from Pulumi ESC, which is not read here. Put the values into the file's `config`."
        raise SpecError(str(file), [Problem("environment", text)])
    # The project is the nearest one in the file's folder or above it.
    path = next((folder / PROJECT for folder in file.resolve().parents if (folder / PROJECT).exists()), None)
    project = {} if path is None else read_mapping(path)
    name = str(project.get("name", _UNNAMED))
    values = with_defaults(project, config, name)
    if KUBECONFIG in values and path is not None:
        values[KUBECONFIG] = _from_folder(values[KUBECONFIG], path.parent)
    chosen = {KUBECONFIG: access.kubeconfig, CONTEXT: access.context}
    values |= {key: value for key, value in chosen.items() if value}
    return StackFile(file, name, file.name.removeprefix("Pulumi.").rpartition(".")[0], _readable(file, values, outputs))


def read_mapping(file: Path) -> dict[str, Any]:
    """Return the keys and values of a file.

    Raises:
        SpecError: The file cannot be read, is not YAML, or holds no keys.
    """
    try:
        content = read_yaml(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(str(file), [Problem("", f"{error.strerror}. Name a file that can be read.")]) from None
    except ValueError:
        raise SpecError(str(file), [Problem("", "is not YAML. Name a description or a stack's file.")]) from None
    if not isinstance(content, dict):
        raise SpecError(str(file), [Problem("", "holds no keys. Name a description or a stack's file.")])
    return content


def with_defaults(project: Mapping[str, Any], config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the values of a stack over the defaults of its project, by full key.

    A value is replaced as a whole, as in Pulumi, even if both are objects.

    Args:
        project: Content of Pulumi.yaml.
        config: The stack's `config`.
        name: Name of the project: the namespace of keys without one.
    """
    declared = project.get("config")
    defaults: dict[str, Any] = {}
    # A text is the folder of the stacks' files, in projects of older versions of Pulumi.
    for key, value in declared.items() if isinstance(declared, Mapping) else ():
        defaults[key] = value.get("value", value.get("default")) if isinstance(value, Mapping) else value
    given = {key: value for key, value in defaults.items() if value is not None}
    return {full_key(name, key): value for values in (given, config) for key, value in values.items()}


def full_key(project: str, key: str) -> str:
    """Return a key of the configuration with its namespace."""
    return key if ":" in key else f"{project}:{key}"


def as_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Return values in the form that Pulumi gives to programs: texts unchanged, everything else as JSON."""
    return {key: as_text(value) for key, value in values.items()}


def is_encrypted(value: object) -> bool:
    """Return True for a value that the Pulumi CLI has encrypted."""
    return isinstance(value, Mapping) and value.keys() == {"secure"}


def _from_folder(kubeconfig: object, folder: Path) -> object:
    """Return a kubeconfig, with a relative path resolved from the project's folder, where Pulumi runs the program."""
    if not isinstance(kubeconfig, str) or not kubeconfig or is_content(kubeconfig):
        return kubeconfig
    return str(folder / Path(kubeconfig).expanduser())


def _readable(file: Path, values: Mapping[str, Any], outputs: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return the values with outputs of other stacks in place of references, without other encrypted values.

    Raises:
        SpecError: A value of this package is encrypted, or names an output that is not given.
    """
    own = {key: value for key, value in values.items() if key.startswith(NAMESPACE)}
    encrypted = [Problem(key, _cure(key)) for key, value in own.items() if is_encrypted(value)]
    found = StackOutputs(given_outputs(outputs))
    resolved = {key: found.resolve(value, partial(_place, key)) for key, value in own.items()}
    if problems := [*encrypted, *found.problems]:
        raise SpecError(str(file), problems)
    others = {key: value for key, value in values.items() if key not in own and not is_encrypted(value)}
    return {**others, **resolved}


def _cure(key: str) -> str:
    cure = "Give the file: --kubeconfig" if key == KUBECONFIG else "Take the value from a Secret of Kubernetes"
    return f"is encrypted, which the Pulumi CLI alone reads. {cure}."


def _place(key: str, path: str) -> str:
    return f"{key}.{path}" if path else key
