"""Rounds in the background: a round asks Slurm three times, however many scrapes there are."""

import io
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from slurm_exporter import event_posts, job_rows, node_rows, scheduler_samples
from slurm_exporter.background_reading import BackgroundReading
from slurm_exporter.job_samples import of_jobs
from slurm_exporter.long_reports import of_present_nodes
from slurm_exporter.metric_table import METRICS
from slurm_exporter.node_conditions import NodeConditions
from slurm_exporter.node_samples import of_nodes
from slurm_exporter.samples import Samples, Unread

CALL_SECONDS = 25
"""Time for a call of Slurm: slurmctld answers within its MessageTimeout, or not at all."""

SOURCES: dict[str, tuple[Sequence[str], Callable[[bytes, Unread], Samples]]] = {
    "nodes": (
        node_rows.COMMAND,
        lambda output, unread: of_nodes(node_rows.parse(output.decode(errors="replace"), unread)),
    ),
    "jobs": (job_rows.COMMAND, lambda output, unread: of_jobs(job_rows.parse(io.BytesIO(output), unread))),
    "scheduler": (scheduler_samples.COMMAND, lambda output, unread: scheduler_samples.parse(output.decode(), unread)),
}
"""Programs, and the metrics in their output."""

_FAILURES = (
    *(OSError, subprocess.SubprocessError),
    *(ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError, MemoryError),
)
"""Failures of a call or of parsing its answer. They cost the metrics of one source, and do not end the exporter."""

_ENVIRONMENT = {"SLURM_TIME_FORMAT": "%s", "TZ": "UTC", "LC_ALL": "C.UTF-8"}


@dataclass
class Source:
    """A program, with the last answer."""

    name: str
    samples: Samples = field(default_factory=dict)
    """Metrics of the last round. Empty after a failure: old values would pass for present ones."""
    unread: Unread = field(default_factory=Unread)
    """Values of the last answer that have an unknown form."""
    last_success: float = 0
    seconds: float = 0
    errors: int = 0

    def ask(self, run: Callable[[Sequence[str]], bytes], report: Callable[[str], None]) -> None:
        """Ask once. A failure or a field of an unknown form is reported only when it first appears."""
        command, parse = SOURCES[self.name]
        began = time.monotonic()
        was_well, before = bool(self.samples) or not self.errors, self.unread.counts
        self.samples, self.unread = {}, Unread()
        try:
            self.samples = parse(run(command), self.unread)
            self.last_success = time.time()
        except _FAILURES as error:
            self.errors += 1
            if was_well:
                report(f"{self.name}: {_words(error)}")
        else:
            if new := [name for name in self.unread.counts if name not in before]:
                examples = ", ".join(f"{name} {self.unread.examples[name]!r}" for name in new)
                report(f"{self.name}: values of an unknown form, which metrics leave out: {examples}")
        self.seconds = time.monotonic() - began


@dataclass(eq=False)
class Collector:
    """All sources, as Prometheus' client library reads them."""

    sources: tuple[Source, ...] = field(default_factory=lambda: tuple(map(Source, SOURCES)))
    events: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(event_posts.OUTCOMES, 0))
    """Events of Kubernetes by their outcome."""
    conditions: NodeConditions | None = None
    """Conditions of Kubernetes nodes; None if the cluster writes none."""
    reports: BackgroundReading | None = None
    """Results of long checks; None if the cluster has none."""
    images: BackgroundReading | None = None
    """Shared images; None if the cluster has none."""
    containers: BackgroundReading | None = None
    """Containers by node; None if jobs can have none."""
    certificate: BackgroundReading | None = None
    """End of the certificate of the REST API; None if it has none."""

    def round(self, run: Callable[[Sequence[str]], bytes], report: Callable[[str], None] = print) -> None:
        """Ask Slurm for everything once."""
        for source in self.sources:
            source.ask(run, report)

    def samples_of(self, name: str) -> Samples:
        """Return the metrics of one source in the last round; none if it did not answer."""
        return next(source.samples for source in self.sources if source.name == name)

    def nodes(self) -> set[str]:
        """Return the names of the nodes in the last round."""
        return {labels[0] for labels, _ in self.samples_of("nodes").get("slurm_node_info", ())}

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the last round, one family at a time."""
        samples = self._own()
        for source in self.sources:
            samples |= source.samples
        for reading in (self.reports, self.containers):
            if reading is not None:
                samples |= of_present_nodes(reading.samples, self.nodes())
        for reading in (self.images, self.certificate):
            if reading is not None:
                samples |= reading.samples
        for name, values in samples.items():
            yield _family(name, values)

    def _own(self) -> Samples:
        return {
            "slurm_up": [((), float(any(source.samples for source in self.sources)))],
            "slurm_exporter_last_success_time_seconds": [
                ((source.name,), source.last_success) for source in self.sources if source.last_success
            ],
            "slurm_exporter_call_seconds": [((source.name,), source.seconds) for source in self.sources],
            "slurm_exporter_errors_total": [((source.name,), source.errors) for source in self.sources],
            "slurm_exporter_unread_values": [
                ((source.name, name), count) for source in self.sources for name, count in source.unread.counts.items()
            ],
            "slurm_exporter_events_total": [((outcome,), count) for outcome, count in self.events.items()],
            **self._of_conditions(),
        }

    def _of_conditions(self) -> Samples:
        if self.conditions is None:
            return {}
        return {
            "slurm_exporter_node_conditions": [((), self.conditions.count)],
            "slurm_exporter_node_condition_errors_total": [((), self.conditions.errors)],
        }


def _family(name: str, values: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    metric = METRICS[name]
    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    family = kind(name.removesuffix("_total"), metric.help, labels=metric.labels)
    for labels, value in values:
        family.add_metric(labels, value)
    return family


def run_slurm(command: Sequence[str]) -> bytes:
    """Run a program of Slurm and return what it prints.

    Raises:
        subprocess.SubprocessError: It failed, or took too long.
    """
    done = subprocess.run(
        command, env={**os.environ, **_ENVIRONMENT}, capture_output=True, timeout=CALL_SECONDS, check=True
    )
    return done.stdout


def _words(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = bytes(error.stderr).decode(errors="replace").split("\n")
        return f"{error.cmd[0]} failed: {lines[0]}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"{error.cmd[0]} did not answer in {CALL_SECONDS} s"
    return f"{type(error).__name__}: {error}"
