"""Findings of the checks: the place, the fact, the requirement and the remedy, with their report as text and JSON."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from soperator_pulumi.errors import KubernetesError, Problem
from soperator_pulumi.wording import with_final_stop

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


_ORDER = (Severity.REFUSED, Severity.WARNED, Severity.PASSED)


def text_report(found: Mapping[str, Sequence[Diagnosis]]) -> str:
    """Return the report for people.

    Args:
        found: Findings by the key of each cluster.
    """
    return "\n".join(_of_cluster(key, findings) for key, findings in found.items())


def json_report(found: Mapping[str, Sequence[Diagnosis]]) -> str:
    """Return the report as JSON, in the form of docs/preflight.md."""
    clusters = [
        {"cluster": key, **_counts(findings), "findings": [_as_json(finding) for finding in findings]}
        for key, findings in found.items()
    ]
    return json.dumps({"refused": is_refused(found), "clusters": clusters}, indent=2) + "\n"


def json_error(error: str) -> str:
    """Return a JSON report for checks that could not be made."""
    return json.dumps({"refused": None, "error": error, "clusters": []}, indent=2) + "\n"


def is_refused(found: Mapping[str, Sequence[Diagnosis]]) -> bool:
    """Return True if a finding stops a deployment."""
    return any(finding.severity is Severity.REFUSED for findings in found.values() for finding in findings)


def _of_cluster(key: str, found: Sequence[Diagnosis]) -> str:
    counts = _counts(found)
    words = ", ".join(f"{counts[severity]} {severity}" for severity in _ORDER)
    ordered = sorted(found, key=lambda item: _ORDER.index(item.severity))
    return "\n".join([f"{key}: {words}.", *map(_lines, ordered), ""])


def _lines(found: Diagnosis) -> str:
    first, *more = found.sentences()
    first = with_final_stop(first)  # a check that has passed has a fact alone
    return "\n".join(
        [f"  {found.severity:<8}{found.check}: {found.path}: {first}", *(f"          {line}" for line in more)]
    )


def _as_json(found: Diagnosis) -> dict[str, str]:
    return {
        "check": found.check,
        "severity": found.severity,
        "place": found.path,
        "found": found.found,
        "needed": found.needed,
        "cure": found.cure,
    }


def _counts(found: Sequence[Diagnosis]) -> dict[str, int]:
    counts = Counter(diagnosis.severity for diagnosis in found)
    return {severity: counts[severity] for severity in _ORDER}
