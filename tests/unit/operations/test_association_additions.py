"""Additions to an accounting database that is slow to answer, or refuses."""

from collections.abc import Sequence

import pytest

from soperator_pulumi.errors import NotReadyError, SlurmError, TransportError
from soperator_pulumi.operations.association_additions import ANSWER_SECONDS, WantedAssociations
from soperator_pulumi.slurm.sacctmgr import Sacctmgr
from soperator_pulumi.slurm.transport import Answer
from tests.fakes.clock import FakeClock
from tests.fakes.slurmdbd import Database

WANTED = WantedAssociations(accounts=["default"], users={"alice": ["default"]})
WITHOUT_DATABASE = Answer(
    1,
    "",
    "sacctmgr: error: slurm_persist_conn_open: Something happened with the receiving/processing of the persistent "
    "connection init message to accounting-0:6819: Unable to connect to database\n"
    "sacctmgr: error: Sending PersistInit msg: Unable to connect to database\n",
)
"""Recorded of Slurm 24.11."""


class Failing(Database):
    """A database whose first answers are these failures."""

    def __init__(self, failures: Sequence[Answer | TransportError]) -> None:
        super().__init__()
        self.failures = [*failures]
        self.asked = 0

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        self.asked += 1
        if not self.failures:
            return super().run(command, stdin=stdin, timeout_seconds=timeout_seconds)
        failure = self.failures.pop(0)
        if isinstance(failure, TransportError):
            raise failure
        return failure


@pytest.mark.parametrize("failure", [WITHOUT_DATABASE, Answer(124, "", ""), TransportError("no answer")])
def test_additions_wait_for_a_slurmdbd_that_does_not_answer(failure: Answer | TransportError) -> None:
    database, lines = Failing([failure, failure, failure]), list[str]()
    WANTED.add(Sacctmgr(database, "hpc"), lines.append, FakeClock())
    assert WANTED.missing(Sacctmgr(database, "hpc")).is_empty
    assert [line for line in lines if line.startswith("accounting: waits for slurmdbd, 300 s left")] == lines[:1]


def test_a_wait_for_slurmdbd_ends_with_its_words_and_the_next_step() -> None:
    database = Failing([WITHOUT_DATABASE] * 10_000)
    clock = FakeClock()
    began = clock.now()
    with pytest.raises(NotReadyError, match=r"(?s)Unable to connect to database.*database-0; then run again"):
        WANTED.add(Sacctmgr(database, "hpc"), lambda _: None, clock)
    assert clock.now() - began == pytest.approx(ANSWER_SECONDS)
    assert not database.changes


def test_a_refusal_ends_the_additions_at_once() -> None:
    database = Failing([Answer(1, "", "sacctmgr: error: Your user doesn't have privilege to perform this action")])
    with pytest.raises(SlurmError, match="privilege"):
        WANTED.add(Sacctmgr(database, "hpc"), lambda _: None, FakeClock())
    assert database.asked == 1
