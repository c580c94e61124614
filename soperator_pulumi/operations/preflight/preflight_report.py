"""Report of findings: as text, refused ones first, and as JSON."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, Severity

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
    first += "" if first.endswith((".", "?", "!")) else "."  # a check that has passed has a fact alone
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
