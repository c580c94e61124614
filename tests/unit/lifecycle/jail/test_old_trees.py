"""Removing old trees, and never one that someone is in."""

from collections.abc import Sequence
from typing import Any

import pytest

from soperator_pulumi.errors import TransportError
from soperator_pulumi.lifecycle.active_tree import ActiveTreeProvider
from soperator_pulumi.slurm.transport import Answer
from tests.fakes.jail import LIVE_JOBS, NEW, OLD, REFUSED, JailWorld, Printed, Run, wanted
from tests.fakes.slurmctld import Job
from tests.fakes.small_world import FakeTransport


def collected(world: JailWorld) -> list[str]:
    """Switch, and return the arguments with which old trees were removed."""
    ActiveTreeProvider().update("", wanted(OLD), wanted())
    return next((run for run in world.ran if run[0] == "collect"), [])


def test_live_jobs_and_trees_with_open_sessions_are_passed_to_what_removes_old_trees(world: JailWorld) -> None:
    world.slurm.jobs = {7: Job(7, state="RUNNING"), 8: Job(8, state="COMPLETED"), 9: Job(9)}
    live_jobs: list[dict[str, str]] = []

    def collect(_arguments: list[str]) -> Run:
        live_jobs.append(world.objects[LIVE_JOBS]["data"])
        return Run()

    world.programs["collect"] = collect
    world.add_pod("login-gpu-0", "login-gpu")
    world.in_use = {"login-0": Answer(0, f"{OLD}\n", ""), "login-gpu-0": Answer(0, "cccccccccccc\n", "")}
    assert collected(world) == [
        "collect",
        "--jail",
        "/jail",
        "--keep",
        "2",
        f"--in-use={OLD},cccccccccccc",
        "--live-jobs",
        "@/live/jobs",
    ]
    assert live_jobs == [{"jobs": "7\n9\n"}]
    assert LIVE_JOBS not in world.objects, "it was for that Job alone"
    (job,) = world.jobs_of("collect")
    assert {"name": "jail-live-jobs", "mountPath": "/live", "readOnly": True} in job["spec"]["template"]["spec"][
        "containers"
    ][0]["volumeMounts"]


def test_a_tree_of_which_a_pod_has_mounted_a_part_is_in_use(world: JailWorld) -> None:
    admin = world.add_pod("admin-0", "login")
    admin["metadata"]["labels"] |= {"app.kubernetes.io/component": "admin", "app.kubernetes.io/name": "admin"}
    admin["spec"]["containers"][0]["volumeMounts"] = [
        {"name": "jail", "mountPath": "/etc", "subPath": "trees/dddddddddddd/etc"}
    ]
    assert "--in-use=dddddddddddd" in collected(world)
    admin["status"]["phase"] = "Succeeded"
    world.ran.clear()
    ActiveTreeProvider().update("", wanted(), wanted(OLD))
    assert "--in-use=" in world.ran[1]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda world: world.in_use.update({"login-0": Answer(1, "", "no /proc")}), "login-0: no"),
        (
            lambda world: world.answers.update({"squeue --json --all": Answer(0, '{"jobs": [{"not": "a job"}]}', "")}),
            "not Slurm's JSON",
        ),
    ],
    ids=["sessions", "jobs"],
)
def test_where_it_is_not_known_who_is_in_them_nothing_is_removed_and_the_switch_stands(
    world: JailWorld, printed: Printed, spoil: Any, words: str
) -> None:
    spoil(world)
    assert collected(world) == []
    assert world.active == NEW
    (line,) = [line for line in printed.lines() if "no old tree is removed now" in line]
    assert words in line


def test_a_login_pod_that_cannot_be_reached_keeps_all_trees(
    world: JailWorld, monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    def transport(namespace: str, pod: str, container: str, *, coreutils: bool = True) -> Any:
        if pod == "login-0":
            raise TransportError("pod hpc/login-0: not reached.")
        return JailWorld.transport(world, namespace, pod, container, coreutils=coreutils)

    monkeypatch.setattr(world, "transport", transport)
    assert collected(world) == []
    assert "login-0: not reached" in "".join(printed.lines())


def test_a_login_pod_that_does_not_run_has_no_one_in_it(world: JailWorld) -> None:
    world.add_pod("login-1", "login", "creating")
    assert "--in-use=" in collected(world)


def test_removing_that_fails_is_reported_and_is_no_error(world: JailWorld, printed: Printed) -> None:
    world.programs["collect"] = lambda _arguments: Run(REFUSED, "", "input/output error")
    assert collected(world) != []
    line = "jail: could not remove old trees, the next switch tries again: input/output error"
    assert line in printed.lines()


def test_fewer_kept_trees_remove_old_ones_without_a_switch(world: JailWorld) -> None:
    world._flip(NEW)
    ActiveTreeProvider().update("", wanted(keep_trees=3.0), wanted(keep_trees=1.0))
    assert [run[0] for run in world.ran] == ["collect"]


def test_a_look_at_live_jobs_pauses_by_the_clock_that_a_cancel_ends(
    world: JailWorld, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, began = FakeTransport.run, world.clock.time

    def lose_squeue(transport: FakeTransport, command: Sequence[str], **more: Any) -> Answer:
        if command[0] == "squeue":
            looked_at.append(world.clock.time - began)
            raise TransportError("the connection broke")
        return run(transport, command, **more)

    looked_at: list[float] = []
    monkeypatch.setattr(FakeTransport, "run", lose_squeue)
    assert collected(world) == []
    assert looked_at[-1] - looked_at[0] == pytest.approx(4)
    assert [line for line in printed.lines() if "the connection broke" in line]
