"""Where the time of a run of tests goes: seconds of wall and processor by module, fixture and wait, in a table.

TIME_SPENT=FILE writes the seconds of wall of all modules there, as JSON.
"""

import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic  # now: tests put other clocks into the module
from typing import Any, NamedTuple

import pytest

from tests import waiting

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_SHORTEST_SECONDS = 0.05
"""Processor seconds are not read for less: a look at all processes takes a tenth of it."""
_ROWS = 25
_PROGRAM = "tools/engine/local/child.py program"
"""Words of the process that runs a Pulumi program: the local engine starts one for each operation."""


@dataclass
class Spent:
    """Seconds that a part of the run took."""

    times: int = 0
    wall: float = 0
    own: float = 0
    """Of the processor, by the process of the tests and all that it started."""
    machine: float = 0
    """Of all processors, by whatever ran meanwhile: the pods and servers of the cluster, and tests at the same time."""

    def add(self, other: "Spent") -> None:
        """Count what another part took as well."""
        self.times += other.times
        self.wall += other.wall
        self.own += other.own
        self.machine += other.machine


@dataclass
class Ledger:
    """Times of one process that runs tests, by what they went to. Plain values: xdist sends it to its parent."""

    phases: defaultdict[tuple[str, str], Spent] = field(default_factory=lambda: defaultdict(Spent))
    """By module and phase: setup, call or teardown."""
    fixtures: defaultdict[tuple[str, str], Spent] = field(default_factory=lambda: defaultdict(Spent))
    """By module and name, without the fixtures that one stands on. It is part of the phase setup."""
    waits: defaultdict[str, Spent] = field(default_factory=lambda: defaultdict(Spent))
    """By module of the caller of `wait_until`; `times` counts looks."""
    counts: Counter[str] = field(default_factory=Counter)
    """Processes and Pulumi programs that the tests' own processes started."""

    def plain(self) -> list[Any]:
        """Return it as lists that xdist can send."""
        tables = (self.phases, self.fixtures, self.waits)
        rows = [[[key, vars(spent)] for key, spent in table.items()] for table in tables]
        return [*rows, dict(self.counts)]

    def add_plain(self, sent: list[Any]) -> None:
        """Count what another process sent."""
        tables: tuple[Any, ...] = (self.phases, self.fixtures, self.waits)
        for table, rows in zip(tables, sent, strict=False):
            for key, spent in rows:
                table[tuple(key) if isinstance(key, list | tuple) else key].add(Spent(**spent))
        self.counts.update(sent[3])


class _Moment(NamedTuple):
    wall: float
    own: float
    machine: float


