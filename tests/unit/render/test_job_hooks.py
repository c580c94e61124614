"""Settings of the hooks of jobs, as rendered, against the program that reads them, and slurm.conf."""

import json
from typing import Any

import pytest

from job_hooks import gpu_job_map, hook_settings
from job_hooks.built_in_hooks import HOOKS
from job_hooks.hook_command import SETTINGS
from soperator_pulumi.render import layout
from soperator_pulumi.render.change_impact import parse_conf
from soperator_pulumi.render.job_hooks import FORMAT, hook_files
from soperator_pulumi.render.slurm_conf import slurm_conf
from soperator_pulumi.spec.job_hooks import DEFAULTS, JobHook
from tests.strategies import a_spec

GPUS: list[dict[str, Any]] = [
    {"name": "gpu", "cpus": 8, "memory_gib": 8, "gpus": {"count": 8}},
    {"name": "cpu", "cpus": 8, "memory_gib": 8},
    {"name": "mig", "cpus": 8, "memory_gib": 8, "gpus": {"mig": {"1g.10gb": 7}}},
    {"name": "shared", "cpus": 8, "memory_gib": 8, "gpus": {"count": 8, "shards_per_gpu": 4}},
    {"name": "amd", "cpus": 8, "memory_gib": 8, "gpus": {"count": 8, "resource": "amd.com/gpu"}},
]

SCRIPT = {"script": "true\n", "action": "requeue"}


def settings(moment: str, hooks: dict[str, Any], **changes: Any) -> hook_settings.MomentSettings:
    return hook_settings.parse(hook_files(a_spec(hooks=hooks, **changes))["job_hooks.json"], moment)


def parameters(**changes: Any) -> dict[str, str]:
    return dict(parse_conf(slurm_conf(a_spec(**changes))).parameters)


def test_the_program_knows_the_hooks_of_the_spec_and_no_others() -> None:
    assert [*HOOKS] == [*DEFAULTS] == [*JobHook]
    assert hook_settings.FORMAT == FORMAT
    assert f"{layout.HEALTH_SETTINGS}/job_hooks.json" == SETTINGS
    assert gpu_job_map.FOLDER == layout.GPU_JOBS


def test_a_cluster_without_hooks_has_no_trace_of_them() -> None:
    assert hook_files(a_spec()) == {}
    assert not {"Prolog", "Epilog", "PrologFlags", "PrologEpilogTimeout"} & parameters().keys()


def test_hooks_of_no_one_cost_a_cluster_of_cpus_an_epilog_alone() -> None:
    found = parameters(hooks={})

    assert found["Epilog"] == layout.JOB_EPILOG
    assert not {"Prolog", "PrologFlags"} & found.keys()
    assert "nohold_on_prolog_fail" not in found["SchedulerParameters"]
    assert [hook.name for hook in settings("epilog", {}).hooks] == ["processes_ended"]
    assert settings("prolog", {}).hooks == ()


def test_node_sets_whose_jobs_have_gpus_alone_have_a_prolog() -> None:
    prolog, epilog = (settings(moment, {}, node_sets=GPUS) for moment in ("prolog", "epilog"))

    assert [hook.name for hook in prolog.hooks] == ["gpus_unused_before"]
    assert [hook.name for hook in epilog.hooks] == ["gpus_unused_after", "processes_ended"]
    assert prolog.whole_gpus == {"gpu"}
    assert parameters(hooks={}, node_sets=GPUS)["Prolog"] == layout.JOB_PROLOG
    assert "Prolog" not in parameters(hooks={}, node_sets=GPUS[1:])


def test_the_map_of_gpus_is_written_and_removed_where_its_folder_is_given() -> None:
    hooks = {"job_mapping": "/var/lib/x"}

    assert "map_gpus" in [hook.name for hook in settings("prolog", hooks, node_sets=GPUS).hooks]
    assert "unmap_gpus" in [hook.name for hook in settings("epilog", hooks, node_sets=GPUS).hooks]
    assert settings("prolog", hooks).hooks == ()


def test_scripts_come_after_ours_before_a_job_and_before_ours_after_it() -> None:
    hooks = {"prolog": {"b": SCRIPT, "a": SCRIPT}, "epilog": {"z": {"script": "true\n"}}}
    prolog, epilog = (settings(moment, hooks, node_sets=GPUS) for moment in ("prolog", "epilog"))

    assert [hook.name for hook in prolog.hooks] == ["gpus_unused_before", "a", "b"]
    assert [hook.name for hook in epilog.hooks] == ["z", "gpus_unused_after", "processes_ended"]
    assert prolog.hooks[2].command == ("/bin/sh", "/etc/soperator/health/prolog-b.sh")
    assert hook_files(a_spec(hooks=hooks))["epilog-z.sh"] == "true\n"


def test_a_hook_is_switched_on_and_off_and_changed() -> None:
    ours = {"drop_page_cache": {"enabled": True, "timeout": "5s"}, "processes_ended": {"enabled": False}}
    (only,) = settings("epilog", {"ours": ours}).hooks

    assert only == hook_settings.HookSettings("drop_page_cache", "log", 5.0, ())


def test_a_failed_prolog_holds_no_job_and_the_users_own_entries_stay() -> None:
    found = parameters(
        hooks={"prolog": {"a": SCRIPT}},
        slurm={"extra": {"SchedulerParameters": "bf_continue", "PrologFlags": "Contain"}},
    )

    entries = found["SchedulerParameters"].split(",")
    assert (entries[0], entries[-1]) == ("nohold_on_prolog_fail", "bf_continue")
    assert found["PrologFlags"] == "Alloc,Contain"


@pytest.mark.parametrize(
    ("hooks", "seconds"),
    [
        ({}, 60 + 40),
        ({"prolog": {"a": {**SCRIPT, "timeout": "5m"}}}, 60 + 300),
        ({"prolog": {"a": {**SCRIPT, "timeout": "10s"}}, "epilog": {"b": {"script": "x"}}}, 60 + 30 + 40),
    ],
)
def test_slurmd_waits_as_long_as_all_hooks_of_a_moment_take(hooks: dict[str, Any], seconds: int) -> None:
    assert parameters(hooks=hooks)["PrologEpilogTimeout"] == str(seconds)


def test_a_longer_time_of_the_users_own_stays() -> None:
    conf = slurm_conf(a_spec(hooks={}, slurm={"extra": {"PrologEpilogTimeout": 900}}))

    assert [line for line in conf.splitlines() if "Timeout=" in line and "Epilog" in line] == [
        "PrologEpilogTimeout=900"
    ]


def test_no_file_of_the_hooks_can_be_one_of_a_node_set() -> None:
    files = hook_files(a_spec(hooks={"prolog": {"a": SCRIPT}}))
    assert json.loads(files.pop("job_hooks.json"))
    assert all(name.endswith(".sh") and name.startswith(("prolog-", "epilog-")) for name in files)
