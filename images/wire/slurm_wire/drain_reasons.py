"""Reasons of drains, and findings in a node's `Extra`: their format, written and parsed."""

import re
from collections.abc import Iterable

NOT_VERIFIED = "health: not verified"
"""Begin of the reason of a new node that long checks have to pass first."""

REPLACE = "(replace the machine)"
"""Part of the reason by a check that asks for another machine."""

SILENT = r"(?: : Not responding)*"
"""Words that slurmctld appends if the node's slurmd has been silent for SlurmdTimeout."""

_FINDINGS = "health:"

_ALLOWED = r"none|all|found|an answer|an end|a finished one|status 0|-?[\d.]+(?:e[+-]?\d+)?(?:%| [A-Za-z/]+)?"
"""Ends of the reasons of health drains: words, or a limit and its unit. If an admin adds words, the drain stays."""

_HEALTH = re.compile(r"health ([a-z0-9_]+): ")
_WHOLE_HEALTH = re.compile(rf"{_HEALTH.pattern}.+, allowed (?:{_ALLOWED}){SILENT}", re.DOTALL)
_HOOK = re.compile(r"hook ([a-z0-9_-]+): ")
_DEPLOYMENT = re.compile(r"soperator-pulumi \S+: ([a-z-]+)")


def health_reason(check: str, value: str, allowed: str, *, replace: bool = False) -> str:
    """Return the reason of a drain by a check. Slurm takes no quotes and no line breaks in it."""
    value = re.sub(r"[^ -!#-&(-~]", "?", value)
    return f"health {check}: {value}{f' {REPLACE}' if replace else ''}, allowed {allowed}"


def check_that_drains(reason: str) -> str | None:
    """Return the check whose reason this is, unchanged since; None for the reason of another origin."""
    found = _WHOLE_HEALTH.fullmatch(reason)
    return found[1] if found else None


def named_check(reason: str) -> str:
    """Return the check that a reason names, without an admin's additions; `verification` for a new node, or empty."""
    if reason.startswith(NOT_VERIFIED):
        return "verification"
    found = _HEALTH.match(reason)
    return found[1] if found else ""


def asks_for_replacement(reason: str) -> bool:
    """Return True for the reason by a check that asks for another machine."""
    return bool(named_check(reason)) and f" {REPLACE}, allowed " in reason


def hook_reason(hook: str, problem: str) -> str:
    """Return the reason of a drain by a hook of jobs."""
    return f"hook {hook}: {problem}"


def named_hook(reason: str) -> str:
    """Return the hook that a reason names, or an empty string."""
    found = _HOOK.match(reason)
    return found[1] if found else ""


def named_operation(reason: str) -> str:
    """Return the operation of a deployment that a reason names, such as `scale-down`, or an empty string."""
    found = _DEPLOYMENT.match(reason)
    return found[1] if found else ""


def findings_text(checks: Iterable[str]) -> str:
    """Return the text of `Extra` for checks that fail and drain nothing; empty without any. It holds no values."""
    names = ",".join(checks)
    return f"{_FINDINGS}{names}" if names else ""


def findings(extra: str) -> tuple[str, ...]:
    """Return the checks in a text of `Extra`; empty for a text of another origin."""
    return tuple(filter(None, extra.removeprefix(_FINDINGS).split(","))) if holds_findings(extra) else ()


def holds_findings(extra: str) -> bool:
    """Return True if health checks wrote the text of a node's `Extra`."""
    return extra.startswith(_FINDINGS)
