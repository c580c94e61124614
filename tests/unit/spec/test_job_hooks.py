"""Hooks of jobs in a spec: each problem with its place and its next step, all of them at once."""

from typing import Any

import pytest

from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.cluster import parse_cluster
from tests.strategies import a_cluster, a_spec


def problems(extra: dict[str, object] | None = None, **hooks: Any) -> dict[str, str]:
    with pytest.raises(SpecError) as refused:
        parse_cluster(a_cluster(hooks=hooks, slurm={"extra": extra or {}}))
    return {problem.path: problem.text for problem in refused.value.problems}


def test_all_problems_of_hooks_are_reported_at_once() -> None:
    found = problems(
        {"Prolog": "/x", "PrologEpilogTimeout": 30},
        prolog={"a": {"script": "true"}, "B_": {"script": "true"}, "c": {"script": " "}, "d": {"script": "x", "x": 1}},
        epilog={"e": {"script": "true", "action": "requeue"}, "f": {"script": "true", "timeout": "1h"}},
        ours={"processes_ended": {"action": "requeue"}, "drop_cache": {}, "map_gpus": {"timeout": "1s"}},
        job_mapping=None,
    )

    assert found.keys() == {
        "slurm.extra.Prolog",
        "hooks.prolog.B_",
        "hooks.prolog.c.script",
        "hooks.prolog.d.x",
        "hooks.epilog.e.action",
        "hooks.epilog.f.timeout",
        "hooks.ours.processes_ended.action",
        "hooks.ours.drop_cache",
        "hooks.ours.map_gpus",
    }


@pytest.mark.parametrize("name", ["PrologEpilogTimeout"])
def test_a_time_of_slurms_that_would_kill_hooks_is_refused(name: str) -> None:
    found = problems({name: 99})

    assert found == {
        f"slurm.extra.{name}": "got 99, but the hooks take up to 100 s together, and slurmd would kill them. Raise it, "
        "remove it, or lower the hooks' timeouts."
    }
    assert a_spec(hooks={}, slurm={"extra": {name: 100}}).hooks is not None


def test_the_times_of_26_05_are_held_to_the_same() -> None:
    with pytest.raises(SpecError, match=r"slurm\.extra\.EpilogTimeout"):
        a_spec(hooks={}, slurm={"version": "26.05", "extra": {"EpilogTimeout": 99}})


def test_without_hooks_slurms_own_parameters_are_free() -> None:
    assert a_spec(slurm={"extra": {"Epilog": "/x", "PrologEpilogTimeout": 5}}).hooks is None


def test_a_prolog_may_requeue_and_nothing_after_a_job() -> None:
    assert a_spec(hooks={"prolog": {"a": {"script": "x", "action": "requeue"}}}).hooks
    assert problems(epilog={"a": {"script": "x", "action": "requeue"}}) == {
        "hooks.epilog.a.action": 'got "requeue", but the job has ended by then. Choose "log" or "drain".'
    }
