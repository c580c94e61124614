"""The user of a trace: what is wanted, run after run, as the trace's bytes say."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import yaml

from soperator_pulumi.spec.drain import DrainSpec, NotRequeueable, OnTimeout, Reaction
from tests.unit.faults.engine import NodeSet, Program
from tests.unit.faults.faults import Choices

NAMES = ("gpu", "cpu")

CHANGES = (
    "scale",
    "scale",
    "scale",
    "scale and roll",
    "nothing",
    "remove",
    "destroy",
    "roll",
    "replace",
    "add",
    "policy",
    "wrong place",
    "controller lost",
)
"""Acts of a user in one run. In the wrong place the kubeconfig is another cluster's."""

_SIZES = (3, 2, 1, 4, 0)
_TIMEOUTS_SECONDS = (60, 10, 0, 300)
_NO_OVERRIDE = "{}"
_OVERRIDES = (
    *(_NO_OVERRIDE,) * 6,
    "{timeout: 10s, on_timeout: cancel}",
    "{timeout: 0s, on_timeout: requeue, not_requeueable: cancel}",
    "{timeout: 20s, on_timeout: abort, wait: true}",
    "{wait: false}",
)


def overridden(policy: DrainSpec, override: str) -> DrainSpec:
    """Return a policy as it is for one run."""
    return DrainSpec.model_validate({**policy.model_dump(mode="json"), **yaml.safe_load(override)})


@dataclass(frozen=True)
class User:
    """Chooses programs."""

    choices: Choices
    policies: Sequence[DrainSpec] | None = None
    """The only policies there are; any where there are none."""

    def first_program(self, node_sets: int | None) -> Program:
        """Return what is deployed first."""
        count = node_sets or 1 + self.choices.byte() % 2
        return Program({name: self._node_set() for name in NAMES[:count]}, bool(self.choices.byte() & 1))

    def override(self) -> str:
        """Return what the environment says of drains in one run."""
        return _NO_OVERRIDE if self.policies is not None else self.choices.of(_OVERRIDES)

    def changed(self, program: Program, what: str) -> Program:
        """Return the program after a change."""
        sets = dict(program.node_sets)
        if what == "remove" and len(sets) > 1:
            del sets[self.choices.of(sorted(sets))]
        elif what == "add":
            sets |= {name: self._node_set() for name in NAMES if name not in sets}
        else:
            for name, node_set in sets.items():
                sets[name] = self._resized(node_set, what)
        return Program(sets, program.other_way_round)

    def _resized(self, node_set: NodeSet, what: str) -> NodeSet:
        changes: dict[str, object] = {}
        if what in {"scale", "scale and roll"}:
            changes["replicas"] = self.choices.of(_SIZES)
        if what in {"roll", "scale and roll"}:
            changes["template"] = self.choices.of(("b", "a", "c"))
            changes["max_unavailable"] = self.choices.of((1, 2, 3))
        if what == "replace":
            changes["identity"] = self.choices.of(("2", "1"))
        if what == "policy":
            changes["policy"] = self._policy()
        return NodeSet(**{**vars(node_set), **changes})

    def _node_set(self) -> NodeSet:
        return NodeSet(self.choices.of(_SIZES), self._policy())

    def _policy(self) -> DrainSpec:
        choices = self.choices
        if self.policies is not None:
            return choices.of(self.policies)
        timeout = timedelta(seconds=choices.of(_TIMEOUTS_SECONDS))
        rare = choices.byte()
        return DrainSpec(
            timeout=timeout,
            on_timeout=choices.of(tuple(OnTimeout)),
            max_wait=timeout + timedelta(seconds=300),
            not_requeueable=(NotRequeueable.ABORT, NotRequeueable.CANCEL)[rare & 1],
            reservations=(Reaction.REPORT, Reaction.REFUSE)[(rare & 6) == 6],
            pending_jobs=(Reaction.REPORT, Reaction.REFUSE)[(rare & 24) == 24],
            wait=(rare & 96) != 96,
            grace=timedelta(seconds=60),
        )
