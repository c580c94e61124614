"""Place of probes: marks on everything, and removal of what is ours and over."""

import os
from typing import Any

import pytest

from soperator_pulumi.kube.verbs import FIELD_MANAGER
from soperator_pulumi.operations.planner_process import me
from soperator_pulumi.operations.preflight.cluster_probe import LABEL, MADE_BY, ProbePlace, label_of
from tests.fakes.clock import FakeClock
from tests.fakes.small_world import API_SERVER, SmallWorld

OWNER = "project.prod.hpc"
PODS = "/api/v1/namespaces/hpc/pods"
NAMESPACES = "/api/v1/namespaces"
ENDED = me().replace(f"process {os.getpid()}", "process 4194304")
ELSEWHERE = "alice@laptop/00000000/1 process 1"
DAY = "2026-11-22T00:00:00Z"


class Api(SmallWorld):
    """A server that gives every namespace its service account, and every object its time."""

    def create(self, path: str, body: Any, *, dry_run: bool = False, manager: str = FIELD_MANAGER) -> Any:
        made = super().create(path, body, dry_run=dry_run, manager=manager)
        if path == NAMESPACES:
            name = body["metadata"]["name"]
            self.objects[f"{NAMESPACES}/{name}/serviceaccounts/default"] = {"metadata": {"name": "default"}}
        return made


@pytest.fixture
def api() -> Api:
    return Api()


def a_place(api: Api) -> ProbePlace:
    clock = FakeClock()
    return ProbePlace(api, OWNER, lambda _line: None, clock)


def left_over(maker: str, owner: str = OWNER, made: str = DAY) -> dict[str, Any]:
    labels = {LABEL: label_of(owner)}
    metadata = {"name": "old", "namespace": "hpc", "uid": "1", "labels": labels, "annotations": {MADE_BY: maker}}
    return {"metadata": {**metadata, "creationTimestamp": made}, "status": {}}


A_POD: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": {}}


def test_everything_has_the_owner_the_run_and_the_process_that_made_it(api: Api) -> None:
    place = a_place(api)
    with place.opened("hpc", exists=True):
        place.put(A_POD)
        metadata = api.objects[f"{PODS}/probe"]["metadata"]
        metadata["uid"] = "1"
        assert metadata["labels"] == {LABEL: OWNER, f"{LABEL}-run": place.run}
        assert metadata["annotations"] == {MADE_BY: me()}


def test_an_error_in_between_leaves_nothing_behind(api: Api) -> None:
    place = a_place(api)
    interrupted = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt), place.opened("hpc", exists=True):
        _make_and_raise(place, interrupted)
    assert api.objects == API_SERVER


def test_a_namespace_that_is_not_there_is_made_for_the_probes_and_deleted(api: Api) -> None:
    place = a_place(api)
    with place.opened("hpc", exists=False) as namespace:
        labels = api.objects[f"{NAMESPACES}/{namespace}"]["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
        assert namespace == f"soperator-preflight-{place.run}"
    assert f"{NAMESPACES}/{namespace}" not in api.objects
    assert "/api/v1/namespaces/hpc" not in api.objects


@pytest.mark.parametrize(
    ("body", "removed"),
    [
        (left_over(ENDED, made="2100-01-01T00:00:00Z"), True),
        (left_over(ELSEWHERE), True),
        (left_over(ELSEWHERE, made="2100-01-01T00:00:00Z"), False),
        (left_over(me(), made="2100-01-01T00:00:00Z"), False),
        (left_over(ENDED, owner="project.dev.other"), False),
    ],
    ids=["ended here", "long ago elsewhere", "of now elsewhere", "of a run that lives", "of another cluster"],
)
def test_the_next_run_removes_what_a_killed_one_of_the_same_cluster_left(
    api: Api, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any], *, removed: bool
) -> None:
    place = a_place(api)
    monkeypatch.setattr(place.clock, "wall", lambda: 1_795_600_000.0)  # days after that
    api.objects[f"{PODS}/old"] = body
    with place.opened("hpc", exists=True):
        assert (f"{PODS}/old" not in api.objects) is removed


def test_an_owner_that_is_no_label_has_one_of_its_own() -> None:
    assert label_of(OWNER) == OWNER
    assert label_of("a" * 64) != label_of("b" * 64)
    assert len(label_of("a" * 64)) <= 63


def _make_and_raise(place: ProbePlace, error: BaseException) -> None:
    place.put(A_POD)
    raise error
