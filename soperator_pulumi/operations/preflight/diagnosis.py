"""Findings of the checks: the place, the fact, the requirement and the remedy."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from soperator_pulumi.errors import KubernetesError, Problem

_FIRST_SENTENCE = re.compile(r'(?s)((?:"[^"]*"|.)+?)(?:\. (.+)|\.)?')
"""The first sentence and the rest. A quoted value may have any characters."""


class Severity(StrEnum):
    """Severity of a finding."""

    REFUSED = "refused"
    """The cluster cannot work, or not safely."""
    WARNED = "warned"
    """The cluster may work with a stated disadvantage, or the check could not be made."""
    PASSED = "passed"


@dataclass(frozen=True)
class Diagnosis(Problem):
    """Result of one check at one place, also without a fault."""

    check: str = field(kw_only=True)
    """Name of the check, as in docs/preflight.md."""
    severity: Severity = field(kw_only=True)


def refused(check: str, place: str, found: str, needed: str, cure: str) -> Diagnosis:
    """Return a finding that stops a deployment."""
    return Diagnosis(place, found, needed, cure, check=check, severity=Severity.REFUSED)


def warned(check: str, place: str, found: str, needed: str, cure: str) -> Diagnosis:
    """Return a finding that a person must judge."""
    return Diagnosis(place, found, needed, cure, check=check, severity=Severity.WARNED)


def passed(check: str, place: str, found: str) -> Diagnosis:
    """Return a finding without a fault."""
    return Diagnosis(place, found, check=check, severity=Severity.PASSED)


def of_problem(check: str, problem: Problem) -> Diagnosis:
    """Return a problem of the spec as a finding: its first sentence is the fact, the rest the remedy."""
    sentences = _FIRST_SENTENCE.fullmatch(problem.text)
    found, cure = sentences.groups(default="") if sentences else (problem.text, "")
    return Diagnosis(problem.path, found, cure=cure, check=check, severity=Severity.REFUSED)


def answered(check: str, place: str, look: Callable[[], Iterable[Diagnosis]]) -> Iterator[Diagnosis]:
    """Yield the findings of a check, or a warning if the Kubernetes API does not answer it."""
    try:
        yield from [*look()]
    except KubernetesError as error:
        yield not_checked(check, place, error)


def not_checked(check: str, place: str, error: KubernetesError) -> Diagnosis:
    """Return the warning that the Kubernetes API did not answer a check."""
    cure = "Give the user of the kubeconfig the right to read it, or check it by hand."
    return warned(check, place, f"not checked: {error}".removesuffix("."), "", cure)
