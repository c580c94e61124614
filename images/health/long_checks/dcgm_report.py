"""Report of `dcgmi diag -j` (DCGM 3 and 4): failed tests, findings, and whether any hardware was tested.

DCGM 4 gives each warning a severity (dcgm_errors.h), DCGM 3 a text alone. Its tests of the software look at the node's
settings: persistence mode, permissions, libraries, other processes. No GPU is worse for them, and no job fails.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from long_checks.job_reading import Reading

_NO_FAULT = {0, 1, 5}
"""Severities NONE, MONITOR ("can perform workload") and CONFIG."""
_BY_TEST = {3, 4}
"""Severities UNKNOWN and TRIAGE: a fault in a test of the hardware. ISOLATE (2) and RESET (6) always are."""

_SOFTWARE = re.compile(
    r"software|deployment|denylist|blacklist|nvml library|cuda .*library|permissions|persistence|environment|"
    r"graphics processes",
    re.IGNORECASE,
)
_RECORDS = re.compile(r"page retirement|inforom", re.IGNORECASE)
"""Tests of DCGM 3 that only read recorded errors. At levels above 1, they alone do not count as a test."""
_DIAGNOSTICS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")


def read_dcgm(output: str) -> Reading | None:
    """Return the failed tests and the findings; None if no hardware test ran on some GPU."""
    tests = [*_tests(output)]
    is_quick = all(_SOFTWARE.search(name) or _RECORDS.search(name) for name, _ in tests)
    failed, findings = [], []
    passed, seen = set[str](), set[str]()
    for name, result in tests:
        status = str(result.get("status") or "").lower()
        entities = str(result.get("entity_id", result.get("gpu_id", result.get("gpu_ids", "")))).split(",")
        is_software = bool(_SOFTWARE.search(name))
        if result.get("entity_group") in {None, "GPU"}:
            seen.update(filter(None, entities))
        if status.startswith("pass") and not is_software and (is_quick or not _RECORDS.search(name)):
            passed.update(entities)
        elif _has_failed(result) and _is_fault(result, is_software=is_software):
            failed.append(name)
        elif status.startswith(("fail", "warn")):
            findings.append(f"{name}: {next(_texts(result), status)}"[:120])
    finding = "; ".join(dict.fromkeys(findings))
    if failed:
        return Reading(None, f"{' and '.join([*dict.fromkeys(failed)][:3])} failed, allowed none", finding)
    return Reading(None, "", finding) if passed and (passed >= seen or "" in passed) else None


def _tests(output: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the results of all tests by name, from the first report in the output."""
    report = _report(output)
    for category in _dicts(report.get("test_categories")):
        for test in _dicts(category.get("tests")):
            name = test.get("name")
            if not isinstance(name, str) or not name:
                continue
            results, summary = [*_dicts(test.get("results"))], [*_dicts([test.get("test_summary")])]
            if not any(_has_failed(result) for result in results):
                # A failure of no single GPU is in the summary alone.
                results += [result for result in summary if not results or _has_failed(result)]
            yield from ((name, result) for result in results)


def _report(output: str) -> Mapping[str, Any]:
    decoder = json.JSONDecoder()
    for begin in re.finditer(r"\{", output):
        try:
            found, _ = decoder.raw_decode(output, begin.start())
        except (ValueError, RecursionError):
            continue
        of_key = (found.get(key) for key in _DIAGNOSTICS)
        if report := next((section for section in of_key if isinstance(section, dict)), None):
            return report
    return {}


def _has_failed(result: Mapping[str, Any]) -> bool:
    return str(result.get("status") or "").lower().startswith("fail")


def _is_fault(result: Mapping[str, Any], *, is_software: bool) -> bool:
    severities = [warning.get("error_severity") for warning in _dicts(result.get("warnings"))]
    known = [severity for severity in severities if isinstance(severity, int)]
    if known:
        return any(severity not in _NO_FAULT and not (severity in _BY_TEST and is_software) for severity in known)
    return not is_software


def _texts(result: Mapping[str, Any]) -> Iterator[str]:
    warnings = result.get("warnings")
    for warning in warnings if isinstance(warnings, list) else [warnings]:
        text = warning.get("warning") if isinstance(warning, dict) else warning
        if isinstance(text, str) and text.strip():
            yield " ".join(text.split())


def _dicts(value: object) -> Iterator[Mapping[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())
