"""Questions to the daemons, by Slurm's own commands."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """A command that succeeds if a daemon answers.

    Attributes:
        command: The command.
        pause_seconds: Time between an answer and the next question.
        answer_seconds: Time that the daemon has to answer.
    """

    command: tuple[str, ...]
    pause_seconds: float
    answer_seconds: float


@dataclass(frozen=True)
class Questions:
    """The questions that show the health of a daemon.

    Attributes:
        answers: Decides if the port is open.
        works: Decides if the daemon lives. None: a restart cures none that is slow.
        lost_seconds: Time without an answer to `works` after which the daemon ends.
    """

    answers: Question
    works: Question | None = None
    lost_seconds: float = 300


DAEMONS = {
    "slurmctld": Questions(
        Question(("scontrol", "ping"), 9, 4),
        # This question waits for the locks that a submission needs, unlike `scontrol ping`. The answer may take as long
        # as a busy slurmctld needs, which a restart would not make quicker.
        Question(("squeue", "--noheader", "--user=slurm", "--format=%i"), 30, 29),
    ),
    "slurmdbd": Questions(
        Question(("sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=cluster"), 20, 15)
    ),
    "mariadb": Questions(
        # A plain connection would also be taken by a MariaDB that is stopped, and be in the log as an aborted one.
        Question(("mariadb", "--no-defaults", "--user=root", "--skip-column-names", "--execute=select 1"), 9, 4)
    ),
}
"""The daemons by their names. A stopped slurmctld or MariaDB is known within 19 s, or 39 s if slurmctld stops while it
is asked for its jobs, and a stopped slurmdbd within 53 s."""
