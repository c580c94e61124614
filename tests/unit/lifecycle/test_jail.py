"""Waiting for a tree of the jail, switching to it, and removing old ones."""

from collections.abc import Mapping
from typing import Any

import pytest

from soperator_pulumi.errors import JailError, KubernetesError, NotReadyError, TransportError
from soperator_pulumi.lifecycle.active_tree import ActiveTreeProvider
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.lifecycle.tree_populated import TreePopulatedProvider
from soperator_pulumi.slurm import Answer
from tests.unit.lifecycle.jail_world import JOBS, NEW, OLD, REFUSED, TEMPLATE, JailWorld, Run
from tests.unit.lifecycle.world import NAMESPACE, PODS, SELECTOR, KilledError

JOB = f"jail-populate-{NEW}"
FILLED = {
    "namespace": NAMESPACE,
    "job": JOB,
    "tree": NEW,
    "source": "debian:13",
    "claim": "jail",
    "kubeconfig": None,
    "context": None,
}
NO_IMAGE = {
    "phase": "Pending",
    "containerStatuses": [{"name": "jail", "state": {"waiting": {"reason": "ErrImagePull", "message": "none"}}}],
}
LIVE_JOBS = f"/api/v1/namespaces/{NAMESPACE}/configmaps/jail-live-jobs"


def wanted(tree: str = NEW, **changes: Any) -> dict[str, Any]:
    return {
        "namespace": NAMESPACE,
        "tree": tree,
        "populated": NEW,
        "source": "debian:13",
        "keep_trees": 2.0,
        "changes": "refuse",
        "selector": SELECTOR,
        "labels": {"team": "hpc"},
        "annotations": {},
        "template": TEMPLATE,
        "kubeconfig": None,
        "context": None,
        **changes,
    }


@pytest.fixture
def world() -> JailWorld:
    return JailWorld()


@pytest.fixture(autouse=True)
def reached(monkeypatch: pytest.MonkeyPatch, world: JailWorld) -> None:
    """Both providers reach the small world, and its time is theirs."""

    def kube(_self: LiveProvider, _props: Mapping[str, Any], *, deleting: bool = False) -> JailWorld:
        del deleting
        if world.unreachable:
            raise KubernetesError("The Kubernetes API at https://x is not reached.")
        return world

    monkeypatch.setattr(LiveProvider, "kube", kube)
    for module in ("tree_populated", "active_tree"):
        monkeypatch.setattr(f"soperator_pulumi.lifecycle.{module}.MachineClock", lambda: world.clock)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> "Printed":
    return Printed(capsys)


class Printed:
    """What a person has seen since the last look."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def lines(self) -> list[str]:
        return self._capsys.readouterr().out.splitlines()


# -- TreePopulated ----------------------------------------------------------------------------------------------


def populates(world: JailWorld, *runs: Run) -> None:
    """Let the populate Job's pods do one after the other."""
    remaining = list(runs)
    world.programs["populate"] = lambda _arguments: remaining.pop(0)
    world.add_job(JOB, "populate", container="populate")


def test_a_tree_is_waited_for_and_its_size_is_told(world: JailWorld, printed: Printed) -> None:
    populates(world, Run(0, 'populate: 3 of 3 files\n{"files": 30000, "bytes": 943718400, "seconds": 12.3}'))
    assert TreePopulatedProvider().create(dict(FILLED)).outs == FILLED
    assert printed.lines()[-1] == f"jail: debian:13 is tree {NEW}: 30,000 files, 900 MiB, in 12 s"


def test_a_tree_that_was_whole_once_is_not_looked_at_again(world: JailWorld) -> None:
    world.unreachable = True
    news = {**FILLED, "kubeconfig": "other"}
    assert TreePopulatedProvider().diff("", dict(FILLED), news).changes is False
    assert TreePopulatedProvider().read("hpc/x", dict(FILLED)).outs == FILLED


@pytest.mark.parametrize("changed", [{"tree": OLD, "job": f"jail-populate-{OLD}"}, {"claim": "another"}], ids=str)
def test_another_tree_and_another_claim_are_waited_for(changed: dict[str, str]) -> None:
    result = TreePopulatedProvider().diff("", dict(FILLED), {**FILLED, **changed})
    assert (result.changes, result.replaces or []) == (True, [])


