"""The drain policy of one run: what is recorded, with what the environment says for this run merged over it."""

import os
from collections.abc import Mapping
from typing import Any

import yaml

from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.spec.drain import DrainSpec, parse_drain

SOPERATOR_DRAIN = "SOPERATOR_DRAIN"
"""Environment variable with keys of a node set's `drain`, for one run: `{timeout: 10m, on_timeout: cancel}`."""

_GRACE = Problem("grace", "is part of the worker pods: no other one can count for one run. Set it in the node set.")


def policy_of(recorded: Mapping[str, Any] | None) -> DrainSpec:
    """Return the policy of a node set for this run; without a recorded one the default is what is overridden.

    The environment is read anew each time.

    Raises:
        SpecError: what the environment says has problems: all of them.
    """
    said = override()
    problems = [_GRACE] if "grace" in said else []
    try:
        policy = parse_drain({**(recorded or {}), **said}, SOPERATOR_DRAIN)
    except SpecError as error:
        problems += error.problems
    if problems:
        raise SpecError(SOPERATOR_DRAIN, problems)
    return policy


def override() -> dict[str, Any]:
    """Return what the environment says for this run; empty when it says nothing.

    Raises:
        SpecError: it is no mapping.
    """
    text = os.environ.get(SOPERATOR_DRAIN, "").strip()
    if not text:
        return {}
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError:
        content = None
    if not isinstance(content, dict):
        raise SpecError(
            SOPERATOR_DRAIN,
            [Problem("", "needs a mapping of keys of a node set's drain, such as {timeout: 10m, on_timeout: cancel}.")],
        )
    return content
