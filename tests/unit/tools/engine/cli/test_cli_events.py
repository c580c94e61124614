"""Events of the Pulumi CLI, as a person sees them."""

import pytest
from pulumi.automation.events import DiagnosticEvent, EngineEvent

from tools.engine.cli.events import Events
from tools.engine.display import Display

STACK = "urn:pulumi:test::declared::pulumi:pulumi:Stack::declared-test"
THING = "urn:pulumi:test::declared::pulumi-python:dynamic/tests:Thing::bad"
FORBIDDEN = "the pod shares a namespace with its machine"


def failures_of(*errors: tuple[str, str]) -> list[str]:
    """Return the messages of the failures in a run in which the CLI reports these errors: pairs of URN and text."""
    display = Display(lambda _line: None, preview=False)
    show = Events(display)
    for number, (urn, message) in enumerate(errors):
        event = DiagnosticEvent(message=message, color="never", severity="error", urn=urn)
        show(EngineEvent(sequence=number, timestamp=0, diagnostic_event=event))
    return [failure.message for failure in display.failures]


@pytest.mark.parametrize(
    "consequence",
    [
        "Resource monitor has terminated, shutting down\n",
        "an unhandled error occurred: program exited with non-zero exit code: 1",
    ],
)
def test_a_program_that_the_cli_stops_after_a_failure_is_no_failure_of_its_own(consequence: str) -> None:
    assert failures_of((THING, FORBIDDEN), (STACK, consequence)) == [FORBIDDEN]


def test_a_program_that_loses_the_cli_without_a_failure_is_reported() -> None:
    lost = "Resource monitor has terminated, shutting down"
    assert failures_of((STACK, lost)) == [lost]


def test_another_error_of_the_program_after_a_failure_is_reported() -> None:
    own = "KeyError: 'Resource monitor has terminated, shutting down'"
    assert failures_of((THING, FORBIDDEN), (STACK, own)) == [FORBIDDEN, own]
