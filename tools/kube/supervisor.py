"""Servers that outlive this program: started, watched until healthy, and stopped.

A server is known by its process id and the start time of that process, so that a later process with the same id is
never mistaken for it. A fingerprint records command, environment and files that the server was started with: a server
whose fingerprint has changed is restarted, all others are left alone.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from tools.console import UserError
from tools.kube import host_files

_LAST_LINES = 15
_POLL_SECONDS = 0.1
_LOG_KEPT_BYTES = 50_000_000

# The shell enters the cgroup, starts the server in the background and prints its process id. The server is then init's
# child alone: it outlives us, and leaves no zombie in a long-lived program.
_LAUNCH = 'echo $$ > "$1" || exit 1; log="$2"; shift 2; exec 3>&1 >> "$log" 2>&1 < /dev/null; "$@" 3>&- & echo $! >&3'


@dataclass(frozen=True)
class Server:
    """A server: its start and its health check."""

    name: str
    command: Sequence[str | Path]
    well: Callable[[], str | None]
    """Function that returns None if the server is healthy, otherwise the problem."""

    reads: Sequence[Path] = ()
    """Files that are only read at the start: a change needs a restart."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """Whole environment; nothing is inherited."""

    start_seconds: float = 180
    """Time limit to become healthy, which the API server takes 60 s for on a busy machine of the lab."""

    stop_seconds: float = 5
    """Time limit to end after SIGTERM, before SIGKILL, which every server survives."""

    def fingerprint(self) -> str:
        """Return a hash of everything that decides how the server runs."""
        digest = sha256(json.dumps([[str(word) for word in self.command], sorted(self.environment.items())]).encode())
        for file in self.reads:
            digest.update(file.read_bytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Process:
    """A process, distinguished from a later one with the same id."""

    pid: int
    started_ticks: int
    """Clock ticks from boot to start: field 22 of /proc/<pid>/stat."""

    boot: str

    @classmethod
    def of(cls, pid: int) -> "Process | None":
        """Return the live process with this id; None if there is none, or if it is a zombie."""
        try:
            # The second field is the command's name, in parentheses, with anything in it.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            return None
        return None if fields[0] in {"Z", "X"} else cls(pid, int(fields[19]), boot)

    def alive(self) -> bool:
        """Return True if this very process still runs."""
        return Process.of(self.pid) == self


class Supervisor:
    """Starts, watches and stops servers. Records are below `run`, logs below `logs`."""

    def __init__(self, run: Path, logs: Path, cgroup_procs: Path) -> None:
        self._run = run
        self._logs = logs
        self._cgroup_procs = cgroup_procs

    def process(self, name: str) -> Process | None:
        """Return a server's process; None if it does not run."""
        record = self._read(name)
        return record[0] if record and record[0].alive() else None

    def current(self, server: Server) -> bool:
        """Return True if the server runs with its present fingerprint."""
        record = self._read(server.name)
        return bool(record and record[0].alive() and record[1] == server.fingerprint())

    def ensure(self, server: Server) -> bool:
        """Start the server unless it is current; return True if it was started."""
        if self.current(server):
            return False
        self.stop(server)
        self._logs.mkdir(parents=True, exist_ok=True, mode=0o700)
        log = self.log(server.name)
        if log.exists() and log.stat().st_size > _LOG_KEPT_BYTES:
            log.replace(log.with_suffix(".log.old"))
        with log.open("a") as file:
            file.write(f"--- {time.strftime('%Y-%m-%d %H:%M:%S')} starting {server.name}\n")
        launched = subprocess.run(
            ["/bin/sh", "-c", _LAUNCH, "sh", self._cgroup_procs, log, *map(str, server.command)],
            env=server.environment,
            cwd="/",
            start_new_session=True,
            capture_output=True,
            text=True,
            check=False,
        )
        if launched.returncode or not launched.stdout.strip():
            raise UserError(f"{server.name} did not start: {launched.stderr.strip()}\n{self.last_lines(server.name)}")
        process = Process.of(int(launched.stdout))
        if process is None:
            raise self._ended(server)
        record = {"pid": process.pid, "started_ticks": process.started_ticks, "boot": process.boot}
        host_files.write(self._record(server.name), json.dumps({**record, "fingerprint": server.fingerprint()}) + "\n")
        return True

    def wait(self, server: Server) -> None:
        """Wait until the server is healthy. If it ends or takes too long, fail with the last lines of its log."""
        deadline = time.monotonic() + server.start_seconds
        while (problem := server.well()) is not None:
            if self.process(server.name) is None:
                raise self._ended(server)
            if time.monotonic() > deadline:
                raise UserError(
                    f"{server.name} was not well within {server.start_seconds:g} s ({problem}). "
                    f"{self.last_lines(server.name)}"
                )
            time.sleep(_POLL_SECONDS)

    def stop(self, server: Server) -> bool:
        """Stop the server, by force if it does not end in time; return True if it ran."""
        running = {*self._unrecorded(server)}
        if (process := self.process(server.name)) is not None:
            running.add(process)
        for process in running:
            _end(process, server.stop_seconds)
        self._record(server.name).unlink(missing_ok=True)
        return bool(running)

    def kill(self, name: str) -> None:
        """Kill a server at once, and return when it has ended."""
        if (process := self.process(name)) is not None:
            _end(process, 0)

    def _unrecorded(self, server: Server) -> Iterator[Process]:
        """Yield processes of the server that a killed start has left without a record."""
        try:
            pids = [int(line) for line in self._cgroup_procs.read_text().split()]
        except FileNotFoundError:  # no server was ever started
            return
        for pid in pids:
            with suppress(OSError):
                program = Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].decode()
                process = Process.of(pid)
                if process and program == str(server.command[0]):
                    yield process

    def log(self, name: str) -> Path:
        """Return a server's log."""
        return self._logs / f"{name}.log"

    def last_lines(self, name: str) -> str:
        """Return the last lines of a server's log, with its path."""
        log = self.log(name)
        lines = log.read_text(errors="replace").splitlines()[-_LAST_LINES:] if log.exists() else []
        return "\n".join([f"The last lines of {log}:", *(f"    {line}" for line in lines)])

    def _ended(self, server: Server) -> UserError:
        return UserError(f"{server.name} ended. {self.last_lines(server.name)}")

    def _record(self, name: str) -> Path:
        return self._run / f"{name}.json"

    def _read(self, name: str) -> tuple[Process, str] | None:
        try:
            record = json.loads(self._record(name).read_text())
            return Process(record["pid"], record["started_ticks"], record["boot"]), record["fingerprint"]
        except (OSError, ValueError, KeyError):  # missing, or cut short by a crash of the machine
            return None


def _end(process: Process, stop_seconds: float) -> None:
    if stop_seconds:
        _signal(process, signal.SIGTERM)
    deadline = time.monotonic() + stop_seconds
    while process.alive() and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS / 2)
    _signal(process, signal.SIGKILL)
    while process.alive():
        time.sleep(_POLL_SECONDS / 2)


def _signal(process: Process, number: signal.Signals) -> None:
    """Signal a process through a descriptor, which cannot refer to a later process with the same id."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if process.alive():
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)
    finally:
        os.close(descriptor)
