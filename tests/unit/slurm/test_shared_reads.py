"""One look at Slurm for all who ask at the same time, and none that is older than its question."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from soperator_pulumi.errors import TransportError
from soperator_pulumi.slurm.shared_reads import SharedAnswers, SharedReads
from soperator_pulumi.slurm.transport import Answer
from tests.waiting import wait_until

NODES = ("scontrol", "show", "nodes", "--json")


@dataclass
class Held:
    """Runs commands that end when the test lets them; each answers with its number."""

    begun: list[tuple[str, ...]] = field(default_factory=list)
    release: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    error: TransportError | None = None

    def run(self, command: Sequence[str], **_: object) -> Answer:
        self.begun.append(tuple(command))
        number = len(self.begun)
        assert self.release.acquire(timeout=60)
        if self.error:
            raise self.error
        return Answer(0, str(number), "")


def asked(reads: SharedReads) -> int:
    """Number of those that wait for runs that have not begun."""
    return len(reads._answers._next)


def test_who_asks_while_a_command_runs_gets_the_answer_of_the_next_run() -> None:
    held = Held()
    reads = SharedReads(held)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(reads.run, NODES)
        wait_until(lambda: len(held.begun) == 1, "the first runs")
        late = [pool.submit(reads.run, NODES) for _ in range(3)]
        wait_until(lambda: asked(reads) == 1, "a second is wanted")
        held.release.release(10)
        assert first.result().stdout == "1"
        assert {future.result().stdout for future in late} <= {
            "2",
            "3",
        }  # a slow thread may have come during the second
    assert len(held.begun) < 4


def test_each_of_those_who_wait_gets_the_error() -> None:
    held = Held(error=TransportError("gone"))
    held.release.release(10)
    reads = SharedReads(held)
    for _ in range(2):
        with pytest.raises(TransportError, match="gone"):
            reads.run(NODES)
    assert len(held.begun) == 2


def test_no_one_waits_for_one_who_was_interrupted() -> None:
    class Interrupted:
        def run(self, *_: object, **__: object) -> Answer:
            raise KeyboardInterrupt

    reads = SharedReads(Interrupted())
    with pytest.raises(KeyboardInterrupt):
        reads.run(NODES)
    assert asked(reads) == 0


@pytest.mark.parametrize(
    "command", [("scontrol", "update", "nodename=cpu-0"), ("scontrol", "reconfigure"), ("sh", "-c", "x")]
)
def test_what_may_change_something_is_run_for_each(command: tuple[str, ...]) -> None:
    held = Held()
    reads = SharedReads(held)
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(reads.run, command) for _ in range(2)]
        wait_until(lambda: len(held.begun) == 2, "both run at the same time")
        held.release.release(2)
        assert {future.result().stdout for future in both} == {"1", "2"}


# -- answers that may be a moment old ----------------------------------------------------------------------------


@dataclass
class Looks:
    """Counts how often the question is put, on a clock of the test's."""

    seconds: float = 0.0
    put: int = 0
    fails: bool = False

    def __call__(self) -> int:
        self.put += 1
        if self.fails:
            raise TransportError("gone")
        return self.put


@pytest.mark.parametrize(("later_seconds", "answer"), [(0.9, 1), (1.0, 2)])
def test_an_answer_serves_those_who_allow_its_age(later_seconds: float, answer: int) -> None:
    looks = Looks()
    answers = SharedAnswers(lambda: looks.seconds)
    answers.ask("nodes", looks, max_age_seconds=1.0)
    looks.seconds = later_seconds
    assert answers.ask("nodes", looks, max_age_seconds=1.0) == answer


def test_who_allows_no_age_gets_an_answer_of_now() -> None:
    looks = Looks()
    answers = SharedAnswers(lambda: looks.seconds)
    answers.ask("nodes", looks, max_age_seconds=1.0)
    assert answers.ask("nodes", looks) == 2


def test_an_error_is_not_kept() -> None:
    looks = Looks(fails=True)
    answers = SharedAnswers(lambda: looks.seconds)
    with pytest.raises(TransportError):
        answers.ask("nodes", looks, max_age_seconds=1.0)
    looks.fails = False
    assert answers.ask("nodes", looks, max_age_seconds=1.0) == 2


def test_who_allows_an_age_joins_a_command_that_runs() -> None:
    held = Held()
    reads = SharedReads(held, max_age_seconds=60.0)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(reads.run, NODES)
        wait_until(lambda: len(held.begun) == 1, "the first runs")
        late = [pool.submit(reads.run, NODES) for _ in range(3)]
        held.release.release(10)
        assert {future.result().stdout for future in [first, *late]} == {"1"}
