"""Drain policy of one run: the recorded one, with the environment's for this run merged over it."""

import os
from collections.abc import Mapping
from typing import Any

import yaml

from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.spec.drain import DrainSpec, parse_drain

SOPERATOR_DRAIN = "SOPERATOR_DRAIN"
"""Environment variable with keys of a node set's `drain`, for one run and one cluster: `hpc: {on_timeout: cancel}`."""

_GRACE = Problem("grace", "is part of the worker pods: no other one can count for one run. Set it in the node set.")


def policy_of(cluster: str, recorded: Mapping[str, Any] | None) -> DrainSpec:
    """Return the policy of a node set for this run; without a recorded one the default is what is overridden.

    The environment is read each time.

    Args:
        cluster: Name of the node set's cluster: others in the environment do not count.
        recorded: The node set's `drain`, as JSON.

    Raises:
        SpecError: the environment's has problems: all of them.
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
    """Return the environment's policy for a cluster in this run; empty where it has none.

    The name is always needed: a program may have several clusters, and a destroy runs no program that could count them.

    Raises:
        SpecError: it is no mapping, or has something else than clusters in it.
    """
    return dict(_by_cluster(cluster).get(cluster, {}))


def unheeded(cluster: str) -> str:
    """Return a line for where the environment names clusters, but not this one, which a misspelt name does; or nothing.

    Raises:
        SpecError: it is no mapping, or has something else than clusters in it.
    """
    named = _by_cluster(cluster)
    if not named or cluster in named:
        return ""
    return f"{cluster}: {SOPERATOR_DRAIN} names {', '.join(sorted(named))}, and counts for no other cluster"


def _by_cluster(cluster: str) -> dict[str, dict[str, Any]]:
    text = os.environ.get(SOPERATOR_DRAIN, "").strip()
    if not text:
        return {}
    try:
        content = yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError):  # PyYAML raises ValueError for days that no month has
        content = None
    if not isinstance(content, dict) or not all(isinstance(each, dict) for each in content.values()):
        example = f"{SOPERATOR_DRAIN}='{cluster}: {{timeout: 10m, on_timeout: cancel}}'"
        needs = f"needs the name of a cluster, and keys of a node set's drain that count for it: {example}."
        raise SpecError(SOPERATOR_DRAIN, [Problem("", needs)])
    others = [each for each in content if not isinstance(each, str)]
    if others:
        got = f"got {others[0]!r} as the name of a cluster, as YAML reads some words and numbers. Put it into quotes."
        raise SpecError(SOPERATOR_DRAIN, [Problem("", got)])
    return content
