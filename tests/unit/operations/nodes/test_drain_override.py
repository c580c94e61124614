"""The drain policy of one run."""

import pytest

from soperator_pulumi.errors import SpecError
from soperator_pulumi.operations.nodes.drain_override import policy_of, unheeded
from soperator_pulumi.spec.drain import DrainSpec, NotRequeueable, OnTimeout

RECORDED = DrainSpec.model_validate({"timeout": "30m", "not_requeueable": "cancel"}).model_dump(mode="json")


def test_without_it_the_recorded_policy_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOPERATOR_DRAIN", raising=False)
    assert policy_of("hpc", RECORDED).model_dump(mode="json") == RECORDED
    assert policy_of("hpc", None) == DrainSpec()


def test_what_it_says_counts_and_all_else_is_as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOPERATOR_DRAIN", "hpc: {timeout: 10m, on_timeout: requeue}")
    policy = policy_of("hpc", RECORDED)
    assert policy.timeout.total_seconds() == 600
    assert policy.on_timeout is OnTimeout.REQUEUE
    assert policy.not_requeueable is NotRequeueable.CANCEL


def test_what_it_says_of_another_cluster_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOPERATOR_DRAIN", "{red: {timeout: 0s, on_timeout: cancel}, blue: {timeout: 1h}}")
    assert policy_of("hpc", RECORDED).model_dump(mode="json") == RECORDED
    assert policy_of("blue", RECORDED).timeout.total_seconds() == 3600
    assert policy_of("blue", RECORDED).on_timeout is OnTimeout.ABORT


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hpc: {timeout: 10 minutes}", "timeout"),
        ("hpc: {timeout: 1h, on_timeout: kill}", "on_timeout"),
        ("hpc: {tiemout: 1h}", 'Did you mean "timeout"'),
        ("hpc: {timeout: [", "needs the name of a cluster"),
        ("hpc: {timeout: 2026-13-01}", "needs the name of a cluster"),
        ("abort", "needs the name of a cluster"),
        ("hpc: abort", "needs the name of a cluster"),
        ("{timeout: 10m}", "SOPERATOR_DRAIN='hpc: {timeout: 10m, on_timeout: cancel}'"),
        ("hpc: {on_timeout: wait, max_wait: 1m}", "max_wait"),
        ("hpc: {grace: 1h}", "grace: is part of the worker pods"),
        ("no: {on_timeout: abort}", "got False as the name of a cluster"),
        ("7: {on_timeout: abort}", "got 7 as the name of a cluster"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(text: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOPERATOR_DRAIN", text)
    with pytest.raises(SpecError, match="SOPERATOR_DRAIN has 1 problem") as raised:
        policy_of("hpc", RECORDED)
    assert words in str(raised.value)


def test_all_that_is_wrong_with_it_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOPERATOR_DRAIN", "hpc: {grace: 1h, timeout: soon, on_timeout: kill}")
    with pytest.raises(SpecError, match="3 problems"):
        policy_of("hpc", RECORDED)


def test_a_cluster_that_it_does_not_name_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOPERATOR_DRAIN", raising=False)
    assert unheeded("hpc") == ""
    monkeypatch.setenv("SOPERATOR_DRAIN", "{red: {timeout: 1h}, 'no': {timeout: 1h}}")
    assert unheeded("hpc") == "hpc: SOPERATOR_DRAIN names no, red, and applies to no other cluster"
    assert unheeded("no") == ""
