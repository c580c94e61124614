"""Drain policy of one run: the recorded policy, with keys from the environment merged over it."""

import os
from collections.abc import Mapping
from typing import Any

import yaml

from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.spec.drain import DrainSpec, parse_drain

SOPERATOR_DRAIN = "SOPERATOR_DRAIN"
"""Environment variable with keys of a node set's `drain`, for one run and one cluster: `hpc: {on_timeout: cancel}`."""

_GRACE = Problem("grace", "is part of the worker pods, so it cannot be changed for one run. Set it in the node set.")


def policy_of(cluster: str, recorded: Mapping[str, Any] | None) -> DrainSpec:
    """Return the policy of a node set for this run; without a recorded policy, the default is overridden.

    The environment is read on every call.

    Args:
        cluster: Name of the node set's cluster: entries for other clusters do not apply.
        recorded: The node set's `drain`, as JSON.

    Raises:
        SpecError: the policy in the environment has problems; all of them at once.
    """
    given = override(cluster)
    problems = [_GRACE] if "grace" in given else []
    try:
        policy = parse_drain({**(recorded or {}), **given}, SOPERATOR_DRAIN)
    except SpecError as error:
        problems += error.problems
    if problems:
        raise SpecError(SOPERATOR_DRAIN, problems)
    return policy


def override(cluster: str) -> dict[str, Any]:
    """Return the policy that the environment sets for a cluster in this run; empty if it sets none.

    The name is always required: a program may have several clusters, and a destroy does not run the program, so the
    number of clusters is unknown.

    Raises:
        SpecError: the value is not a mapping by cluster.
    """
    return dict(_by_cluster(cluster).get(cluster, {}))


def unheeded(cluster: str) -> str:
    """Return a line if the environment names clusters, but not this one, as with a misspelt name; otherwise empty.

    Raises:
        SpecError: the value is not a mapping by cluster.
    """
    named = _by_cluster(cluster)
    if not named or cluster in named:
        return ""
    return f"{cluster}: {SOPERATOR_DRAIN} names {', '.join(sorted(named))}, and applies to no other cluster"


def _by_cluster(cluster: str) -> dict[str, dict[str, Any]]:
    text = os.environ.get(SOPERATOR_DRAIN, "").strip()
    if not text:
        return {}
    try:
        content = yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError):  # PyYAML raises ValueError for invalid dates
        content = None
    if not isinstance(content, dict) or not all(isinstance(item, dict) for item in content.values()):
        example = f"{SOPERATOR_DRAIN}='{cluster}: {{timeout: 10m, on_timeout: cancel}}'"
        needs = f"needs the name of a cluster, and keys of a node set's drain that apply to it: {example}."
        raise SpecError(SOPERATOR_DRAIN, [Problem("", needs)])
    others = [item for item in content if not isinstance(item, str)]
    if others:
        got = f"got {others[0]!r} as the name of a cluster, which YAML does not read as text. Put it in quotes."
        raise SpecError(SOPERATOR_DRAIN, [Problem("", got)])
    return content
