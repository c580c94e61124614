"""One run of a long check: cleanup, drained nodes, idle nodes, bisection, drains, reports."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from long_checks.long_settings import LongSettings
from long_checks.measuring import Measured, Measuring, job_name
from long_checks.node_choice import groups, is_reached, may_share_a_job, without_partition
from long_checks.reports import Reports
from long_checks.slow_node import slow_nodes
from long_checks.slurm_calls import SlurmCalls, SlurmNode
from long_checks.verified_return import Verification, fields
from node_health.state_machine import check_of


class CheckRun:
    """One run of a long check.

    Args:
        settings: Settings of the check.
        slurm: slurmctld.
        reports: Folders of the check.
        measuring: Jobs.
        say: Takes each event.
    """

    def __init__(
        self,
        settings: LongSettings,
        slurm: SlurmCalls,
        reports: Reports,
        measuring: Measuring,
        say: Callable[[dict[str, Any]], None],
    ) -> None:
        self._settings, self._slurm, self._reports, self._measuring = settings, slurm, reports, measuring
        self._say = say
        self._events: list[dict[str, Any]] = []
        self._results: dict[str, dict[str, Any]] = {}
        self._verification = Verification(settings, slurm, measuring, self._event)

    def run(self) -> int:
        """Run the check. Return 1 if no node has a result although some should."""
        try:
            self._leftovers()
            self._verification.repair()
            found = self._recorded(self._verification.run())
            found += self._recorded(self._idle())
        finally:
            self._measuring.cancel()
            self._reports.write(self._results, self._events)
        return 1 if found and all(result.passed is None for result in found) else 0

    def _leftovers(self) -> None:
        """Cancel jobs of a run that was killed. The run holds the check's lock, so no other run owns them."""
        left = [job.job_id for job in self._slurm.jobs(self._settings.user, job_name(self._settings.check))]
        self._slurm.cancel(left)
        for job in left:
            self._event("cancelled", job=job)

    def _idle(self) -> list[Measured]:
        nodes = {node.name: node for node in self._slurm.nodes()}
        unreached = without_partition(nodes.values(), self._settings)
        if unreached:
            self._event("no partition", nodes=unreached, why="no job reaches a node without a partition")
        chosen = groups(nodes.values(), self._reports.passed(), self._settings, time.time())
        measured = self._measuring.measure(chosen)
        for result in measured:
            self._report(result)
        measured = self._again(measured, nodes)
        passed = [node for result in measured if result.passed for node in result.nodes]
        slow = [found for result in measured if result.passed is False for found in self._slow(result, nodes, passed)]
        self._drain(slow, sum(len(result.nodes) for result in measured), nodes.values())
        # A failing group says nothing of its other nodes: they stay due.
        return [*(result for result in measured if result.passed is not False), *slow]

    def _again(self, measured: Sequence[Measured], nodes: dict[str, SlurmNode]) -> list[Measured]:
        """Return the results, after a second job on nodes where the program crashed.

        A second crash counts as a fault of the node only if another node passed: otherwise the program may be at fault.
        """
        crashed = [result for result in measured if result.crashed]
        repeated = self._measuring.measure([tuple(nodes[name] for name in result.nodes) for result in crashed])
        second = {result.nodes: result for result in repeated}
        found = [second.get(result.nodes, result) for result in measured]
        for result in repeated:
            self._report(result)
        works = any(result.passed for result in found)
        return [
            self._twice(result, works=works) if result.crashed and result.nodes in second else result
            for result in found
        ]

    def _twice(self, crashed: Measured, *, works: bool) -> Measured:
        if works and len(crashed.nodes) == 1:
            return crashed._replace(passed=False, text=f"crashed twice: {crashed.text}, allowed an end")
        why = "no other node has passed" if len(crashed.nodes) == 1 else "each of several nodes may be at fault"
        self._event("crashed twice", nodes=[*crashed.nodes], value=crashed.text, why=why)
        return crashed

    def _slow(self, failed: Measured, nodes: dict[str, SlurmNode], passed: Sequence[str]) -> list[Measured]:
        """Return a failed node, or the slow nodes of a failed group.

        Args:
            failed: The node or group.
            nodes: All nodes by their names.
            passed: Nodes that have passed.
        """
        if len(failed.nodes) == 1:
            return [failed]
        last: dict[str, Measured] = {}

        def passes(candidates: Sequence[tuple[str, ...]]) -> list[bool | None]:
            found = self._measuring.measure([tuple(nodes[name] for name in candidate) for candidate in candidates])
            for result in found:
                self._report(result)
                last.update(dict.fromkeys(result.nodes, result))
            return [result.passed for result in found]

        first = nodes[failed.nodes[0]]
        spare = [name for name in passed if may_share_a_job(nodes[name], first, self._settings)]
        slow = slow_nodes(failed.nodes, passes, spare)
        if not slow:
            self._event("no slow node", nodes=[*failed.nodes], value=failed.text)
        return [last[name]._replace(nodes=(name,), passed=False) for name in slow]

    def _drain(self, slow: Sequence[Measured], measured: int, nodes: Iterable[SlurmNode]) -> None:
        """Drain slow nodes, unless more than half are slow: of this run's nodes, or of all, by earlier runs as well."""
        reached = [node for node in nodes if is_reached(node, self._settings)]
        before = sum(check_of(node.state) == self._settings.check for node in reached)
        for failing, of in ((len(slow), measured), (len(slow) + before, len(reached))):
            if slow and failing > 1 and failing * 2 > of:
                names = [result.nodes[0] for result in slow]
                self._event("not drained", nodes=names, why=f"{failing} of {of} nodes fail: no fault of each node")
                return
        for result in slow:
            self._drain_one(result.nodes[0], self._verification.reason(result.text))

    def _drain_one(self, name: str, reason: str) -> None:
        now = next((node for node in self._slurm.nodes() if node.name == name), None)
        if self._settings.action != "drain" or now is None or now.state.drained or now.state.taken_out:
            self._event("failed", node=name, reason=reason)
            return
        self._slurm.drain(name, reason)
        self._event("drained", node=name, reason=reason)

    def _recorded(self, found: Sequence[Measured]) -> list[Measured]:
        """Return the results after writing them to the run's report."""
        for result in found:
            if result.passed is not None:
                self._results.update(dict.fromkeys(result.nodes, fields(result, time.time())))
        return [*found]

    def _report(self, measured: Measured) -> None:
        result = {True: "passed", False: "failed", None: "no result"}[measured.passed]
        if measured.no_program:
            result = "no program"
        self._event("measured", nodes=[*measured.nodes], result=result, value=measured.text, job=measured.job_id)

    def _event(self, event: str, **more: Any) -> None:  # noqa: ANN401 - JSON
        found = {"long_check": self._settings.check, "event": event, **more}
        self._events.append(found)
        self._say(found)
