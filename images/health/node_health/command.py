"""The program: a round, or a table of all checks for a person."""

import fcntl
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

from node_health import check_settings, noted_drains
from node_health.health_round import Round, Slurm, load, save
from node_health.kernel_files import read
from node_health.node_record import NoAnswerError
from node_health.state_machine import may_show
from slurm_wire.drain_reasons import findings_text

SETTINGS = "/etc/soperator/health"
"""Folder with the settings of each node set: the ConfigMap."""

RUN = "/run/slurm"
"""Folder of the result, `health.json`, and of the state that rounds keep."""


STOPPED = findings_text(["round"])
"""Finding of a node whose rounds do not end, or have no settings."""

_STUCK_SECONDS = 300
"""Age at which a round counts as stuck: slurmd kills a round after 60 s, so only the kernel can hold one longer."""

_ASKED_SECONDS = 5


def main(arguments: list[str]) -> int:
    """Run the command and return its exit status: 1 if slurmd has something to log."""
    if arguments not in ([], ["explain"]):
        print("usage: health-check [explain]", file=sys.stderr)
        return 64
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    return explain(node) if arguments else check(node)


def check(node: str, settings_folder: str = SETTINGS, run_folder: str = RUN, slurm: Slurm | None = None) -> int:
    """Run one round. If another round still runs, only report one that takes too long."""
    calls, marker = slurm or Slurm(), f"{run_folder}/health.stopped"
    try:
        return _check(node, settings_folder, run_folder, calls, marker)
    except OSError as error:
        return _stopped(node, f"{error.filename or run_folder}: {error.strerror}", calls, marker)


def _check(node: str, settings_folder: str, run_folder: str, calls: Slurm, marker: str) -> int:
    began = time.monotonic()
    with open(f"{run_folder}/health.lock", "a+") as lock:  # noqa: PTH123 - pathlib takes long to import
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            seconds = _age(lock)
            problem = f"a round has not ended for {seconds:.0f} s"
            return _stopped(node, problem, calls, marker) if seconds > _STUCK_SECONDS else 0
        _stamp(lock)
        memory = load(f"{run_folder}/health-memory.json")
        save(f"{run_folder}/health-memory.json", memory)  # on a full volume the round stops before it acts
        noted_drains.take_over(memory, run_folder)
        try:
            settings = check_settings.parse(_settings_text(node, settings_folder))
            memory.pop("unreadable", None)
            with suppress(FileNotFoundError):
                os.unlink(marker)  # noqa: PTH108 - pathlib takes long to import
                memory.pop("asked", None)  # slurmctld has the text
            this = Round(node, settings, memory, calls, now=time.time())
            events = this.run()
            save(f"{run_folder}/health.json", this.summary(time.monotonic() - began))
        except ValueError as error:
            events = _not_checked(str(error), memory)
            _stopped(node, str(error), calls, marker)
        save(f"{run_folder}/health-memory.json", memory)
    for event in events:
        print(json.dumps({"health": node, **event}))
    return 1 if events else 0


def _stamp(lock: IO[str]) -> None:
    """Write the start time of this round into the lock file."""
    lock.truncate(0)
    lock.write(f"{time.time():.0f}")
    lock.flush()


def _age(lock: IO[str]) -> float:
    """Return the age of the round that holds the lock, in seconds; 0 if it has not written its start time."""
    lock.seek(0)
    text = lock.read(32)
    return max(0.0, time.time() - float(text)) if text.isdigit() else 0.0


def _stopped(node: str, problem: str, slurm: Slurm, marker: str) -> int:
    """Show once in slurmctld that rounds have stopped, and report it. The next complete round removes it."""
    if os.path.exists(marker):  # noqa: PTH110 - pathlib takes long to import
        return 0
    try:
        found = slurm.ask(node, _ASKED_SECONDS)
        if may_show(found):
            slurm.show(node, STOPPED, _ASKED_SECONDS)
    except NoAnswerError:
        return 0  # the next one is a moment away
    # On a full volume a file without content still has room.
    with suppress(OSError), open(marker, "w") as file:  # noqa: PTH123 - as above
        file.write(problem)
    print(json.dumps({"health": node, "event": "stopped", "problem": problem}))
    return 1


def _not_checked(problem: str, memory: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an event for unreadable settings, once."""
    is_known = memory.get("unreadable") == problem
    memory["unreadable"] = problem
    return [] if is_known else [{"event": "not checked", "problem": problem}]


def _settings_text(node: str, folder: str) -> str:
    path = f"{folder}/{node.rpartition('-')[0]}.json"
    text = read(path)
    if not text:
        raise ValueError(f"{path} is missing: this pod is older than the node set's checks")
    return text


def explain(node: str, settings_folder: str = SETTINGS, run_folder: str = RUN) -> int:
    """Print the last reading of every check, its limit for this node and the limit's source, and the GPUs."""
    try:
        settings = check_settings.parse(_settings_text(node, settings_folder))
        last: dict[str, Any] = json.loads(read(f"{run_folder}/health.json") or "{}")
    except ValueError as error:
        print(f"{node}: {error}", file=sys.stderr)
        return 1
    table = [("CHECK", "STATE", "READING", "LIMIT", "ACTION", "UNDRAIN", "SOURCE OF THE LIMIT")]
    for name, item in settings.checks.items():
        seen = last.get("checks", {}).get(name, {})
        state, value = seen.get("state", "unknown"), seen.get("value", "")
        table.append((name, state, value, item.allowed, item.action, item.undrain, item.source))
    _print(table)
    if gpus := last.get("gpus"):
        columns = ("name", "address", "serial", "device", "product")
        print()
        rows = [tuple(gpu[column] for column in columns) for gpu in gpus]
        _print([("GPU", "PCI", "SERIAL", "DEVICE", "PRODUCT"), *rows])
    if held := last.get("held"):
        print(f"\n{node} is drained: {held['reason']}")
    return 0


def _print(table: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
