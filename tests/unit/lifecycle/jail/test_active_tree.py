"""Switching to a tree of the jail: what is shown before, what is done, and what is left of it."""

import pytest

from soperator_pulumi.errors import JailError, NotReadyError
from soperator_pulumi.lifecycle.active_tree import ActiveTreeProvider
from tests.fakes.jail import (
    JOB,
    LIVE_JOBS,
    NEW,
    NO_IMAGE,
    OLD,
    REFUSED,
    TEMPLATE,
    JailWorld,
    Printed,
    Run,
    wanted,
)
from tests.fakes.objects import JOBS, PODS, SELECTOR, KilledError


def test_the_tree_that_is_active_is_no_change(printed: Printed) -> None:
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted(OLD, changes="carry_over")).changes is False
    assert printed.lines() == []


def test_another_tree_is_a_change_and_the_switch_is_printed(printed: Printed) -> None:
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted()).changes is True
    assert printed.lines() == [f"jail: debian:12 ({OLD}) -> debian:13 ({NEW})"]


def test_a_tree_that_will_be_filled_first_may_be_absent(world: JailWorld, printed: Printed) -> None:
    del world.trees[1]
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted()).changes is True
    assert printed.lines() == [f"jail: debian:12 ({OLD}) -> debian:13 ({NEW})"]


def test_a_switch_that_someone_made_by_hand_is_a_change(world: JailWorld) -> None:
    world._flip(NEW)
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted(OLD)).changes is True


def test_a_tree_that_is_not_there_fails_the_preview_and_names_those_that_are(world: JailWorld) -> None:
    with pytest.raises(JailError) as raised:
        ActiveTreeProvider().diff("", wanted(OLD), wanted("eeeeeeeeeeee"))
    assert 'jail.active: got "eeeeeeeeeeee", but the jail has no complete tree of that name.' in str(raised.value)
    assert f"\n  {OLD}, debian:12, filled 2026-11-21, active\n  {NEW}, debian:13, filled 2026-11-21\n" in str(
        raised.value
    )


def test_a_claim_that_has_lost_its_trees_is_told_in_the_preview(world: JailWorld, printed: Printed) -> None:
    world.trees = []
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted(OLD, populated=OLD)).changes is True
    first, second = printed.lines()
    assert first.startswith(
        f"jail: its claim holds no tree, and tree {OLD} was active on it: the volume was emptied, or "
    )
    assert second.startswith("jail: no tree -> ")


def test_a_claim_that_has_lost_its_trees_fails_the_deployment_with_what_to_do(world: JailWorld) -> None:
    world.trees = []
    with pytest.raises(JailError, match=r"Restore the volume, or name the claim .* jail\.storage\.accept\.emptied"):
        ActiveTreeProvider().update("", wanted(OLD), wanted(OLD))
    assert world.jobs_of() == []


def test_a_jail_that_cannot_be_looked_at_counts_as_changed_and_is_told(world: JailWorld, printed: Printed) -> None:
    del world.objects[f"{PODS}/controller-0"]
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted(OLD)).changes is True
    world.unreachable = True
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted(OLD)).changes is True
    first, second = printed.lines()
    assert first == "jail: cannot read which tree is active: pod hpc/controller-0: cannot run commands there."
    assert "The Kubernetes API" in second


def test_an_answer_that_is_none_is_reported(world: JailWorld, printed: Printed) -> None:
    world.trees = [{"no": "tree"}]
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted(OLD)).changes is True
    assert "its trees cannot be listed" in printed.lines()[0]


def test_another_number_of_kept_trees_is_a_change() -> None:
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted(OLD, keep_trees=3.0)).changes is True


def test_another_namespace_is_another_jail() -> None:
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted(OLD, namespace="other")).replaces == ["namespace"]


def test_where_the_wanted_tree_is_active_nothing_is_run(world: JailWorld) -> None:
    assert ActiveTreeProvider().create(wanted(OLD)).outs == wanted(OLD)
    assert world.jobs_of() == []


def test_a_switch_is_a_job_whose_report_is_printed(world: JailWorld, printed: Printed) -> None:
    outs = ActiveTreeProvider().update("", wanted(OLD), wanted()).outs
    assert outs is not None
    assert outs["tree"] == world.active == NEW
    assert world.ran[0] == ["switch", "--jail", "/jail", "--to", NEW, "--changes", "refuse"]
    lines = printed.lines()
    assert f"jail: 2 files were changed in {OLD}" in lines
    assert f"jail: new jobs enter debian:13 ({NEW})" in lines
    assert not any("{" in line for line in lines), "an object for programs"


def test_the_first_switch_of_a_new_stack_is_reported(world: JailWorld, printed: Printed) -> None:
    ActiveTreeProvider().create(wanted())
    assert printed.lines()[0] == f"jail: debian:12 ({OLD}) -> debian:13 ({NEW})"
    assert world.active == NEW


def test_a_switch_is_through_when_new_sessions_enter_the_tree(world: JailWorld) -> None:
    world.add_pod("login-1", "login", "creating")
    world.entered["login-0"] = OLD
    world.clock.after(20, lambda: world.entered.update({"login-0": NEW}))
    ActiveTreeProvider().update("", wanted(OLD), wanted())
    assert 20 <= world.clock.time < 25


def test_a_login_pod_that_does_not_follow_fails_the_run_and_is_looked_at_by_the_next_one(world: JailWorld) -> None:
    world.entered["login-0"] = OLD
    with pytest.raises(NotReadyError, match=f"new sessions in pod login-0 still enter tree {OLD} instead of {NEW}"):
        ActiveTreeProvider().update("", wanted(OLD), wanted())
    world.entered["login-0"] = NEW
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted()).changes is True
    ActiveTreeProvider().update("", wanted(OLD), wanted())
    assert [run[0] for run in world.ran] == ["switch", "collect"]


