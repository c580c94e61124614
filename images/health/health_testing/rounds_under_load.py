"""Rounds of all health checks in a row, while this machine is under load.

A program of its own: `python3 rounds_under_load.py ROUNDS RUN_FOLDER MEMORY_MIB HEALTH_CHECK...` prints its counts.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def burn() -> None:
    """Keep a CPU busy."""
    while True:
        sum(range(100_000))


def write(file: str) -> None:
    """Write 64 MiB to the disk, again and again, or less if space is short."""
    block = os.urandom(1024**2)
    while True:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with suppress(OSError):
            for _ in range(64):
                os.write(descriptor, block)
            os.fsync(descriptor)
        os.close(descriptor)


def touch(mib: int) -> None:
    """Hold memory, and touch every page of it."""
    held = bytearray(mib * 1024**2)
    while True:
        for page in range(0, len(held), 4096):
            held[page] = (held[page] + 1) % 256


def start(work: Callable[..., None], *arguments: object) -> int:
    """Start a process of the load, which ends with this process's group."""
    child = os.fork()
    if not child:
        try:
            work(*arguments)
        finally:
            os._exit(1)  # never back into the rounds
    return child


def main(rounds: int, folder: Path, memory_mib: int, command: list[str]) -> None:
    """Start the load, run the rounds, and print the counts."""
    cpus = os.cpu_count() or 1
    load = [start(burn) for _ in range(2 * cpus)]
    file = Path(os.environ.get("LOAD_FILE") or folder / "load")
    load += [start(write, str(file)), start(touch, memory_mib)]
    seconds, failed, statuses = [], Counter[str](), Counter[int]()
    try:
        for _ in range(rounds):
            memory = folder / "health-memory.json"
            kept = json.loads(memory.read_text()) if memory.exists() else {}
            kept.pop("ran", None)  # every check is due
            memory.write_text(json.dumps(kept))
            began = time.monotonic()
            statuses[subprocess.run(command, capture_output=True, check=False).returncode] += 1
            seconds.append(time.monotonic() - began)
            last = json.loads((folder / "health.json").read_text())
            failed.update(name for name, check in last["checks"].items() if check["state"] == "failed")
        used = resource.getrusage(resource.RUSAGE_CHILDREN)  # the rounds: the load has not ended yet
    finally:
        for child in load:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        file.unlink(missing_ok=True)
    seconds.sort()
    found = {
        "rounds": len(seconds),
        "median_seconds": round(seconds[len(seconds) // 2], 3),
        "worst_seconds": round(seconds[-1], 3),
        "largest_mib": used.ru_maxrss // 1024,
        "load_average": os.getloadavg()[0],
        "checks": len(last["checks"]),
        "failed": dict(failed),
        "statuses": {str(status): count for status, count in statuses.items()},
        "held": last["held"],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
