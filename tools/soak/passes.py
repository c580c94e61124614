"""Record of passed parts, outside the tree: one line of JSON per pass, written when its tests have ended.

A killed part leaves no line, and a line that a crash has cut off does not count.
"""

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tools import paths
from tools.console import UserError
from tools.soak.parts import Piece


@dataclass(frozen=True)
class Revision:
    """State of the source tree."""

    commit: str
    changed: bool
    """True if there are uncommitted changes, including untracked files."""

    def __str__(self) -> str:
        """Return the revision as a report shows it: `1a2b3c4d5e`, `1a2b3c4d5e+changes`."""
        return self.commit[:10] + ("+changes" if self.changed else "")


@dataclass(frozen=True)
class Pass:
    """A part whose tests have all passed."""

    part: str
    lane: str
    revision: Revision
    ended: str
    """Time in UTC, in ISO 8601."""
    seconds: int
    measured: Mapping[str, float]
    """Seconds by the label of a piece."""


def file() -> Path:
    """Return the path of the record. A user's checkouts share it, as a commit is the same in all of them."""
    return paths.state_dir() / "soak" / "passes.jsonl"


def append(passed: Pass) -> None:
    """Append a pass to the record, in one write."""
    file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with file().open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(passed)) + "\n")


def recorded() -> list[Pass]:
    """Return all passes, the newest last."""
    found = []
    for line in file().read_text().splitlines() if file().exists() else []:
        try:
            fields = json.loads(line)
        except json.JSONDecodeError:
            continue
        found.append(Pass(**{**fields, "revision": Revision(**fields["revision"])}))
    return found


def by_piece(pieces: Iterable[Piece], by_file: Mapping[str, float]) -> dict[str, float]:
    """Return seconds by the label of a piece; a run's seconds for a file are divided equally among its shares."""
    ran: dict[str, list[str]] = {}
    for piece in pieces:
        ran.setdefault(piece.file, []).append(piece.label)
    return {label: by_file[file] / len(labels) for file, labels in ran.items() if file in by_file for label in labels}


def revision() -> Revision:
    """Return the state of this tree.

    Raises:
        UserError: The tree is not a Git checkout, so a pass would have no commit.

    """
    return Revision(_git("rev-parse", "HEAD").strip(), bool(_git("status", "--porcelain")))


def commits_since(commit: str) -> int | None:
    """Return the number of this checkout's commits that `commit` lacks; None if the checkout does not have it."""
    try:
        return int(_git("rev-list", "--count", f"{commit}..HEAD"))
    except UserError:
        return None


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(paths.ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UserError(
            f"{paths.ROOT}: `git {' '.join(arguments)}` failed: {done.stderr.strip()}. A pass is recorded with its "
            "commit: run `make soak` in a checkout of the repository."
        )
    return done.stdout