class TimeSpent:
    """Plugin of pytest that measures, and prints the table in the process that reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._is_worker = hasattr(config, "workerinput")
        self._ledger = Ledger()
        self._last = _moment()
        self._began = self._last
        self._forks = _processes_of_the_machine()
        waiting.waited = self._waited
        sys.addaudithook(self._audit)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Measure the setup of a test."""
        yield from self._measured(self._ledger.phases[_module(item.nodeid), "setup"])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Measure the test itself."""
        yield from self._measured(self._ledger.phases[_module(item.nodeid), "call"])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Measure the teardown of a test, with those of its module and session where it is the last."""
        yield from self._measured(self._ledger.phases[_module(item.nodeid), "teardown"])

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, Any, Any]:
        """Measure a fixture, without those that it names."""
        yield from self._measured(self._ledger.fixtures[_module(request.node.nodeid), fixturedef.argname])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send the times to the process that reports."""
        if self._is_worker:
            session.config.workeroutput["time_spent"] = self._ledger.plain()  # type: ignore[attr-defined]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the times of a process that ran tests."""
        if sent := getattr(node, "workeroutput", {}).get("time_spent"):
            self._ledger.add_plain(sent)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table."""
        now = _moment()
        machine = now.machine - self._began.machine
        forks = _processes_of_the_machine() - self._forks
        terminalreporter.section("time spent")
        for line in table(self._ledger, now.wall - self._began.wall, machine, forks):
            terminalreporter.write_line(line)
        if file := os.environ.get("TIME_SPENT"):
            seconds = {module: round(spent.wall, 1) for module, spent in by_module(self._ledger).items()}
            Path(file).write_text(json.dumps(seconds, indent=1, sort_keys=True))

    def _measured(self, spent: Spent) -> Generator[None, Any, Any]:
        before = self._last = _moment(self._last)
        try:
            return (yield)
        finally:
            now = self._last = _moment(self._last)
            spent.add(Spent(1, now.wall - before.wall, max(0.0, now.own - before.own), now.machine - before.machine))

    def _waited(self, caller: str, seconds: float, looks: int) -> None:
        self._ledger.waits[Path(caller).name].add(Spent(looks, seconds))

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            words = arguments[1] if isinstance(arguments[1], list | tuple) else [arguments[1]]
            self._ledger.counts["processes"] += 1
            self._ledger.counts["Pulumi programs"] += _PROGRAM in " ".join(map(os.fsdecode, words))


def by_module(ledger: Ledger) -> dict[str, Spent]:
    """Return what each module took, by its path below the root of the tests."""
    modules: defaultdict[str, Spent] = defaultdict(Spent)
    for (module, _), spent in ledger.phases.items():
        modules[module].add(spent)
    return dict(modules)


def table(ledger: Ledger, wall: float, machine: float, forks: int) -> Iterator[str]:
    """Yield the lines of the report: the modules, fixtures and waits that took longest, and what the run took."""
    by_phase: defaultdict[str, Spent] = defaultdict(Spent)
    for (_, phase), spent in ledger.phases.items():
        by_phase[phase].add(spent)
    yield "seconds of wall, of the processor for the tests' own processes, and of all that ran on the machine meanwhile"
    yield from _rows("module", by_module(ledger), "phases")
    yield from _rows("phase", by_phase, "times")
    fixtures = {f"{name} in {module}" if module else name: spent for (module, name), spent in ledger.fixtures.items()}
    yield from _rows("fixture", fixtures, "times")
    yield from _rows("wait_until in", ledger.waits, "looks")
    tests = ledger.counts["processes"], ledger.counts["Pulumi programs"]
    yield f"processes started: {tests[0]} by tests, of them {tests[1]} Pulumi programs; {forks} on the machine"
    yield f"in all: {wall:.0f} s of wall, {machine:.0f} s of the machine's processors"


def _rows(title: str, spent: dict[str, Spent], times: str) -> Iterator[str]:
    longest = sorted(spent, key=lambda name: (-spent[name].wall, name))[:_ROWS]
    if longest:
        yield f"\n{'wall':>7} {'own':>7} {'machine':>8} {times:>7}  {title} ({len(spent)} in all)"
    for name in longest:
        part = spent[name]
        yield f"{part.wall:7.1f} {part.own:7.1f} {part.machine:8.1f} {part.times:7}  {name}"


def _module(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _moment(last: _Moment | None = None) -> _Moment:
    now = monotonic()
    if last and now - last.wall < _SHORTEST_SECONDS:
        return last._replace(wall=now)
    return _Moment(now, _seconds_of_descendants(), _seconds_of_the_machine())


def _seconds_of_the_machine() -> float:
    """Return what all processors worked since the machine started, idle time and that of other machines left out."""
    user, nice, system, _idle, _iowait, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq) / _TICKS_PER_SECOND


def _processes_of_the_machine() -> int:
    """Return how many processes and threads were started since the machine was."""
    lines = Path("/proc/stat").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("processes "))


def _seconds_of_descendants() -> float:
    """Return what this process, those that it started and theirs took, those among them that have ended."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - two thousand times, with hundreds of names
        if name.isdigit() and (words := _words_of_stat(name)):
            parents[int(name)] = int(words[1])
            ticks[int(name)] = sum(map(int, words[11:15]))
    own = {os.getpid()}
    for process in parents:
        line: list[int] = []
        above = process
        while above in parents and above not in own:
            line.append(above)
            above = parents[above]
        if above in own:
            own.update(line)
    return sum(ticks.get(process, 0) for process in own) / _TICKS_PER_SECOND


def _words_of_stat(pid: str) -> list[bytes]:
    """Return the words after the name in a process's `stat`, none if it has just ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123 - as above
            return file.read(1024).rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def register(config: pytest.Config) -> None:
    """Add the plugin."""
    config.pluginmanager.register(TimeSpent(config))
