"""Jobs of a run: submitted together, awaited within bounds, and judged by the check's limit."""

import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from long_checks.job_reading import Reading
from long_checks.long_settings import LongSettings
from long_checks.node_choice import node_set_of, partition_of
from long_checks.programs import PORTS, cause, has_begun, missing_program, read, script
from long_checks.reports import Reports
from long_checks.slurm_calls import JobRequest, SlurmCallError, SlurmCalls, SlurmNode

_POLL_SECONDS = 2.0
_OUTPUT_SECONDS = 30.0
"""Time until this pod sees a file that another node wrote: NFS clients refresh their cache that often."""

_MARGIN_SECONDS = 90.0
"""Time beyond the time limit within which slurmctld has ended a job (KillWait and its own cycle)."""

_MARGIN_BACK = 1.05
"""Multiple of the limit that a drained node must reach to return, as a node at the limit would drain repeatedly."""

_WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "SUSPENDED"}
_RUNNING = {"RUNNING", "COMPLETING", "STAGE_OUT"}


class RunClock(NamedTuple):
    """Clock of a run. Tests use their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class Measured(NamedTuple):
    """Result of one job."""

    nodes: tuple[str, ...]
    passed: bool | None
    """None: the result says nothing about the nodes."""
    text: str
    """Value and limit as a drain's reason shows them, or why there is no result."""
    value: float | None = None
    job_id: int = 0
    no_program: bool = False
    """The program is missing in the jail or the image. Until it is installed, no node has a result."""
    crashed: bool = False
    """The program failed by itself, without a result."""


def judge(reading: Reading, limit: float | None, unit: str) -> tuple[bool, str]:
    """Return the result of a reading, with the text for a drain's reason."""
    if reading.problem:
        return False, reading.problem
    if reading.value is None:
        return True, f"passed; finding: {reading.finding}" if reading.finding else "passed"
    how = " without NVLS" if reading.nvls is False else ""
    allowed = "no limit known" if limit is None else f"allowed {limit:.10g} {unit}"
    return limit is None or reading.value >= limit, f"{reading.value:.4g} {unit}{how}, {allowed}"


def address_of(node: SlurmNode) -> str:
    """Return the IP address of a node, as the program of a job resolves no names.

    Raises:
        OSError: The name server does not know it.
    """
    found = socket.getaddrinfo(node.address or node.name, None, type=socket.SOCK_STREAM)
    return str(found[0][4][0])


