"""Adds the spec's accounts and users to the accounting database, which may answer slowly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soperator_pulumi.errors import NotReadyError, NotRunningError, SlurmError, TransportError
from soperator_pulumi.operations.association_plan import AssociationPlan, plan, recorded
from soperator_pulumi.operations.progress import Clock, Report, saying, until
from soperator_pulumi.slurm.sacctmgr import Sacctmgr

ANSWER_SECONDS = 300
"""Time for slurmdbd to answer: it was ready before. One attempt of slurmdbd to reach its database takes 30 s or
more."""

_ATTEMPTS = 2
"""Attempts, as the pod's sidecar or an administrator may add the same at that moment."""


@dataclass(frozen=True)
class WantedAssociations:
    """Accounts and users in one cluster's spec."""

    accounts: Sequence[str]
    users: Mapping[str, Sequence[str]]
    """Accounts of users, by user; the default account comes first."""

    def missing(self, sacctmgr: Sacctmgr) -> AssociationPlan:
        """Return the additions that the database needs.

        Raises:
            NotRunningError: slurmdbd does not answer, or does not reach its database.
            TransportError: slurmdbd's pod does not answer.
        """
        return plan(sacctmgr.cluster, self.accounts, self.users, recorded(sacctmgr))

    def add(self, sacctmgr: Sacctmgr, report: Report, clock: Clock) -> None:
        """Add what is missing. If slurmdbd does not answer, wait. Every attempt first reads the existing records.

        Raises:
            NotReadyError: slurmdbd does not answer within `ANSWER_SECONDS`; with its last message.
            SlurmError: slurmdbd refuses an addition.
        """
        reason = ""
        say = saying(report, "accounting: waits for slurmdbd")
        for left in until(clock.now() + ANSWER_SECONDS, clock, say=say):
            try:
                self._add_at_once(sacctmgr, report)
            except (NotRunningError, TransportError) as error:
                if str(error) != reason:
                    report(f"accounting: waits for slurmdbd, {left:.0f} s left: {error}")
                reason = str(error)
            else:
                return
        raise NotReadyError(
            f"slurmdbd does not answer from its database after {ANSWER_SECONDS} s: {reason}\n"
            "Read the logs of the pods accounting-0 and, if the database is the cluster's own, database-0; "
            "then run again."
        )

    def _add_at_once(self, sacctmgr: Sacctmgr, report: Report) -> None:
        for _ in range(_ATTEMPTS):
            found = self.missing(sacctmgr)
            if found.is_empty:
                return
            for line in found.lines():
                report(line)
            found.run(sacctmgr)
        if not (left := self.missing(sacctmgr)).is_empty:
            raise SlurmError("\n".join(["The accounting database did not accept these changes:", *left.lines()]))
