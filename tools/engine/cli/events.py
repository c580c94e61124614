"""Events of the Pulumi CLI, displayed like those of the local engine."""

import re
from collections.abc import Mapping
from typing import Any

from pulumi.automation.events import (
    DiagnosticEvent,
    EngineEvent,
    OpType,
    PolicyEvent,
    StepEventMetadata,
    StepEventStateMetadata,
)  # fmt: skip

from soperator_pulumi.cli.stack_changes import StepOp
from tools.engine.display import Display, last_words
from tools.engine.protocol import STACK_TYPE

_OPERATIONS = {
    OpType.SAME: StepOp.SAME,
    OpType.CREATE: StepOp.CREATE,
    OpType.UPDATE: StepOp.UPDATE,
    OpType.DELETE: StepOp.DELETE,
    OpType.DISCARD: StepOp.DELETE,
    OpType.REPLACE: StepOp.REPLACE,
    OpType.CREATE_REPLACEMENT: StepOp.REPLACE,
    OpType.READ: StepOp.READ,
}
"""Steps to display. Deleting the old resource is a part of its replacement."""
_DEFAULT_PROVIDER = re.compile(r"::pulumi:providers:[\w-]+::default")
_NOISE = re.compile(r"^using pulumi-resource-\S+ from \$PATH|^update failed$|^preview failed$")
_AFTERMATH = re.compile(
    "an unhandled error occurred: program exited with non-zero exit code"
    "|^Resource monitor has terminated, shutting down$"
)
"""Messages that follow another error: the program has reported it, or the CLI has stopped the program because of it."""
_HIDDEN = "__"


class Events:
    """Displays the CLI's events one by one."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._shown: set[tuple[str, str]] = set()

    def __call__(self, event: EngineEvent) -> None:
        """Display an event."""
        if event.diagnostic_event is not None:
            self._diagnostic(event.diagnostic_event)
        elif event.policy_event is not None:
            self._policy(event.policy_event)
        elif event.resource_pre_event is not None:
            metadata = event.resource_pre_event.metadata
            self._display.begin(metadata.urn)
            if event.resource_pre_event.planning:
                self._step(metadata)
        elif event.res_outputs_event is not None and not event.res_outputs_event.planning:
            self._step(event.res_outputs_event.metadata)

    def _step(self, step: StepEventMetadata) -> None:
        if is_default_provider(step.urn):
            return
        if step.op is OpType.REFRESH:
            if not self._display.preview:  # in which the program decides which differences matter
                self._display.step(step.urn, *_refreshed(step))
        elif (operation := _OPERATIONS.get(step.op)) is not None:
            paths = [] if operation in {StepOp.SAME, StepOp.CREATE, StepOp.DELETE} else _paths(step)
            self._display.step(step.urn, operation, paths)

    def _policy(self, event: PolicyEvent) -> None:
        text = f"[{event.enforcement_level}] {event.policy_name}: {event.message.rstrip()}"
        if event.enforcement_level == "mandatory":
            self._display.fail(event.resource_urn or "", text)
            return
        for line in text.splitlines():
            self._display.say(event.resource_urn or "", line)

    def _diagnostic(self, event: DiagnosticEvent) -> None:
        text, urn = event.message.rstrip(), event.urn or ""
        if event.severity == "debug" or not text.strip() or _NOISE.match(text):
            return
        if self._display.failures and _AFTERMATH.search(text):
            return
        if f"::{STACK_TYPE}::" in urn:
            urn = ""
        if not urn and self._display.failures and event.severity != "error":
            return  # the CLI stops the program, which reports that
        if event.severity == "error":
            self._display.fail(urn, last_words(text))
            return
        for line in text.splitlines():
            # Output of a provider comes twice: live, and with all the rest at the end.
            if event.ephemeral or (urn, line) not in self._shown:
                self._display.say(urn, line)
            if event.ephemeral:
                self._shown.add((urn, line))


def is_default_provider(urn: str) -> bool:
    """Return True if a resource is one of the CLI's own providers."""
    return bool(_DEFAULT_PROVIDER.search(urn))


def _paths(step: StepEventMetadata) -> list[str]:
    if step.detailed_diff:
        return list(step.detailed_diff)
    return _differing(_inputs(step.old), _inputs(step.new))


def _inputs(state: StepEventStateMetadata | None) -> Mapping[str, Any]:
    return (state.inputs if state else None) or {}


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    keys = dict.fromkeys([*new, *old])
    return [k for k in keys if not k.startswith(_HIDDEN) and old.get(k) != new.get(k)]


def _refreshed(step: StepEventMetadata) -> tuple[StepOp, list[str]]:
    if step.new is None or not (step.new.outputs or step.new.id):
        return StepOp.DELETE, []
    old, new = (step.old.outputs if step.old else None) or {}, step.new.outputs or {}
    changed = _differing(old, new)
    return (StepOp.UPDATE if changed else StepOp.SAME), changed