def test_a_tree_that_cannot_be_filled_fails_with_tree_source_reason_and_what_to_do(world: JailWorld) -> None:
    populates(world, Run(REFUSED, message="the checksum is another one"))
    with pytest.raises(JailError) as raised:
        TreePopulatedProvider().create(dict(FILLED))
    assert f"the tree {NEW} was not filled from debian:13: the checksum is another one\n" in str(raised.value)
    assert "run again" in str(raised.value)


def test_a_job_that_had_failed_is_started_again_by_the_next_run(world: JailWorld, printed: Printed) -> None:
    populates(world, Run(REFUSED, message="the disk is full"), Run(0, "{}"))
    with pytest.raises(JailError, match="the disk is full"):
        TreePopulatedProvider().create(dict(FILLED))
    assert TreePopulatedProvider().create(dict(FILLED)).outs == FILLED
    assert f"jail: the Job {JOB} has failed before: it is started again" in printed.lines()


def test_a_job_that_fails_again_is_not_started_a_third_time_in_one_run(world: JailWorld) -> None:
    populates(world, Run(REFUSED), Run(REFUSED, message="still full"))
    world.clock.sleep(5)
    with pytest.raises(JailError, match="still full"):
        TreePopulatedProvider().update("", dict(FILLED), dict(FILLED))


def test_a_job_that_an_interrupted_run_left_running_is_followed(world: JailWorld) -> None:
    populates(world, Run(0, "{}", seconds=60))
    world.calls_left = 3
    with pytest.raises(KilledError):
        TreePopulatedProvider().create(dict(FILLED))
    world.calls_left = None
    TreePopulatedProvider().create(dict(FILLED))
    assert len(world.ran) == 1


def test_removing_the_cluster_removes_no_tree(world: JailWorld) -> None:
    world.unreachable = True
    TreePopulatedProvider().delete("", dict(FILLED))


# -- ActiveTree: preview ----------------------------------------------------------------------------------------


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


def test_a_switch_that_somebody_made_by_hand_is_a_change(world: JailWorld) -> None:
    world._flip(NEW)
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted(OLD)).changes is True


def test_a_tree_that_is_not_there_fails_the_preview_and_names_those_that_are(world: JailWorld) -> None:
    with pytest.raises(JailError) as raised:
        ActiveTreeProvider().diff("", wanted(OLD), wanted("eeeeeeeeeeee"))
    assert 'jail.active: got "eeeeeeeeeeee", but the jail has no complete tree of that name.' in str(raised.value)
    assert f"\n  {OLD}, debian:12, filled 2026-11-21, active\n  {NEW}, debian:13, filled 2026-11-21\n" in str(
        raised.value
    )


def test_a_jail_that_cannot_be_looked_at_counts_as_changed_and_is_told(world: JailWorld, printed: Printed) -> None:
    del world.objects[f"{PODS}/controller-0"]
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted(OLD)).changes is True
    world.unreachable = True
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted(OLD)).changes is True
    first, second = printed.lines()
    assert first == "jail: it is not known which tree is active: pod hpc/controller-0: no command can be run there."
    assert "The Kubernetes API" in second


def test_an_answer_that_is_none_is_told(world: JailWorld, printed: Printed) -> None:
    world.trees = [{"no": "tree"}]
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted(OLD)).changes is True
    assert "its trees cannot be listed" in printed.lines()[0]


def test_another_number_of_kept_trees_is_a_change() -> None:
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted(OLD, keep_trees=3.0)).changes is True


def test_another_namespace_is_another_jail() -> None:
    assert ActiveTreeProvider().diff("", wanted(OLD), wanted(OLD, namespace="other")).replaces == ["namespace"]


# -- ActiveTree: switching --------------------------------------------------------------------------------------


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


def test_the_first_switch_of_a_new_stack_is_told(world: JailWorld, printed: Printed) -> None:
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
    assert str(raised.value) == f"jail: it was not switched to debian:13 ({NEW}): {report}"
    assert world.active == OLD
    assert world.jobs_of("collect") == []


