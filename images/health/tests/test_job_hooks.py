"""Hooks of jobs: real scripts, processes and files; slurmctld is made."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from health_testing import IMPORT_ROOTS
from health_testing.smi_outputs import query
from job_hooks import built_in_hooks, gpu_job_map, gpus_in_use, users_processes
from job_hooks.hook_command import run_hooks
from job_hooks.hook_run import HookRun, NodeCalls
from job_hooks.hook_settings import HookSettings, parse
from job_hooks.job_on_node import JobOnNode, job_of
from node_health.bounded import is_there
from node_health.node_record import NoAnswerError
from node_health.state_machine import NodeState, check_of

USER = 64_777
"""Id that no user has."""

JOB = JobOnNode("7", USER, "gpu-0", (0, 1))


class World:
    """slurmctld with one node, and the log of the pod."""

    def __init__(self, node: NodeState | None = None) -> None:
        self.node = node or NodeState("IDLE", "")
        self.log: list[dict[str, Any]] = []
        self.answers = True
        self.noted: list[str] = []

    def run(self, *hooks: HookSettings, variables: dict[str, str] | None = None) -> int:
        return HookRun(JOB, variables or {}, NodeCalls(self._ask, self._drain, self.noted.append), self.log.append).run(
            hooks
        )

    def _ask(self, _node: str, _seconds: float) -> NodeState:
        if not self.answers:
            raise NoAnswerError("scontrol: no answer in 10 s")
        return self.node

    def _drain(self, _node: str, reason: str, _seconds: float) -> None:
        self.node = NodeState("IDLE+DRAIN", reason)


def a_script(text: str, action: str = "drain", seconds: float = 20, name: str = "site") -> HookSettings:
    return HookSettings(name, action, seconds, ("/bin/sh", "-c", text))


def test_hooks_run_in_their_order_and_successes_leave_no_trace(tmp_path: Path) -> None:
    world, file = World(), tmp_path / "order"
    scripts = [a_script(f"echo {name} >> {file}", name=name) for name in ("b", "a", "c")]

    assert world.run(*scripts) == 0
    assert file.read_text().split() == ["b", "a", "c"]
    assert world.log == []
    assert not world.node.drained


def test_a_failed_hook_drains_the_node_with_its_name_and_words_and_the_next_one_runs(tmp_path: Path) -> None:
    world = World()

    assert world.run(a_script("echo the 'disk' is full; exit 3"), a_script(f"touch {tmp_path}/next")) == 0
    assert world.node.reason == "hook site: the disk is full"
    assert (tmp_path / "next").exists()
    (event,) = world.log
    assert event.pop("seconds") >= 0
    assert event == {"hook": "site", "job": "7", "problem": "the disk is full", "drained": True}


def test_a_hook_that_requeues_ends_the_run(tmp_path: Path) -> None:
    world = World()

    assert world.run(a_script("exit 1", "requeue"), a_script(f"touch {tmp_path}/next")) == 1
    assert world.node.reason == "hook site: status 1"
    assert not (tmp_path / "next").exists()


def test_a_hook_that_is_logged_drains_nothing() -> None:
    world = World()

    assert world.run(a_script("exit 1", "log")) == 0
    assert not world.node.drained
    assert [entry["drained"] for entry in world.log] == [False]


@pytest.mark.parametrize("node", [NodeState("IDLE+DRAIN", "fan"), NodeState("DOWN", "x"), NodeState("IDLE+FAIL", "y")])
def test_a_reason_that_is_there_stays_and_the_job_does_not_start(node: NodeState) -> None:
    world = World(node)

    assert world.run(a_script("exit 1", "requeue")) == 1
    assert world.node == node


def test_without_slurmctld_the_job_does_not_start_either() -> None:
    world = World()
    world.answers = False

    assert world.run(a_script("exit 1", "requeue")) == 1
    assert [entry["problem"] for entry in world.log] == ["scontrol: no answer in 10 s", "status 1"]


def test_no_reason_of_a_hook_counts_as_one_of_a_quick_check() -> None:
    world = World()

    world.run(a_script('echo "health gpu_count: 7, allowed 8\' x"; exit 1'))
    assert world.node.reason == "hook site: health gpu_count: 7, allowed 8? x"
    assert check_of(world.node) is None
    assert world.noted == []


def test_a_script_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    world, file = World(), tmp_path / "child"

    assert world.run(a_script(f"sleep 600 & echo $! > {file}; wait", seconds=1)) == 0
    assert world.node.reason == "hook site: no end in 1 s"
    _gone(int(file.read_text()))


def test_a_script_has_the_variables_of_slurmd_and_none_of_the_user(tmp_path: Path) -> None:
    given = {
        "SLURM_JOB_ID": "7",
        "CUDA_VISIBLE_DEVICES": "0",
        "SPANK_X": "of the user",
        "LD_PRELOAD": "/x.so",
        "PATH": "/x",
    }
    World().run(a_script(f"env > {tmp_path}/env"), variables=given)
    seen = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())

    assert seen["SLURM_JOB_ID"] == "7"
    assert seen["CUDA_VISIBLE_DEVICES"] == "0"
    assert not {"SPANK_X", "LD_PRELOAD"} & seen.keys()
    assert seen["PATH"] != "/x"


def test_a_built_in_hook_that_this_image_does_not_have_is_a_failure() -> None:
    world = World()

    world.run(HookSettings("of_tomorrow", "log", 5, ()))
    assert world.log[0]["problem"] == "is not in this image"


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", '{"format": 2}', '{"format": 1, "prolog": [{}], "whole_gpus": []}']
)
def test_settings_that_cannot_be_read_stop_no_job(text: str | None, tmp_path: Path) -> None:
    file = tmp_path / "job_hooks.json"
    if text is not None:
        file.write_text(text)

    log: list[dict[str, Any]] = []
    assert run_hooks("prolog", {"SLURM_JOB_ID": "7"}, str(file), log=log.append) == 0
    assert [entry["problem"].partition(": ")[0] for entry in log] == [str(file)]


def test_the_program_runs_the_hooks_of_its_moment(tmp_path: Path) -> None:
    """As slurmd starts it, which drops the output of a success: the log is its parent's."""
    hook = {"name": "site", "action": "log", "seconds": 5, "command": ["/bin/sh", "-c", "echo $SLURM_JOB_ID; exit 1"]}
    settings = tmp_path / "job_hooks.json"
    settings.write_text(json.dumps({"format": 1, "whole_gpus": [], "prolog": [], "epilog": [hook]}))
    code = f"from job_hooks.hook_command import run_hooks; exit(run_hooks('epilog', settings='{settings}'))"
    run = f"[sys.executable, '-c', {code!r}], stderr=subprocess.DEVNULL, check=True"
    ended = subprocess.run(
        [sys.executable, "-c", f"import subprocess, sys; subprocess.run({run})"],
        env={
            "PYTHONPATH": os.pathsep.join(IMPORT_ROOTS),
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_UID": str(USER),
            "SLURMD_NODENAME": "cpu-0",
        },
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(ended.stderr)["problem"] == "7"


@pytest.mark.parametrize(
    ("given", "gpus"), [("0,1", (0, 1)), ("10", (10,)), ("", ()), ("GPU-7f", ()), ("0,MIG-1", (0,)), ("a1,2", (2,))]
)
def test_a_job_has_the_gpus_that_slurmd_names(given: str, gpus: tuple[int, ...]) -> None:
    job = job_of({"SLURM_JOB_ID": "7", "SLURM_JOB_UID": "2001", "SLURM_JOB_GPUS": given}, "fat-gpu-12")

    assert job == JobOnNode("7", 2001, "fat-gpu-12", gpus)
    assert job.node_set == "fat-gpu"


def test_a_job_without_a_user_is_no_ones() -> None:
    assert job_of({"SLURM_JOB_UID": "x"}, "n").uid == 0


@pytest.mark.parametrize(("node", "gpus"), [("gpu-0", "0"), ("shared-0", "none")])
def test_only_whole_gpus_are_the_jobs_own(
    node: str, gpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[JobOnNode] = []
    monkeypatch.setitem(built_in_hooks.HOOKS, "map_gpus", lambda job, _: seen.append(job))
    hook = {"name": "map_gpus", "action": "log", "seconds": 1, "command": []}
    file = tmp_path / "job_hooks.json"
    file.write_text(json.dumps({"format": 1, "whole_gpus": ["gpu"], "prolog": [hook], "epilog": []}))

    run_hooks("prolog", {"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0", "SLURMD_NODENAME": node}, str(file))
    assert [",".join(map(str, job_on_node.gpus)) or "none" for job_on_node in seen] == [gpus]


def test_settings_keep_the_order_of_hooks() -> None:
    hooks = [{"name": name, "action": "log", "seconds": 1, "command": []} for name in "zay"]
    given = {"format": 1, "whole_gpus": ["gpu"], "prolog": hooks, "epilog": []}

    assert [hook.name for hook in parse(json.dumps(given), "prolog").hooks] == ["z", "a", "y"]


def _gone(pid: int) -> None:
    deadline = time.monotonic() + 20
    while is_there(pid):
        assert time.monotonic() < deadline, f"process {pid} is there"
        time.sleep(0.02)


# --- processes of a user ---


@pytest.fixture
def process() -> Iterator["subprocess.Popen[bytes]"]:
    """A process of the user that no step has."""
    assert os.geteuid() == 0, "only root makes processes of others"
    with subprocess.Popen(["sleep", "600"], user=USER, start_new_session=True) as made:
        yield made
        made.kill()


def test_processes_of_the_user_are_found_and_no_one_elses(process: "subprocess.Popen[bytes]") -> None:
    assert users_processes.left(JOB) == [process.pid]
    assert users_processes.left(JOB._replace(uid=USER + 1)) == []


def test_a_process_that_has_ended_counts_no_more_though_no_one_waits_for_it(
    process: "subprocess.Popen[bytes]",
) -> None:
    process.kill()
    _gone(process.pid)

    assert users_processes.left(JOB) == []


def test_a_process_whose_first_thread_alone_has_ended_is_found() -> None:
    program = (
        f"import ctypes, os, threading, time; os.setresuid({USER}, {USER}, {USER});"
        "threading.Thread(target=time.sleep, args=[600]).start(); ctypes.CDLL(None).pthread_exit(None)"
    )
    with subprocess.Popen([sys.executable, "-c", program], start_new_session=True) as made:
        try:
            until = time.monotonic() + 20
            while _state(made.pid) != "Z" and time.monotonic() < until:
                time.sleep(0.01)
            assert _state(made.pid) == "Z"
            assert users_processes.left(JOB) == [made.pid]
        finally:
            made.kill()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_users_of_the_system_are_left_alone() -> None:
    assert users_processes.left(JOB._replace(uid=0)) == []
    assert users_processes.left(JOB._replace(uid=999)) == []


def a_process(proc: Path, pid: int, parent: int, uid: int, title: str = "python3") -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} (a) b (c) S {parent} 1 1\n")
    (folder / "status").write_text(f"Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
    (folder / "cmdline").write_bytes(title.encode() + b"\0")
    os.chown(folder, uid, uid)


def test_a_process_of_the_same_users_other_job_keeps_all(tmp_path: Path) -> None:
    a_process(tmp_path, 2, 1, 0, "slurmstepd: [8.batch]")
    a_process(tmp_path, 3, 2, USER)
    a_process(tmp_path, 4, 3, USER)
    a_process(tmp_path, 9, 1, USER)

    assert users_processes.left(JOB, str(tmp_path)) == []


def test_a_step_of_this_job_keeps_nothing_that_is_not_its_own(tmp_path: Path) -> None:
    a_process(tmp_path, 2, 1, 0, "slurmstepd: [7.extern]")
    a_process(tmp_path, 3, 2, USER)
    a_process(tmp_path, 9, 1, USER)

    assert users_processes.left(JOB, str(tmp_path)) == [9]


def test_a_title_that_a_user_has_chosen_is_no_step(tmp_path: Path) -> None:
    a_process(tmp_path, 5, 1, USER, "slurmstepd: [8.0]")
    a_process(tmp_path, 6, 5, USER)

    assert users_processes.left(JOB, str(tmp_path)) == [5, 6]


def test_processes_that_do_not_end_are_a_failure_unless_another_job_may_have_them(
    process: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(users_processes, "has_other_jobs", lambda _job: False)
    failure = built_in_hooks.processes_ended(JOB, 0.3)
    assert failure is not None
    assert (failure.problem, failure.reason) == (f"processes of uid {USER} that have not ended: 1", "")

    monkeypatch.setattr(users_processes, "has_other_jobs", lambda _job: True)
    assert built_in_hooks.processes_ended(JOB, 0.3) is None


def test_processes_that_end_in_time_are_no_failure(process: "subprocess.Popen[bytes]") -> None:
    with subprocess.Popen(["/bin/sh", "-c", f"sleep 0.5; kill -9 {process.pid}"]):
        assert built_in_hooks.processes_ended(JOB, 30) is None
    assert process.wait(timeout=1) == -9


def test_without_squeue_nothing_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine of these tests has no squeue on the path of programs."""
    assert users_processes.has_other_jobs(JOB)


# --- GPUs ---


def gpu_node(folder: Path, gpu: int, change: dict[str, str], **checks: str) -> tuple[str, str]:
    """Make a node with four GPUs, one of them as changed. Return the folders of its settings and of its files."""
    root = folder / "root"
    (root / "usr/bin").mkdir(parents=True)
    (root / "answer").write_text(query("h100-550", count=4, changes=change, of=gpu))
    program = root / "usr/bin/nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat {root}/answer\n")
    program.chmod(0o755)
    every = {"action": "drain", "undrain": "auto", "failures": 1, "passes": 1, "every_seconds": 0, "states": ["idle"]}
    rules = {"gpu_processes": (0, "0"), "gpu_memory_used": (1024, "1024 MiB")}
    given = {name: {**every, "limit": limit, "allowed": allowed} for name, (limit, allowed) in rules.items()}
    settings = {
        "format": 1,
        "seconds": 5,
        "interval_seconds": 60,
        "gpus": 4,
        "gpu_type": "",
        "memory_mib": 1,
        "volumes": [],
        "jail": "/",
        "program": [],
        "program_seconds": 5,
        "checks": {name: entry for name, entry in given.items() if checks.get(name) != "off"},
    }
    (folder / "gpu.json").write_text(json.dumps(settings))
    return str(folder), str(root)


PROCESS = {"<processes></processes>": "<processes><process_info><pid>9</pid><type>C</type></process_info></processes>"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (PROCESS, "health gpu_processes: 1 on GPU 1, allowed 0"),
        (
            {"<used>4 MiB</used>": "<used>70000 MiB</used>"},
            "health gpu_memory_used: 70000 MiB on GPU 1, allowed 1024 MiB",
        ),
    ],
)
def test_use_of_the_jobs_gpus_is_found_with_a_reason_that_the_quick_check_ends(
    change: dict[str, str], reason: str, tmp_path: Path
) -> None:
    found = gpus_in_use.finding(JOB, 20, *gpu_node(tmp_path, 1, change))

    assert found is not None
    assert found.reason == reason
    assert check_of(NodeState("IDLE+DRAIN", found.reason)) == reason.split()[1].strip(":")


def test_a_drain_before_a_job_asks_for_another_machine_where_the_quick_check_does(tmp_path: Path) -> None:
    settings, root = gpu_node(tmp_path, 1, PROCESS)
    file = tmp_path / "gpu.json"
    file.write_text(file.read_text().replace('"action": "drain"', '"action": "drain_and_replace"'))

    found = gpus_in_use.finding(JOB, 20, settings, root)

    assert found is not None
    assert found.reason == "health gpu_processes: 1 on GPU 1 (replace the machine), allowed 0"


def test_gpus_of_other_jobs_are_left_out(tmp_path: Path) -> None:
    assert gpus_in_use.finding(JOB, 20, *gpu_node(tmp_path, 2, PROCESS)) is None


def test_a_check_that_is_off_is_not_made_before_jobs_either(tmp_path: Path) -> None:
    assert gpus_in_use.finding(JOB, 20, *gpu_node(tmp_path, 1, PROCESS, gpu_processes="off")) is None


def test_a_job_without_gpus_asks_nothing(tmp_path: Path) -> None:
    settings, root = gpu_node(tmp_path, 1, PROCESS)
    (tmp_path / "root/usr/bin/nvidia-smi").write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\n")

    assert gpus_in_use.finding(JOB._replace(gpus=()), 20, settings, root) is None
    assert not (tmp_path / "asked").exists()


def test_a_gpu_that_is_left_in_time_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [gpus_in_use.GpuUse("x", "health x: 1, allowed 0"), None]
    monkeypatch.setattr(gpus_in_use, "finding", lambda *_: findings.pop(0))
    assert built_in_hooks.gpus_unused(JOB, 30) is None

    monkeypatch.setattr(gpus_in_use, "finding", lambda *_: gpus_in_use.GpuUse("x", "health x: 1, allowed 0"))
    assert built_in_hooks.gpus_unused(JOB, 0.3) == ("x", "health x: 1, allowed 0")


def test_an_nvidia_smi_that_is_too_slow_for_the_last_look_frees_no_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, root = gpu_node(tmp_path, 1, PROCESS)
    smi = tmp_path / "root/usr/bin/nvidia-smi"
    smi.write_text(smi.read_text().replace("#!/bin/sh\n", "#!/bin/sh\nsleep 1.2\n"))
    look = gpus_in_use.finding
    monkeypatch.setattr(gpus_in_use, "finding", lambda job, seconds: look(job, seconds, settings, root))

    failure = built_in_hooks.gpus_unused(JOB, 2.5)

    assert failure is not None
    assert failure.reason == "health gpu_processes: 1 on GPU 1, allowed 0"


def test_an_nvidia_smi_that_never_answers_holds_up_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, root = gpu_node(tmp_path, 1, PROCESS)
    (tmp_path / "root/usr/bin/nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    look = gpus_in_use.finding
    monkeypatch.setattr(gpus_in_use, "finding", lambda job, seconds: look(job, seconds, settings, root))

    assert built_in_hooks.gpus_unused(JOB, 0.5) is None


def test_a_drain_that_cannot_be_noted_is_logged_and_the_job_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    world, words = World(), "health gpu_processes: 1 on GPU 1, allowed 0"
    monkeypatch.setattr(gpus_in_use, "finding", lambda *_: gpus_in_use.GpuUse("x", words))

    def note(_check: str) -> None:
        raise OSError(28, "No space left on device")

    run = HookRun(JOB, {}, NodeCalls(world._ask, world._drain, note), world.log.append)

    assert run.run([HookSettings("gpus_unused_before", "requeue", 0.1, ())]) == 1
    assert world.node.reason == words
    assert world.log[0] == {"job": "7", "problem": "[Errno 28] No space left on device"}


def test_a_drain_in_the_name_of_a_quick_check_is_noted_for_the_next_round(monkeypatch: pytest.MonkeyPatch) -> None:
    world, words = World(), "health gpu_processes: 1 on GPU 1, allowed 0"
    monkeypatch.setattr(gpus_in_use, "finding", lambda *_: gpus_in_use.GpuUse("x", words))

    assert world.run(HookSettings("gpus_unused_before", "requeue", 0.1, ())) == 1
    assert world.node.reason == words
    assert world.noted == ["gpu_processes"]


# --- the page cache ---


def test_a_machine_that_refuses_to_drop_its_page_cache_is_a_failure_in_its_own_words() -> None:
    """A worker has the right to mount; this process has none."""
    program = "from job_hooks.built_in_hooks import *; print(drop_page_cache(JobOnNode('7', 1, 'n'), 20).problem)"
    ended = subprocess.run(
        ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all", sys.executable, "-c", program],
        env={"PYTHONPATH": os.pathsep.join(IMPORT_ROOTS), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )

    assert ended.stdout == "the machine refuses: unshare: unshare failed: Operation not permitted\n"


# --- the files of dcgm-exporter ---


def test_each_gpu_of_a_job_has_a_file_while_the_job_runs(tmp_path: Path) -> None:
    assert gpu_job_map.write(JOB, str(tmp_path), "/nowhere") == ""
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"0": "7\n", "1": "7\n"}

    assert gpu_job_map.remove(JOB, str(tmp_path), "/nowhere") == ""
    assert [*tmp_path.iterdir()] == []


def test_a_file_of_a_later_job_stays_and_one_of_a_former_job_is_replaced(tmp_path: Path) -> None:
    gpu_job_map.write(JOB, str(tmp_path), "/nowhere")
    gpu_job_map.write(JOB._replace(job_id="8", gpus=(1,)), str(tmp_path), "/nowhere")
    gpu_job_map.remove(JOB, str(tmp_path), "/nowhere")

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"1": "8\n"}


def test_files_have_the_drivers_indexes_where_minor_numbers_have_another_order(tmp_path: Path) -> None:
    for address, minor in (("0000:0f:00.0", 1), ("0000:07:00.0", 2), ("0000:4e:00.0", 0)):
        (tmp_path / "driver" / address).mkdir(parents=True)
        (tmp_path / "driver" / address / "information").write_text(f"Model: X\nDevice Minor: \t {minor}\n")
    (tmp_path / "files").mkdir()

    gpu_job_map.write(JOB._replace(gpus=(0,)), str(tmp_path / "files"), str(tmp_path / "driver"))
    assert {path.name for path in (tmp_path / "files").iterdir()} == {"2"}


def test_a_pod_without_the_folder_is_older_than_the_setting(tmp_path: Path) -> None:
    problem = gpu_job_map.write(JOB, str(tmp_path / "none"), "/nowhere")
    assert problem == f"{tmp_path}/none is missing: this pod is older than hooks.job_mapping"
