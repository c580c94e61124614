"""Folders of a check on the jail's volume: outputs of its jobs, and reports that only root can write.

Jobs run as a user of their own, and write to `output`. What counts as a result of a node is in `reports`, and neither
that user nor any other can write there.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

LARGEST_OUTPUT_BYTES = 4 * 1024**2
KEPT = 50
"""Number of files that are kept of every kind: reports of runs, and outputs of jobs."""

FORMAT = 1


class AnotherRunError(Exception):
    """Another run of the same check holds its lock."""


class Reports:
    """The folders of one check."""

    def __init__(self, folder: str, check: str) -> None:
        self.outputs = Path(folder) / "output" / check
        self._reports = Path(folder) / "reports" / check

    def create(self, gid: int) -> None:
        """Make the folders. Jobs write to theirs through its group; root, its owner, removes old files."""
        self._reports.mkdir(parents=True, exist_ok=True)
        self.outputs.mkdir(parents=True, exist_ok=True)
        for folder in (self._reports.parent.parent, self._reports.parent, self._reports, self.outputs.parent):
            folder.chmod(0o755)
        os.chown(self.outputs, 0, gid)
        self.outputs.chmod(0o775)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the check's lock.

        Raises:
            AnotherRunError: Another run holds it.
        """
        # root's alone: a user who may read a file may lock it.
        descriptor = os.open(self._reports / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "w") as lock:
            os.fchmod(descriptor, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AnotherRunError("another run of the check is at work") from None
            yield

    def output(self, job_id: int) -> str:
        """Return the output of a job that has ended; empty if it wrote none."""
        # A user's link would have root read another file.
        with suppress(OSError):
            descriptor = os.open(self.outputs / f"{job_id}.out", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                return file.read(LARGEST_OUTPUT_BYTES).decode(errors="replace")
        return ""

    def passed(self) -> dict[str, float]:
        """Return the time of each node's last pass, in seconds since 1970."""
        return {name: node["time"] for name, node in self._last().items() if node["passed"]}

    def write(self, nodes: Mapping[str, Mapping[str, Any]], events: list[dict[str, Any]]) -> None:
        """Keep the results of a run: the last one of every node, and the run itself."""
        now = time.time()
        _replace(self._reports / "last.json", {"format": FORMAT, "nodes": {**self._last(), **nodes}})
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        _replace(self._reports / f"run-{stamp}.json", {"format": FORMAT, "nodes": dict(nodes), "events": events})
        for folder, pattern in ((self._reports, "run-*.json"), (self.outputs, "*.out")):
            files = sorted(folder.glob(pattern), key=lambda path: path.lstat().st_mtime)
            for old in files[:-KEPT]:
                old.unlink(missing_ok=True)

    def _last(self) -> dict[str, Any]:
        try:
            found = json.loads((self._reports / "last.json").read_text())["nodes"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}  # every node is due
        return found if isinstance(found, dict) else {}


def _replace(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file atomically."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(json.dumps(content, indent=1) + "\n")
    beside.chmod(0o644)
    beside.replace(path)
