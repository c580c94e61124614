"""A part of `make soak`, run by pytest and recorded if it passes."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from soperator_pulumi.wording import counted
from tools import paths
from tools.console import say
from tools.soak import passes
from tools.soak.parts import WORKERS, Lane, Piece, SoakPart
from tools.soak.passes import Pass, Revision


def run(part: SoakPart) -> bool:
    """Run a part with progress, and return True if all of its tests passed. A pass is recorded.

    Raises:
        UserError: The tree is not a Git checkout.
    """
    before = passes.revision()
    began = time.monotonic()
    say(
        f"==> Part {part.name} at {before}: {part.lane.name}, {counted(len(part.files), 'file')}, "
        f"about {minutes(part.seconds)} on {WORKERS} cores"
    )
    measured = _measured(part)
    seconds = round(time.monotonic() - began)
    if measured is None:
        say(f"Part {part.name} failed after {minutes(seconds)}. To rerun it: make soak PART={part.name}")
        return False
    after = passes.revision()
    revision = Revision(before.commit, before.changed or after != before)
    ended = datetime.now(UTC).isoformat(timespec="seconds")
    passes.append(Pass(part.name, part.lane.name, revision, ended, seconds, measured))
    say(f"Part {part.name} passed at {revision} in {minutes(seconds)}.")
    if revision.changed:
        say("A pass with uncommitted changes counts for no commit. Commit them, and rerun the part.")
    return True


def minutes(seconds: float) -> str:
    """Return seconds as whole minutes, and at least one."""
    return counted(max(1, round(seconds / 60)), "minute")


def pytest_arguments(lane: Lane, pieces: Sequence[Piece], *, alone: bool = False) -> list[str]:
    """Return the arguments of pytest for pieces of a lane, which run alone or in parallel, as in `make test`."""
    shares = [f"--share={piece.file}={piece.share}/{piece.shares}" for piece in pieces if piece.shares > 1]
    files = dict.fromkeys(piece.file for piece in pieces)
    workers = "auto" if lane.slurm is None else str(WORKERS)
    together = ["-n", workers, "--dist", "loadfile", "--no-loadscope-reorder"]
    how = ["-n", "0"] if alone else together
    return ["-q", "--maxfail", "30", "-p", "tools.soak.pytest_plugin", *how, *shares, *files]


def environment(part: SoakPart) -> dict[str, str]:
    """Return the variables that tests of this part read."""
    return {"SOAK": "1"} | ({"SLURM_VERSION": part.lane.slurm} if part.lane.slurm else {})


def _measured(part: SoakPart) -> dict[str, float] | None:
    """Run the tests of a part, and return the seconds of its pieces; None after a failure."""
    measured: dict[str, float] = {}
    if part.lane.slurm and _ended([sys.executable, "-m", "tests.cluster.fetch"], environment(part)):
        return None
    all_passed = True
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        for pieces, alone in ((part.shared, False), (part.alone, True)):
            if not pieces:
                continue
            times = Path(folder) / f"{alone}.json"
            command = [sys.executable, "-m", "pytest", *pytest_arguments(part.lane, pieces, alone=alone)]
            all_passed &= _ended(command, {**environment(part), "TIME_SPENT": str(times)}) == 0
            if times.exists():
                measured |= passes.by_piece(pieces, json.loads(times.read_text()))
    return measured if all_passed else None


def _ended(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a command to its end and return its exit code. After Ctrl-C, which it also gets, it has time to clean up."""
    with subprocess.Popen(command, cwd=paths.ROOT, env={**os.environ, **variables}) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise
