"""The drain policy of one run."""

import pytest

from soperator_pulumi.errors import SpecError
from soperator_pulumi.lifecycle.nodes.drain_override import policy_of
from soperator_pulumi.spec.drain import DrainSpec, NotRequeueable, OnTimeout

RECORDED = DrainSpec.model_validate({"timeout": "30m", "not_requeueable": "cancel"}).model_dump(mode="json")


def test_without_it_the_recorded_policy_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOPERATOR_DRAIN", raising=False)
    assert policy_of(RECORDED).model_dump(mode="json") == RECORDED
    assert policy_of(None) == DrainSpec()


def test_what_it_says_counts_and_all_else_is_as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOPERATOR_DRAIN", "{timeout: 10m, on_timeout: requeue}")
    policy = policy_of(RECORDED)
    assert policy.timeout.total_seconds() == 600
    assert policy.on_timeout is OnTimeout.REQUEUE
    assert policy.not_requeueable is NotRequeueable.CANCEL


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{timeout: 10 minutes}", "timeout"),
        ("{timeout: 1h, on_timeout: kill}", "on_timeout"),
        ("{tiemout: 1h}", 'Did you mean "timeout"'),
        ("{timeout: [", "needs a mapping"),
        ("abort", "needs a mapping"),
        ("{on_timeout: wait, max_wait: 1m}", "max_wait"),
        ("{grace: 1h}", "grace: is part of the worker pods"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(text: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOPERATOR_DRAIN", text)
    with pytest.raises(SpecError, match="SOPERATOR_DRAIN has 1 problem") as raised:
        policy_of(RECORDED)
    assert words in str(raised.value)


def test_all_that_is_wrong_with_it_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOPERATOR_DRAIN", "{grace: 1h, timeout: soon, on_timeout: kill}")
    with pytest.raises(SpecError, match="3 problems"):
        policy_of(RECORDED)
