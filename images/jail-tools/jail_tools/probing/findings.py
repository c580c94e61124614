"""Findings of a probe: the table for people, and JSON for programs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jail_tools.probing.catalogue import ACCEPTABLE
from jail_tools.probing.seen import FindingLevel

VERSION = 1
"""Version of the checks. A record with another version does not count."""

_LEVELS = (FindingLevel.REFUSED, FindingLevel.WARNING, FindingLevel.NOTED)


@dataclass(frozen=True)
class StorageFinding:
    """Finding about one property."""

    property: str
    level: FindingLevel
    found: str
    needed: str
    consequence: str
    cure: str

    def line(self, accepted: Mapping[str, str]) -> str:
        """Return the row of the table."""
        found = f"{self.property}: found {self.found}"
        if self.property in accepted:
            return f"accepted {found}; needed {self.needed}. {accepted[self.property]}"
        if self.level is FindingLevel.NOTED:
            return f"noted    {found}. {self.consequence}"
        return f"{self.level:<8} {found}; needed {self.needed}. {self.consequence} {self.cure}"


@dataclass(frozen=True)
class StorageReport:
    """Findings of one volume."""

    filesystem: str
    findings: tuple[StorageFinding, ...]

    def refused(self, accepted: Mapping[str, str]) -> list[StorageFinding]:
        """Return the findings that make a volume unusable and that no user has accepted."""
        return [
            finding
            for finding in self.findings
            if finding.level is FindingLevel.REFUSED and finding.property not in ACCEPTABLE & accepted.keys()
        ]

    def lines(self, accepted: Mapping[str, str]) -> list[str]:
        """Return the table: a headline, then the problems, the worst first."""
        good = [finding for finding in self.findings if finding.level is FindingLevel.OK]
        counts = f"{len(good)} of {len(self.findings)} properties as needed"
        speeds = [finding.found for finding in good if finding.property in {"flush_latency", "file_creation"}]
        others = [finding.line(accepted) for level in _LEVELS for finding in self.findings if finding.level is level]
        return ["; ".join([f"{self.filesystem}: {counts}", *speeds]), *(f"  {line}" for line in others)]

    def as_json(self, accepted: Mapping[str, str], **more: object) -> str:
        """Return everything as one line."""
        rows = [{**asdict(finding), "accepted": accepted.get(finding.property)} for finding in self.findings]
        return json.dumps({"storage": {"version": VERSION, "filesystem": self.filesystem, **more, "findings": rows}})


def read_report(text: str) -> StorageReport | None:
    """Return the findings of a record; None if it is damaged, or has another version of the checks."""
    try:
        storage: dict[str, Any] = json.loads(text)["storage"]
        rows: Sequence[dict[str, Any]] = storage["findings"]
        if storage["version"] != VERSION:
            return None
        kept = [{key: row[key] for key in StorageFinding.__match_args__} for row in rows]
        findings = tuple(StorageFinding(**{**row, "level": FindingLevel(row["level"])}) for row in kept)
        return StorageReport(storage["filesystem"], findings)
    except (ValueError, KeyError, TypeError):
        return None
