"""Test of a drained node before it returns to service. Users' jobs cannot start there at any time.

Slurm runs no job on a drained node. So the node is reserved for the checks' user alone, undrained, tested, and either
released or drained before it is released. The reservation has no end: after a run that was killed it stays, no user's
job lands on the node, and the next run drains the node and only then deletes the reservation.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from long_checks.long_settings import LongSettings
from long_checks.measuring import Measured, Measuring
from long_checks.node_choice import idle_nodes, is_reached, may_share_a_job, node_set_of
from long_checks.slurm_calls import SlurmCallError, SlurmCalls, SlurmNode
from node_health.state_machine import NodeState, check_of
from slurm_wire.drain_reasons import NOT_VERIFIED, SILENT

Event = Callable[..., None]
"""Reports an event: its name, and its fields."""

_NEWCOMER = re.compile(rf"{NOT_VERIFIED}(?:, passed (?P<passed>[a-z_ ]+?))?(?:, failed .+?)?{SILENT}")
"""Drain reason of a new node, which is drained from its registration on, until every single-node check has passed.

The reason lists the passed checks, and nothing else stores them: `health: not verified, passed memory_bandwidth`. A
failed check is appended, and all others are still due. A later node of the same name starts from the beginning.
"""


class _Held(NamedTuple):
    """A drained node that is reserved for its test."""

    node: SlurmNode
    """The node as it was."""
    group: tuple[SlurmNode, ...]
    reservation: str


class Verification:
    """Tests of the nodes that this check may bring back."""

    def __init__(self, settings: LongSettings, slurm: SlurmCalls, measuring: Measuring, event: Event) -> None:
        self._settings, self._slurm, self._measuring, self._event = settings, slurm, measuring, event
        self._prefix = f"health-{settings.check}-"

    def repair(self) -> None:
        """Drain the nodes of reservations that a killed run left, then delete these."""
        for name, host_list in self._slurm.reservations().items():
            if not name.startswith(self._prefix):
                continue
            tested = name.removeprefix(self._prefix)
            nodes = {node.name: node for node in self._slurm.nodes()}
            if tested in self._slurm.hosts(host_list) and tested in nodes and not nodes[tested].state.drained:
                self._slurm.drain(tested, self._reason_of_interrupted(nodes[tested]))
            self._slurm.release(name)
            self._event("repaired", node=tested, reservation=name)

    def reason(self, text: str) -> str:
        """Return the reason of a drain, without quotes and line breaks, which Slurm refuses."""
        return f"health {self._failure(text)}"

    def _failure(self, text: str) -> str:
        return f"{self._settings.check}: {re.sub(r'[^ -!#-&(-~]', '?', text)}"

    def _reason_of_interrupted(self, node: SlurmNode) -> str:
        """Return the drain reason of a node whose earlier reason is lost. It may be a new node."""
        if self._settings.check in self._first(node):
            return reason_after([], self._first(node))
        return self.reason("interrupted test, allowed a finished one")

    def run(self) -> list[Measured]:
        """Test the drained nodes that this check may return: single nodes in parallel, pairs one after another."""
        if self._settings.undrain == "never":
            return []
        # Node states may show a deleted reservation for a while.
        reserved = {name for host_list in self._slurm.reservations().values() for name in self._slurm.hosts(host_list)}
        waiting = [node.name for node in self._slurm.nodes() if self._is_ours(node) and node.name not in reserved]
        del waiting[self._settings.nodes_per_run :]
        batches = [waiting] if self._settings.size == 1 else [[name] for name in waiting]
        return [found for batch in batches for found in self._test(batch)]

    def _is_ours(self, node: SlurmNode) -> bool:
        words = set(node.state.state.split("+"))
        is_free = "IDLE" in words and not words & {"COMPLETING", "FAIL", "NOT_RESPONDING"}
        if not is_free or not is_reached(node, self._settings):
            return False
        done = passed_by_newcomer(node.state)
        if done is not None:
            own = self._settings.check
            return own in self._first(node) and own not in done
        check = check_of(node.state)
        return check == self._settings.check or check in self._settings.verifies

    def _test(self, names: Sequence[str]) -> list[Measured]:
        held: dict[str, _Held] = {}
        try:
            for name in names:
                self._open_to_test(name, held)
            began, tested = self._measuring.clock.now(), [*held.values()]
            found = self._measuring.measure(
                [held_node.group for held_node in tested], [held_node.reservation for held_node in tested]
            )
            measured = [result._replace(nodes=result.nodes[:1]) for result in found]
            self._settle(began, tested, measured)
            for held_node, result in zip(tested, measured, strict=True):
                self._conclude(held_node.node, result)
                self._slurm.release(held_node.reservation)
                del held[held_node.node.name]
        except BaseException:
            self._close(held.values())
            raise
        return measured

    def _open_to_test(self, name: str, held: dict[str, "_Held"]) -> None:
        """Reserve and undrain a node, with a partner if the check needs one.

        A node that someone else changed stays as it is. Every node is undrained right after it was looked up, not after
        all lookups.
        """
        nodes = {node.name: node for node in self._slurm.nodes()}
        partners = self._partners(nodes[name], list(nodes.values())) if name in nodes else None
        if partners is None or not self._is_ours(nodes[name]):
            return
        node, reservation = nodes[name], f"{self._prefix}{name}"
        self._slurm.reserve(reservation, [name, *(partner.name for partner in partners)], self._settings.user)
        held[name] = _Held(node, (node, *partners), reservation)
        covered = self._slurm.hosts(self._slurm.reservations().get(reservation, ""))
        now = self._now(name).state
        if name not in covered or not now.drained or now.reason != node.state.reason:
            self._slurm.release(reservation)
            del held[name]
            return
        self._slurm.undrain(name)

    def _settle(self, began: float, tested: Sequence["_Held"], measured: Sequence[Measured]) -> None:
        """Give quick checks that still fail the time to drain their nodes again.

        Wait only if a passed node was drained by a quick check, or as a new one, which quick checks do not drain again.
        """
        pairs = zip(tested, measured, strict=True)
        if any(result.passed and self._may_fail_quickly(held_node.node) for held_node, result in pairs):
            while self._measuring.clock.now() - began < self._settings.settle_seconds:
                self._measuring.clock.sleep(1)

    def _may_fail_quickly(self, node: SlurmNode) -> bool:
        is_last = passed_by_newcomer(node.state) is not None and not self._left_to_pass(node)
        return check_of(node.state) in self._settings.verifies or is_last

    def _conclude(self, node: SlurmNode, measured: Measured) -> None:
        """Drain a tested node again, unless it has passed everything that it must pass."""
        left = self._left_to_pass(node) if measured.passed else node.state.reason
        if measured.passed is False:
            passed = passed_by_newcomer(node.state)
            failure = self._failure(measured.text)
            left = self.reason(measured.text) if passed is None else reason_of_failure(passed, failure)
        is_drained = self._now(node.name).state.drained  # by a quick check or an admin
        if left and not is_drained:
            self._slurm.drain(node.name, left)
        if not measured.passed:
            self._event("not verified", node=node.name, value=measured.text)
        elif left:
            self._event("waits", node=node.name, reason=left, value=measured.text)
        elif not is_drained:
            self._event("undrained", node=node.name, reason=node.state.reason, value=measured.text)

    def _close(self, held: Iterable["_Held"]) -> None:
        """Drain nodes without a verdict, and only then delete their reservations."""
        for held_node in held:
            with suppress(SlurmCallError):  # the reservation stays, and the next run repairs
                if not self._now(held_node.node.name).state.drained:
                    self._slurm.drain(held_node.node.name, held_node.node.state.reason)
                self._slurm.release(held_node.reservation)

    def _left_to_pass(self, node: SlurmNode) -> str:
        """Return why a new node stays drained although it has passed; empty if it does not."""
        done = passed_by_newcomer(node.state)
        if done is None:
            return ""
        return reason_after([*done, self._settings.check], self._first(node))

    def _first(self, node: SlurmNode) -> Sequence[str]:
        """Return the checks that a new node of this node set must pass."""
        node_set = node_set_of(node, self._settings)
        return () if node_set is None else self._settings.node_sets[node_set].first

    def _now(self, name: str) -> SlurmNode:
        found = [node for node in self._slurm.nodes() if node.name == name]
        if not found:
            raise SlurmCallError(f"node {name} is gone")
        return found[0]

    def _partners(self, node: SlurmNode, nodes: Sequence[SlurmNode]) -> list[SlurmNode] | None:
        """Return an idle partner for the tested node if the check needs several nodes; None if there is none."""
        if self._settings.size == 1:
            return []
        idle = idle_nodes(nodes, self._settings)
        return [slurm_node for slurm_node in idle if may_share_a_job(slurm_node, node, self._settings)][:1] or None


def fields(measured: Measured, now: float) -> dict[str, Any]:
    """Return a result in the form of reports."""
    return {
        "time": now,
        "passed": measured.passed is True,
        "value": measured.value,
        "result": measured.text,
        "job": measured.job_id,
    }


def passed_by_newcomer(node: NodeState) -> list[str] | None:
    """Return the checks that a new node has passed; None for other nodes."""
    found = _NEWCOMER.fullmatch(node.reason) if node.drained else None
    return (found["passed"] or "").split() if found else None


def reason_after(passed: Sequence[str], first: Sequence[str]) -> str:
    """Return the drain reason of a new node that passed these checks; empty if it passed all."""
    return "" if {*first} <= {*passed} else _not_verified(passed)


def reason_of_failure(passed: Sequence[str], failed: str) -> str:
    """Return the drain reason of a new node that failed: the check, value and limit."""
    return f"{_not_verified(passed)}, failed {failed}"


def _not_verified(passed: Sequence[str]) -> str:
    return f"{NOT_VERIFIED}, passed {' '.join(passed)}" if passed else NOT_VERIFIED