def test_a_switch_that_somebody_takes_back_at_once_is_an_error(world: JailWorld) -> None:
    world.programs["switch"] = lambda _arguments: Run()
    with pytest.raises(JailError, match="and then to another tree by somebody else"):
        ActiveTreeProvider().update("", wanted(OLD), wanted())


def test_a_switch_to_a_tree_that_is_not_there_runs_nothing(world: JailWorld) -> None:
    with pytest.raises(JailError, match=r"jail\.active: got"):
        ActiveTreeProvider().create(wanted("eeeeeeeeeeee"))
    assert world.jobs_of() == []


def killed(calls: int) -> JailWorld:
    """Run a switch that is killed before the given call of its, then run as the next `up` does."""
    world, provider = JailWorld(), ActiveTreeProvider()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ActiveTreeProvider, "kube", lambda *_args, **_options: world)
        patch.setattr("soperator_pulumi.lifecycle.active_tree.MachineClock", lambda: world.clock)
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
    assert any("an interrupted run's Job jail-switch-" in line for line in printed.lines())


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
    assert f"jail: the Job {stuck['metadata']['name']} does not get on and is removed" in printed.lines()


def test_a_repeated_run_does_nothing(world: JailWorld) -> None:
    outs = ActiveTreeProvider().update("", wanted(OLD), wanted()).outs
    count = len(world.ran)
    assert outs is not None
    assert ActiveTreeProvider().diff("", outs, wanted()).changes is False
    ActiveTreeProvider().create(wanted())
    assert len(world.ran) == count


# -- ActiveTree: removing old trees -----------------------------------------------------------------------------


def collected(world: JailWorld) -> list[str]:
    """Switch, and return the arguments with which old trees were removed."""
    ActiveTreeProvider().update("", wanted(OLD), wanted())
    return next((run for run in world.ran if run[0] == "collect"), [])


def test_live_jobs_and_trees_with_open_sessions_are_told_to_what_removes_old_trees(world: JailWorld) -> None:
    world.jobs = [
        {"job_id": 7, "job_state": ["RUNNING"]},
        {"job_id": 8, "job_state": ["COMPLETED"]},
        {"job_id": 9, "job_state": ["PENDING"]},
    ]
    live_jobs: list[dict[str, str]] = []

    def collect(_arguments: list[str]) -> Run:
        live_jobs.append(world.objects[LIVE_JOBS]["data"])
        return Run()

    world.programs["collect"] = collect
    world.add_pod("login-1", "login")
    world.in_use = {"login-0": Answer(0, f"{OLD}\n", ""), "login-1": Answer(0, "cccccccccccc\n", "")}
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
    admin["metadata"]["labels"]["app.kubernetes.io/component"] = "admin"
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
        (lambda world: world.in_use.update({"login-0": Answer(1, "", "no /proc")}), "login-0 cannot be looked at: no"),
        (lambda world: world.jobs.append({"not": "a job"}), "not Slurm's JSON"),
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


def test_a_login_pod_that_does_not_run_has_nobody_in_it(world: JailWorld) -> None:
    world.add_pod("login-1", "login", "creating")
    assert "--in-use=" in collected(world)


def test_removing_that_fails_is_told_and_is_no_error(world: JailWorld, printed: Printed) -> None:
    world.programs["collect"] = lambda _arguments: Run(REFUSED, "", "input/output error")
    assert collected(world) != []
    line = "jail: removing old trees has failed, the next switch tries again: input/output error"
    assert line in printed.lines()


def test_fewer_kept_trees_remove_old_ones_without_a_switch(world: JailWorld) -> None:
    world._flip(NEW)
    ActiveTreeProvider().update("", wanted(keep_trees=3.0), wanted(keep_trees=1.0))
    assert [run[0] for run in world.ran] == ["collect"]


# -- ActiveTree: the end ----------------------------------------------------------------------------------------


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
    with pytest.raises(NotReadyError, match="does not get on"):
        ActiveTreeProvider().update("", wanted(OLD), wanted())
    assert JOBS in next(iter(path for path in world.objects if "jail-switch" in path))
