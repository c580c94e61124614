"""Configuration of a stack: the keys under `soperator:`, and the clusters that they describe."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.validation.messages import meant_key, shown

NAMESPACE = "soperator:"
ONE = "soperator:cluster"
SEVERAL = "soperator:clusters"
DEFAULTS = "soperator:defaults"
LOCAL = "soperator:local"
PLATFORM = "soperator:platform"
KUBECONFIG = "soperator:kubeconfig"
CONTEXT = "soperator:context"
POLICY = "soperator:policy"
SERVED_BY = "soperator:served_by"
KEYS = (ONE, SEVERAL, PLATFORM, DEFAULTS, LOCAL, KUBECONFIG, CONTEXT, POLICY, SERVED_BY)
"""Allowed keys. The policy pack reads `soperator:policy`, the program all others."""

COMPONENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
"""Names under `soperator:clusters`: they are parts of URNs, and names of clusters that give none."""

DEFAULT_NAME = "slurm"
"""Name of a cluster under `soperator:cluster` that gives none."""


class StackConfigError(SpecError, pulumi.RunError):
    """Problems of a stack's configuration, in one message. Pulumi prints it without a traceback."""


@dataclass(frozen=True)
class Described:
    """Description of one cluster, not yet checked."""

    component: str
    """Name of the component, and of the cluster if the description has no name."""
    path: str
    """Place in the configuration: `soperator:cluster` or `soperator:clusters.<component>`."""
    own: object
    """Description in the stack's file."""
    merged: object
    """The same, merged over the defaults."""

    def place(self, path: str) -> str:
        """Return the configuration's path for a path in the description: in the stack's file, or in the defaults."""
        where = self.path if self._is_own(path) else DEFAULTS
        return f"{where}.{path}" if path else where

    def _is_own(self, path: str) -> bool:
        """Return False for a value that comes from the defaults. A list comes from one of them as a whole."""
        own, both = self.own, self.merged
        for key in path.partition("[")[0].split("."):
            if not isinstance(own, Mapping) or not isinstance(both, Mapping) or key not in both:
                return True
            if key not in own:
                return False
            own, both = own[key], both[key]
        return True


def read(values: Mapping[str, object]) -> tuple[list[Described], list[Problem]]:
    """Return the clusters of a stack, and the problems of the stack's keys.

    Args:
        values: Configuration by full key. Other namespaces are ignored.
    """
    defaults, one, several = values.get(DEFAULTS, {}), values.get(ONE), values.get(SEVERAL)
    found = [(name_in(one), ONE, one)] if ONE in values else []
    if isinstance(several, Mapping):
        found += [(str(name), f"{SEVERAL}.{name}", own) for name, own in several.items()]
    return [Described(*row, merged(defaults, row[-1])) for row in found], [*_problems(values)]


def clashes(specs: Mapping[str, ClusterSpec]) -> Iterator[Problem]:
    """Yield names and namespaces that several clusters have. The keys of `specs` are their paths."""
    for field in ("name", "namespace"):
        first_with: dict[str, str] = {}
        for path, spec in specs.items():
            value = getattr(spec, field)
            if value in first_with:
                text = (
                    f'"{value}" is also that of {first_with[value]}. Clusters need distinct {field}s: choose another.'
                )
                yield Problem(f"{path}.{field}", text)
            first_with.setdefault(value, path)


def in_runtime() -> dict[str, Any]:
    """Return the configuration of the running program: objects as objects, everything else as text."""
    runtime = pulumi.runtime.config
    return {key: _value(text) for key, text in {**runtime.get_config_env(), **runtime.CONFIG.get()}.items()}


def error(problems: Iterable[Problem]) -> StackConfigError:
    """Return the error for problems with paths that begin with a configuration key.

    Paths in `soperator:cluster` are relative to it, like those of a component's arguments.
    """
    every = list(dict.fromkeys(problems))
    if all(problem.path.startswith(f"{ONE}.") for problem in every):
        return StackConfigError(ONE, [Problem(problem.path.removeprefix(f"{ONE}."), problem.text) for problem in every])
    return StackConfigError(f"the configuration of stack {pulumi.get_stack()}", every)


def _problems(values: Mapping[str, object]) -> Iterator[Problem]:
    meant = {key: _meant(key) for key in values if key.startswith(NAMESPACE) and key not in KEYS}
    for key, near in meant.items():
        yield Problem(
            key, f'unknown key. Did you mean "{near}"?' if near else f"unknown key. Allowed: {', '.join(KEYS)}."
        )
    for key in (DEFAULTS, SEVERAL):
        if not isinstance(values.get(key, {}), Mapping):
            yield Problem(key, f"got {shown(values[key])}, needs a mapping.")
    several = values.get(SEVERAL)
    for name in several if isinstance(several, Mapping) else ():
        if not COMPONENT_NAME.fullmatch(str(name)):
            allowed = "letters, digits, '-', '_' and '.', at most 40, such as \"hpc\""
            yield Problem(SEVERAL, f"got the name {shown(name)}, needs {allowed}.")
    local = values.get(LOCAL, {"user": ""})
    if not isinstance(local, Mapping) or {*local} != {"user"} or not isinstance(local["user"], str):
        yield Problem(LOCAL, f"got {shown(local)}, needs the user of `make ssh` alone, such as {{user: demo}}.")
    if ONE in values and SEVERAL in values:
        yield Problem(SEVERAL, f"given together with {ONE}. Describe all clusters here, and remove that key.")
    elif not values.get(SEVERAL, True) or not {ONE, SEVERAL, PLATFORM} & {*values, *meant.values()}:
        key = SEVERAL if SEVERAL in values else ONE
        yield Problem(
            key,
            f"describes no cluster. Describe one under {ONE}, several by their names under {SEVERAL}, or a platform "
            f"for clusters of other stacks under {PLATFORM}.",
        )


def _meant(key: str) -> str | None:
    near = meant_key(key.removeprefix(NAMESPACE), [known.removeprefix(NAMESPACE) for known in KEYS])
    return None if near is None else NAMESPACE + near


def name_in(description: object) -> str:
    """Return the name of a component if its description gives one; otherwise the default."""
    name = description.get("name") if isinstance(description, Mapping) else None
    return name if isinstance(name, str) and name else DEFAULT_NAME


def _value(text: object) -> object:
    """Return the value of a configuration text. Pulumi gives objects as JSON."""
    try:
        return json.loads(text) if isinstance(text, str) and text[:1] in {"{", "["} else text
    except ValueError:
        return text


def merged(defaults: object, own: object) -> object:
    """Return `own` over `defaults`: mappings merge by key, null removes a key, anything else in `own` replaces."""
    if not isinstance(own, Mapping):
        return own
    base = defaults if isinstance(defaults, Mapping) else {}
    both = {**base, **{key: merged(base.get(key), value) for key, value in own.items()}}
    return {key: value for key, value in both.items() if value is not None}