class Measuring:
    """Measures groups of nodes by jobs.

    Args:
        settings: Settings of the check.
        slurm: slurmctld.
        reports: Folders of the check.
        clock: Time.
        look_up: Address of a node.
    """

    def __init__(
        self,
        settings: LongSettings,
        slurm: SlurmCalls,
        reports: Reports,
        clock: RunClock | None = None,
        look_up: Callable[[SlurmNode], str] = address_of,
    ) -> None:
        self.clock = clock or RunClock()
        self._settings, self._slurm, self._reports, self._look_up = settings, slurm, reports, look_up
        self.running: set[int] = set()
        """Jobs that have not ended, so that an interrupted run can cancel them."""

    def measure(self, groups: Sequence[tuple[SlurmNode, ...]], reservations: Sequence[str] = ()) -> list[Measured]:
        """Return the result of each group, all measured at the same time.

        Args:
            groups: Nodes of each job.
            reservations: Reservation of each job, of drained nodes that are tested. Default: none is.
        """
        margin = _MARGIN_BACK if reservations else 1.0
        names = reservations or [""] * len(groups)
        started = [self._start(group, name) for group, name in zip(groups, names, strict=True)]
        return [
            value if isinstance(value, Measured) else self._finish(group, value, margin)
            for group, value in zip(groups, started, strict=True)
        ]

    def cancel(self) -> None:
        """Cancel the jobs that have not ended."""
        self._slurm.cancel(sorted(self.running))
        self.running.clear()

    def _start(self, group: tuple[SlurmNode, ...], reservation: str) -> "int | Measured":
        settings = self._settings
        names = tuple(node.name for node in group)
        try:
            addresses = {node.name: self._look_up(node) for node in group}
            job = self._slurm.submit(self._request(group, addresses, reservation))
        except (SlurmCallError, OSError) as error:
            return Measured(names, None, f"{settings.check} has not started: {error}")
        self.running.add(job)
        return job

    def _request(self, group: tuple[SlurmNode, ...], addresses: Mapping[str, str], reservation: str) -> JobRequest:
        settings, outputs = self._settings, self._reports.outputs
        limits = settings.node_sets[node_set_of(group[0], settings) or ""]
        of_job = {"gpus": limits.gpus, "port": secrets.choice(PORTS), "time_limit": settings.time_limit_seconds}
        return JobRequest(
            name=job_name(settings.check),
            nodes=tuple(addresses),
            script=script(settings.program, addresses, {**settings.arguments, **of_job}, str(outputs), settings.image),
            output=f"{outputs}/%j.out",
            folder=str(outputs),
            uid=settings.uid,
            time_limit_seconds=settings.time_limit_seconds,
            deadline_seconds=settings.start_seconds,
            nice=settings.nice,
            partition=partition_of(group[0], settings) or "",
            qos=settings.qos,
            reservation=reservation or settings.reservation,
            gpus=limits.gpus,
        )

    def _finish(self, group: tuple[SlurmNode, ...], job: int, margin: float) -> Measured:
        settings = self._settings
        names = tuple(node.name for node in group)
        state = self._wait(job)
        self.running.discard(job)
        reading = self._reading(job) if state in {"COMPLETED", "FAILED"} else None
        began = not settings.image or has_begun(self._reports.output(job))
        if state == "TIMEOUT" and began:
            text = f"no end in {settings.time_limit_seconds:g} s, allowed an end"
            return Measured(names, passed=False, text=text, job_id=job)
        if reading is None:
            missing = missing_program(self._reports.output(job))
            if missing:
                place = f"{settings.image}: use another image" if settings.image else "the jail: install it"
                text = f"{missing} is not in {place} (docs/long-checks.md)"
                return Measured(names, None, text, job_id=job, no_program=True)
            text = f"job {job} is {state or 'unknown'}: {cause(self._reports.output(job))}"
            return Measured(names, None, text, job_id=job, crashed=began and state == "FAILED")
        limits = settings.node_sets[node_set_of(group[0], settings) or ""]
        alone = limits.alone if reading.nvls else limits.plain
        limit = alone if len(group) == 1 else limits.together
        passed, text = judge(reading, None if limit is None else limit * margin, settings.unit)
        return Measured(names, passed, text, reading.value, job)

    def _wait(self, job: int) -> str:
        """Return the last state of a job that has ended, or was cancelled because it did not start or end in time."""
        settings, now = self._settings, self.clock.now
        latest_start = now() + settings.start_seconds
        latest_end = latest_start + settings.time_limit_seconds + _MARGIN_SECONDS
        while True:
            try:
                state = self._slurm.job_state(job)
            except SlurmCallError:
                state = "RUNNING"  # slurmctld restarts; the job has its bounds all the same
            waits = state in _WAITING and now() < latest_start
            if not waits and not (state in _RUNNING and now() < latest_end):
                break
            self.clock.sleep(_POLL_SECONDS)
        if state in _WAITING | _RUNNING:
            self._slurm.cancel([job])
            return "NOT STARTED" if state in _WAITING else "CANCELLED"
        return state

    def _reading(self, job: int) -> Reading | None:
        end = self.clock.now() + _OUTPUT_SECONDS
        while True:
            output = self._reports.output(job)
            reading = read(self._settings.program, output)
            if reading is not None or self.clock.now() >= end or output:
                return reading
            self.clock.sleep(_POLL_SECONDS)


def job_name(check: str) -> str:
    """Return the name of a check's jobs."""
    return f"health-{check}"