def test_a_job_has_a_name_of_its_own_goes_by_itself_and_is_never_tried_again_when_refused(world: JailWorld) -> None:
    ActiveTreeProvider().update("", wanted(OLD), wanted())
    ActiveTreeProvider().update("", wanted(), wanted(OLD))
    jobs = world.jobs_of("switch")
    assert len({job["metadata"]["name"] for job in jobs}) == 2
    spec = jobs[0]["spec"]
    assert spec["ttlSecondsAfterFinished"] > 0
    assert spec["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"] == [REFUSED]
    assert jobs[0]["metadata"]["labels"].items() >= {"team": "hpc", **SELECTOR}.items()


def test_whole_numbers_of_a_pod_template_stay_whole(world: JailWorld) -> None:
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "securityContext": {"runAsUser": 0.0, "x": [1.5, 2.0]}}}
    ActiveTreeProvider().update("", wanted(OLD), wanted(template=template))
    context = world.jobs_of("switch")[0]["spec"]["template"]["spec"]["securityContext"]
    assert repr(context) == "{'runAsUser': 0, 'x': [1.5, 2]}"


def test_a_refused_switch_fails_with_the_report_and_changes_nothing(world: JailWorld) -> None:
    report = "users changed the tree. Set jail.changes to carry_over or leave_behind:\n  etc/hosts"
    world.programs["switch"] = lambda _arguments: Run(REFUSED, "", report)
    with pytest.raises(JailError) as raised:
        ActiveTreeProvider().update("", wanted(OLD), wanted())
    assert str(raised.value) == f"jail: the switch to debian:13 ({NEW}) failed: {report}"
    assert world.active == OLD
    assert world.jobs_of("collect") == []


def test_a_switch_that_someone_takes_back_at_once_is_an_error(world: JailWorld) -> None:
    world.programs["switch"] = lambda _arguments: Run()
    with pytest.raises(JailError, match="another run switched to another tree"):
        ActiveTreeProvider().update("", wanted(OLD), wanted())


def test_a_switch_to_a_tree_that_is_not_there_runs_nothing(world: JailWorld) -> None:
    with pytest.raises(JailError, match=r"jail\.active: got"):
        ActiveTreeProvider().create(wanted("eeeeeeeeeeee"))
    assert world.jobs_of() == []


def killed(calls: int) -> JailWorld:
    """Run a switch that is killed before the given call of its, then run as the next `up` does."""
    world, provider = JailWorld(), ActiveTreeProvider()
    with pytest.MonkeyPatch.context() as patch:
        world.connect(patch)
        world.calls_left = calls
        with pytest.raises(KilledError):
            provider.update("", wanted(OLD), wanted())
        world.calls_left = None
        if provider.diff("", wanted(OLD), wanted()).changes:
            provider.update("", wanted(OLD), wanted())
    return world


@pytest.mark.parametrize("calls", range(25))
def test_a_run_that_was_killed_in_a_switch_is_completed_by_the_next_one(calls: int) -> None:
    world = killed(calls)
    assert world.active == NEW
    assert [run[0] for run in world.ran].count("switch") == 1
    assert "collect" in [run[0] for run in world.ran]


def test_the_work_of_a_run_that_was_killed_is_waited_for(printed: Printed) -> None:
    killed(5)
    assert any("waits for the Job jail-switch-" in line for line in printed.lines())


def test_work_that_a_killed_run_has_left_and_that_cannot_start_is_removed(world: JailWorld, printed: Printed) -> None:
    world.programs["switch"] = lambda _arguments: Run(seconds=1e9)
    world.clock.after(1, lambda: world.job_pods()[0]["status"].update(NO_IMAGE))
    with pytest.raises(NotReadyError, match="ErrImagePull"):
        ActiveTreeProvider().update("", wanted(OLD), wanted())
    (stuck,) = world.jobs_of("switch")
    world.programs["switch"] = world._switch
    ActiveTreeProvider().update("", wanted(OLD), wanted())
    assert world.active == NEW
    assert stuck not in world.jobs_of("switch")
    assert f"jail: the Job {stuck['metadata']['name']} makes no progress and is removed" in printed.lines()


def test_a_repeated_run_does_nothing(world: JailWorld) -> None:
    outs = ActiveTreeProvider().update("", wanted(OLD), wanted()).outs
    count = len(world.ran)
    assert outs is not None
    assert ActiveTreeProvider().diff("", outs, wanted()).changes is False
    ActiveTreeProvider().create(wanted())
    assert len(world.ran) == count


def test_removing_the_cluster_ends_work_on_the_trees_and_keeps_them(world: JailWorld) -> None:
    outs = ActiveTreeProvider().update("", wanted(OLD), wanted()).outs
    assert outs is not None
    world.add_job(JOB, "collect")
    ActiveTreeProvider().delete("", outs)
    assert [job["metadata"]["name"] for job in world.jobs_of()] == [JOB], "that one is Pulumi's own"
    assert LIVE_JOBS not in world.objects
    assert world.active == NEW


def test_a_stuck_switch_is_given_up_in_time(world: JailWorld) -> None:
    world.programs["switch"] = lambda _arguments: Run(seconds=1e9)
    with pytest.raises(NotReadyError, match="makes no progress"):
        ActiveTreeProvider().update("", wanted(OLD), wanted())
    assert JOBS in next(iter(path for path in world.objects if "jail-switch" in path))
