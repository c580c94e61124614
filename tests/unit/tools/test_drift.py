"""Differences between a program and the cluster."""

import pytest

from tools import chosen_cluster, drift
from tools.engine import ResourceChange, StackChanges, StepOp

PATCHED = ResourceChange(
    urn="urn:pulumi:prod::soperator::kubernetes:apps/v1:StatefulSet::hpc-cpu",
    type="kubernetes:apps/v1:StatefulSet",
    name="hpc-cpu",
    operation=StepOp.UPDATE,
    paths=("spec.replicas", "metadata.labels"),
)
GONE = ResourceChange(urn="u", type="kubernetes:core/v1:Service", name="nodes", operation=StepOp.CREATE)
SAME = ResourceChange(urn="v", type="kubernetes:core/v1:Secret", name="keys", operation=StepOp.SAME)


class Comparer:
    """A deployer that finds these changes, if it has read the resources."""

    def __init__(self, *changes: ResourceChange) -> None:
        self._changes = changes

    def preview(self, *, refresh: bool) -> StackChanges:
        assert refresh
        return StackChanges(changes=self._changes)


def compared(monkeypatch: pytest.MonkeyPatch, *changes: ResourceChange) -> int:
    monkeypatch.setattr("sys.argv", ["drift", "--stack", "prod"])
    monkeypatch.setattr(chosen_cluster, "choose", lambda: None)
    monkeypatch.setattr(drift, "deployer_of_a_cluster", lambda _stack, _chosen: (Comparer(*changes), "an engine"))
    return drift.main()


def test_differences_are_listed_and_fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert compared(monkeypatch, GONE, SAME, PATCHED) == 2
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "update kubernetes:apps/v1:StatefulSet hpc-cpu: spec.replicas, metadata.labels",
        "create kubernetes:core/v1:Service nodes",
    ]
    assert "2 resources differ from the program of stack prod." in err


def test_a_cluster_as_described_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compared(monkeypatch, SAME) == 0
    assert capsys.readouterr().out == ""
