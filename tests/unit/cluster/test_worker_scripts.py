"""The scripts of a worker's container, run with a Slurm that answers from files; the cluster tier runs the real one."""

import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from soperator_pulumi.cluster import containers, worker_scripts
from soperator_pulumi.cluster.mounts import scratch
from soperator_pulumi.cluster.worker_scripts import (
    NEWCOMER_SECONDS,
    SCRIPTS,
    start_command,
    started_command,
    stop_command,
)
from soperator_pulumi.render import layout
from soperator_pulumi.slurm.drain.reason import Marker, Operation

ROOT = Path(__file__).parents[3]
IMAGE = ROOT / "images/worker"
OWNER = "project.test.hpc"
CONF = "Feature=cpu,ib CPUs=4 RealMemory=1024"
POD_STOP = str(Marker(OWNER, Operation.POD_STOP))
POD_START = str(Marker(OWNER, Operation.POD_START))

SCONTROL = """\
#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in
    "show slurmd") exit "$(cat slurmd)" ;;
    "show node "*)
        looks=$(($(cat looks) + 1))
        echo $looks > looks
        [ -e answers ] && [ $looks -le "$(cat answers)" ] && { echo "Unable to contact slurm controller"; exit 1; }
        [ -e node ] || { echo "Node cpu-4 not found"; exit 1; }
        cat node ;;
    "-o show reservations") cat reservations 2>/dev/null || { echo "No reservations in the system"; exit 1; } ;;
    "show hostnames "*) echo "$3" | tr , '\\n' ;;
    "update nodename=cpu-4 state=drain reason="*)
        sed -i "s/State=IDLE/State=IDLE+DRAIN/; s/^ *Reason=.*//" node
        echo "   Reason=${4#reason=} [root@2026-11-21T17:00:00]" >> node ;;
esac
"""

SQUEUE = """\
#!/bin/sh
echo "squeue $*" >> "$CALLS"
case "$*" in *pending*) cat pending 2>/dev/null; exit 0 ;; esac
[ -s jobs ] || exit 0
head -n 1 jobs
sed -i 1d jobs
"""


MOUNTINFO = """\
30 1 0:40 / / ro - overlay overlay rw
31 30 0:44 / /dev rw,nosuid - tmpfs tmpfs rw
32 31 0:45 / /dev/pts rw,nosuid,noexec - devpts devpts rw
33 31 0:46 / /dev/mqueue rw - mqueue mqueue rw
34 31 0:47 / /dev/shm rw - tmpfs shm rw
35 31 0:6 /nvidia0 /dev/nvidia0 rw - devtmpfs devtmpfs rw
36 30 0:48 / /proc rw - proc proc rw
37 36 0:44 /null /proc/keys rw,nosuid - tmpfs tmpfs rw
38 30 0:49 / /home rw - nfs server:/home rw
"""

MOUNT = """\
#!/bin/sh
echo "mount $*" >> "$CALLS"
"""

SLEEP = """\
#!/bin/sh
echo $(($(cat clock) + $1)) > clock
"""


def paths() -> dict[str, str]:
    """Return the paths that the scripts have in common."""
    return dict(re.findall(r"(?m)^(\w+)=(.*)$", (IMAGE / "scripts/layout.sh").read_text()))


class Worker:
    """A container's programs, each of which answers from a file and notes how it was called."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls = root / "calls"
        self.calls.touch()
        self.options = {"lock_memory": False, "cgroups": False}
        programs = {"hostname": "#!/bin/sh\necho cpu-4\n", "sleep": SLEEP, "date": "#!/bin/sh\ncat clock\n"}
        programs |= {"scontrol": SCONTROL, "mountpoint": "#!/bin/sh\necho 0:44\n"}
        programs |= {"squeue": SQUEUE, "mount": MOUNT, "slurmd": '#!/bin/sh\nprintf "%s\\n" "$@"\n'}
        for name, text in programs.items():
            program = root / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(text)
            program.chmod(0o755)
        (root / "scripts").mkdir()
        for script in (IMAGE / "scripts").iterdir():
            if script.name != "layout.sh":
                (root / "scripts" / script.name).symlink_to(script)
        own = {name: f"{root}/{Path(path).name}" for name, path in paths().items() if not path.startswith("/dev/")}
        self.write(**{"scripts/layout.sh": "".join(f"{name}={path}\n" for name, path in (paths() | own).items())})
        (root / "proc/self").mkdir(parents=True)
        self.write(**{"slurmd": "0", "looks": "0", "clock": "0", "proc/self/mountinfo": MOUNTINFO})

    def write(self, **files: str) -> None:
        for name, content in files.items():
            (self.root / name).write_text(content)

    def node(self, state: str, reason: str = "", *, cpus: int = 4, features: str = "cpu,ib", weight: int = 3) -> None:
        self.write(
            node=f"NodeName=cpu-4 Arch=x86_64\n   CPUAlloc=0 CPUEfctv={cpus} CPUTot={cpus} CPULoad=0.1\n"
            f"   AvailableFeatures={features}\n   ActiveFeatures={features}\n   RealMemory=1024 AllocMem=0\n"
            f"   State={state} ThreadsPerCore=1 TmpDisk=0 Weight={weight} Owner=N/A\n   Partitions=main \n"
        )
        if reason:
            with (self.root / "node").open("a") as node:
                node.write(f"   Reason={reason} [root@2026-11-21T17:00:00]\n   Comment=State=IDLE+DRAIN\n")

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [word.replace(SCRIPTS, str(self.root / "scripts")) for word in command],
            cwd=self.root,
            env={"PATH": f"{self.root}/bin:/usr/bin:/bin", "CALLS": str(self.calls)},
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )

    def changes(self) -> list[str]:
        return [call for call in self.calls.read_text().splitlines() if call.startswith(("update ", "delete "))]

    def stop(self) -> None:
        assert self.run(stop_command(OWNER, cgroups=self.options["cgroups"])).returncode == 0

    def start(self, ordinal: int = 4, *, kept: bool = False) -> list[str]:
        """Start slurmd, and return its arguments; `kept`: a warning names a record that stays as it is."""
        self.write(**{"bin/hostname": f"#!/bin/sh\necho cpu-{ordinal}\n", "termination-log": "", "open_as_user.so": ""})
        # The real one outlives the test.
        beside = self.root / "scripts/put_into_service.sh"
        beside.unlink(missing_ok=True)
        beside.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > begun && mv begun put-into-service\n')
        beside.chmod(0o755)
        done = self.run(self.start_command())
        assert done.returncode == 0, done.stderr
        assert ("Slurm keeps the record that it has of cpu-4" in done.stderr) == kept, done.stderr
        return done.stdout.splitlines()

    def start_command(self) -> list[str]:
        return start_command(
            OWNER,
            CONF,
            [scratch("tmp", "/tmp"), scratch("data", "/data", read_only=True)],
            ["bind=/tmp", "bind=/data:ro"],
            processes=4096,
            memory_mib=512,
            **self.options,
        )

    def put_into_service(self) -> int:
        """Do what is done beside a new slurmd, and return the seconds that it takes."""
        script = f"{SCRIPTS}/put_into_service.sh"
        assert self.run([script, "cpu-4", POD_START, str(NEWCOMER_SECONDS)]).returncode == 0
        return int((self.root / "clock").read_text())

    def started(self) -> int:
        return self.run(started_command(OWNER)).returncode


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    return Worker(tmp_path)


def test_what_everybody_may_write_to_is_closed_before_slurmd_starts(worker: Worker) -> None:
    worker.node("IDLE+DYNAMIC_NORM")
    assert worker.start()[0] == "-D"

    closed = [call.split()[-1] for call in worker.calls.read_text().splitlines() if "-o remount,bind,ro " in call]
    assert closed == ["/dev", "/dev/pts", "/dev/nvidia0", "/proc/keys"]
    assert (worker.root / "termination-log").stat().st_mode & 0o077 == 0


def test_volumes_are_closed_before_slurmd_starts_and_its_jobs_find_what_they_see(worker: Worker) -> None:
    assert worker.start()[0] == "-D"
    closed = [call for call in worker.calls.read_text().splitlines() if "noexec" in call]
    options = "nosuid=recursive,nodev=recursive,noexec=recursive"
    assert closed == [
        f"mount -o remount,bind,{options} /tmp",
        f"mount -o remount,bind,ro=recursive,{options} /data",
    ]
    assert (worker.root / "jail-binds").read_text() == "bind=/tmp\nbind=/data:ro\n"
    assert (worker.root / "jail-own").read_text() == "/tmp\n/dev/mqueue\n"


@pytest.mark.parametrize(
    ("lock_memory", "limits"),
    [
        (False, ""),
        (True, "--memlock=unlimited:unlimited setpriv --inh-caps=-sys_resource --bounding-set=-sys_resource "),
    ],
)
def test_slurmd_starts_with_the_limits_that_jobs_inherit(worker: Worker, lock_memory: bool, limits: str) -> None:
    worker.write(**{"bin/prlimit": '#!/bin/sh\necho "prlimit $*"\n'})
    (worker.root / "bin/prlimit").chmod(0o755)
    worker.options["lock_memory"] = lock_memory
    (started,) = worker.start()
    preload = f"env LD_PRELOAD={worker.root}/open_as_user.so slurmd -D -b -Z --conf-server controller-0:6817 --conf "
    assert started.startswith(f"prlimit --nproc=4096:4096 {limits}{preload}")


def test_a_new_node_is_put_into_service_beside_slurmd(worker: Worker) -> None:
    worker.start()
    begun, deadline = worker.root / "put-into-service", time.monotonic() + 10
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert begun.read_text() == f"cpu-4\n{POD_START}\n{NEWCOMER_SECONDS}\n"


@pytest.mark.parametrize("change", ["other=1", "memory_mib="])
def test_an_image_of_another_version_than_the_program_ends_in_words_that_name_it(worker: Worker, change: str) -> None:
    command = [word for word in worker.start_command() if not word.startswith(change)]
    done = worker.run([*command, change] if change == "other=1" else command)
    assert done.returncode != 0
    assert change.rstrip("=") in done.stderr
    assert "images.worker is of another version than the program that made this pod." in done.stderr
    assert worker.calls.read_text() == ""


def test_an_image_without_the_scripts_ends_in_words_that_name_it(worker: Worker) -> None:
    (worker.root / "scripts/start.sh").unlink()
    done = worker.run(worker.start_command())
    assert done.returncode == 127
    assert "start.sh is not in this image: images.worker is of another version" in done.stderr


def test_scripts_and_program_agree_on_paths() -> None:
    here = {**vars(layout), "CGROUPS": worker_scripts.CGROUPS, "LAST_WORDS": containers.LAST_WORDS}
    only_of_scripts = {"MESSAGE_QUEUES", "PROC"}
    assert {name: path for name, path in paths().items() if name not in only_of_scripts} == {
        name: here[name] for name in paths().keys() - only_of_scripts
    }
    assert f"COPY scripts {SCRIPTS}\n" in (IMAGE / "Containerfile").read_text()


def test_scripts_and_the_plugin_agree_on_paths() -> None:
    headers = "".join(each.read_text() for each in (ROOT / "spank-plugin").glob("*.h"))
    defined = dict(re.findall(r'#define (\w+) +"(.*)"', headers))
    of_plugin = (defined["USER_CLEANUP_DIRECTORIES"], defined["JAIL_CGROUPS"])
    assert of_plugin == (paths()["JAIL_OWN"], paths()["JAIL_CGROUPS"])


def test_slurmd_does_not_start_where_it_could_hang_in_a_pipe_of_a_user(worker: Worker) -> None:
    worker.node("IDLE+DYNAMIC_NORM")
    worker.write(**{"termination-log": ""})

    done = worker.run(worker.start_command())

    assert done.returncode != 0
    assert "open_as_user.so" in done.stderr
    assert done.stdout == ""


def test_a_pod_that_stops_drains_its_node_with_our_reason(worker: Worker) -> None:
    worker.node("IDLE+DYNAMIC_NORM")
    worker.stop()
    assert worker.changes() == [f"update nodename=cpu-4 state=drain reason={POD_STOP}"]


def test_a_node_that_is_going_to_be_resumed_is_not_drained_yet(worker: Worker) -> None:
    worker.node("IDLE+UNDRAIN")
    worker.stop()
    assert len(worker.changes()) == 1


@pytest.mark.parametrize("reason", ["disk is broken", "soperator-pulumi project.test.hpc: scale-down 1a2b3c", ""])
def test_a_drain_that_is_there_is_not_touched_by_a_pod_that_stops(worker: Worker, reason: str) -> None:
    worker.node("IDLE+DRAIN+DYNAMIC_NORM", reason)
    worker.stop()
    assert worker.changes() == []


@pytest.mark.parametrize("state", ["IDLE+FAIL", "DOWN+DYNAMIC_NORM", "DOWN*+DYNAMIC_NORM"])
def test_a_node_on_which_no_job_starts_keeps_its_state_and_reason(worker: Worker, state: str) -> None:
    worker.node(state, "disk is broken")
    worker.stop()
    assert worker.changes() == []


def test_a_pod_that_stops_waits_for_the_jobs_on_it(worker: Worker) -> None:
    worker.node("IDLE+DYNAMIC_NORM")
    worker.write(jobs="7\n7\n7\n")
    worker.stop()
    asked = [call for call in worker.calls.read_text().splitlines() if call.startswith("squeue ")]
    assert asked == ["squeue -h -o %A -w cpu-4"] * 4


def test_a_pod_that_stops_asks_again_while_slurmctld_does_not_answer(worker: Worker) -> None:
    worker.node("IDLE+DYNAMIC_NORM")
    worker.write(answers="5")
    worker.stop()
    assert len(worker.changes()) == 1


def test_a_pod_without_jobs_does_not_wait_for_a_slurmctld_that_is_gone(worker: Worker) -> None:
    worker.write(answers="1000")
    worker.stop()
    assert int((worker.root / "clock").read_text()) == 30


def test_a_pod_with_jobs_waits_for_slurmctld_as_long_as_they_run(worker: Worker) -> None:
    step = worker.root / "proc" / "42"
    step.mkdir()
    (step / "comm").write_text("slurmstepd\n")
    worker.node("IDLE+DYNAMIC_NORM")
    worker.write(answers="25")
    worker.stop()
    assert int((worker.root / "looks").read_text()) > 25
    assert len(worker.changes()) == 1


def test_a_pod_whose_node_slurm_does_not_know_stops_at_once(worker: Worker) -> None:
    worker.stop()
    assert worker.calls.read_text() == "show node cpu-4\n"


def test_a_pod_that_stops_removes_its_nodes_cgroups_and_no_others(worker: Worker) -> None:
    cgroups = worker.root / "cgroup"
    for node in ("cpu-4", "cpu-40", "cpu-5"):
        (cgroups / "memory" / f"slurm_{node}" / "system").mkdir(parents=True)
    worker.node("IDLE+DRAIN", "disk is broken")
    worker.options["cgroups"] = True
    worker.stop()
    assert {each.name for each in (cgroups / "memory").iterdir()} == {"slurm_cpu-40", "slurm_cpu-5"}


def test_slurmd_finds_its_nodes_own_cgroups_writable_and_the_machines_read_only(worker: Worker) -> None:
    """The folders of cgroup v1, with a controller that has two names, and one that Slurm does not use."""
    cgroups = worker.root / "cgroup"
    for name in ("cpu,cpuacct", "memory", "pids"):
        (cgroups / name).mkdir(parents=True)
    (cgroups / "cpuacct").symlink_to("cpu,cpuacct")
    worker.options["cgroups"] = True
    worker.start()

    mounts = [line.removeprefix("mount ") for line in worker.calls.read_text().splitlines() if str(cgroups) in line]
    seen = worker.root / "jail-cgroups"
    assert mounts == [
        *(f"--bind {cgroups}/cpu,cpuacct/slurm_cpu-4 {where}/cpu,cpuacct/slurm_cpu-4" for where in (cgroups, seen)),
        f"--bind {cgroups}/cpu,cpuacct/cgroup.procs {cgroups}/cpu,cpuacct/cgroup.procs",
        f"-o remount,bind,ro {cgroups}/cpu,cpuacct",
        *(f"--bind {cgroups}/memory/slurm_cpu-4 {where}/memory/slurm_cpu-4" for where in (cgroups, seen)),
        f"--bind {cgroups}/memory/cgroup.procs {cgroups}/memory/cgroup.procs",
        f"-o remount,bind,ro {cgroups}/memory",
        f"-o remount,bind,ro {cgroups}/pids",
        f"-o remount,bind,ro {cgroups}",
    ]
    assert (cgroups / "memory" / "slurm_cpu-4" / "memory.limit_in_bytes").read_text() == f"{512 * 2**20}\n"
    assert (seen / "cpuacct").readlink().name == "cpu,cpuacct"


def test_the_one_hierarchy_of_cgroup_v2_stays_as_it_is_and_jobs_see_nothing_of_it(worker: Worker) -> None:
    cgroups = worker.root / "cgroup"
    cgroups.mkdir()
    (cgroups / "cgroup.controllers").touch()
    worker.options["cgroups"] = True
    worker.start()

    assert str(cgroups) not in worker.calls.read_text()
    assert list((worker.root / "jail-cgroups").iterdir()) == []


@pytest.mark.parametrize("reason", [POD_STOP, f"{POD_STOP} : Not responding"])
def test_a_worker_that_is_there_again_undoes_its_own_drain(worker: Worker, reason: str) -> None:
    worker.node("IDLE+DRAIN+DYNAMIC_NORM", reason)
    assert worker.started() == 0
    assert worker.changes() == ["update nodename=cpu-4 state=undrain reason=none"]


@pytest.mark.parametrize(
    "reason",
    [
        "disk is broken",
        "soperator-pulumi project.test.hpc: scale-down 1a2b3c",
        "soperator-pulumi project.test.hpc2: pod-stop",
        "soperator-pulumi project.test.hpc: pod-stop, but really broken",
        f"not {POD_STOP}",
        f"{POD_STOP} : Kill task failed",
        "disk is broken : Not responding",
        "",
    ],
)
def test_a_worker_that_is_there_again_undoes_no_drain_of_anybody_else(worker: Worker, reason: str) -> None:
    worker.node("IDLE+DRAIN+DYNAMIC_NORM", reason)
    assert worker.started() == 0
    assert worker.changes() == []


@pytest.mark.parametrize("state", ["DOWN*+DYNAMIC_NORM", "IDLE+DRAIN+FAIL", "IDLE+FAIL"])
def test_a_reason_of_ours_on_a_node_that_is_not_drained_by_us_is_left(worker: Worker, state: str) -> None:
    worker.node(state, POD_STOP)
    assert worker.started() == 0
    assert worker.changes() == []


def test_a_worker_has_started_when_slurmd_answers_and_slurm_does_not_know_the_node_yet(worker: Worker) -> None:
    assert worker.started() == 0


def test_a_worker_has_not_started_while_slurmd_or_slurmctld_does_not_answer(worker: Worker) -> None:
    worker.write(slurmd="1")
    worker.node("IDLE")
    assert worker.started() != 0
    worker.write(slurmd="0", answers="1000")
    assert worker.started() != 0


@pytest.mark.parametrize(
    ("ordinal", "weight"), [(0, 1), (1, 2), (2, 2), (3, 3), (6, 3), (7, 4), (14, 4), (511, 10), (1000, 10)]
)
def test_the_weight_of_a_node_grows_with_its_ordinal_in_bands_that_double(
    worker: Worker, ordinal: int, weight: int
) -> None:
    registers = f'{CONF} Weight={weight} State=DRAIN Reason="{POD_START}"'
    assert worker.start(ordinal)[-2:] == ["--conf", registers]


def test_a_new_node_puts_itself_into_service_after_a_while(worker: Worker) -> None:
    worker.write(answers="2")
    worker.node("IDLE+DRAIN+DYNAMIC_NORM", POD_START)
    assert worker.put_into_service() >= NEWCOMER_SECONDS
    assert worker.changes() == ["update nodename=cpu-4 state=undrain reason=none"]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("IDLE", "none"),
        ("IDLE", POD_START),
        ("IDLE+DRAIN", f"soperator-pulumi {OWNER}: scale-down 1a2b3c"),
        ("IDLE+DRAIN", f"{POD_START} and the disk is broken"),
        ("IDLE+DRAIN", POD_STOP),
        ("IDLE+FAIL+DRAIN", POD_START),
    ],
)
def test_it_touches_no_other_drain(worker: Worker, state: str, reason: str) -> None:
    worker.node(state, reason)
    worker.put_into_service()
    assert worker.changes() == []


def test_it_ends_when_slurmctld_does_not_know_the_node_any_more(worker: Worker) -> None:
    worker.node("IDLE+DRAIN", POD_START)
    worker.write(**{"bin/sleep": '#!/bin/sh\n[ "$1" -lt 100 ] || rm node\n'})
    assert worker.put_into_service() == 0
    assert worker.changes() == []


def test_a_record_that_says_what_the_node_is_stays_as_it_is(worker: Worker) -> None:
    worker.node("IDLE+DYNAMIC_NORM")
    assert worker.start()[0] == "-D"
    assert worker.changes() == []


def test_features_and_weight_are_changed_in_the_record(worker: Worker) -> None:
    worker.node("IDLE+DRAIN", "disk is broken", features="cpu", weight=1)
    assert worker.start()[0] == "-D"
    changed = "update nodename=cpu-4 weight=3 availablefeatures=cpu,ib activefeatures=cpu,ib"
    assert worker.changes() == [changed]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("IDLE", ""),
        ("IDLE+DRAIN", f"soperator-pulumi {OWNER}: rolling-update 1a2b3c"),
        ("IDLE+DRAIN", f"soperator-pulumi {OWNER}: rolling-update 1a2b3c (was: disk was broken)"),
        ("DOWN*+DRAIN", f"{POD_STOP} : Not responding"),
        ("IDLE+DRAIN", POD_START),
        ("DOWN*+DYNAMIC_NORM", "Not responding"),
    ],
)
def test_a_record_with_other_cpus_is_deleted_before_slurmd_makes_it_anew(
    worker: Worker, state: str, reason: str
) -> None:
    worker.node(state, reason, cpus=2)
    worker.write(reservations="ReservationName=a StartTime=x Nodes=cpu-5,cpu-40 NodeCnt=2\n", pending="\ncpu-14\n")
    assert worker.start()[0] == "-D"
    assert worker.changes() == ["delete nodename=cpu-4"]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("IDLE+DRAIN", "disk is broken"),
        ("IDLE+DRAIN", f"soperator-pulumi {OWNER}: health 1a2b3c"),  # of a newer release
        ("IDLE+DRAIN", f"{POD_STOP} and the disk is broken"),
        ("IDLE+DRAIN", POD_STOP.replace(OWNER, "project-test.hpc")),
        ("IDLE+FAIL", POD_STOP),
        ("DOWN", "disk is broken"),
        ("DOWN*+DRAIN", "Not responding"),
    ],
)
def test_the_record_of_a_node_that_somebody_took_out_of_service_is_not_deleted(
    worker: Worker, state: str, reason: str
) -> None:
    worker.node(state, reason, cpus=2)
    assert worker.start(kept=True)[0] == "-D"
    assert worker.changes() == []


@pytest.mark.parametrize(
    "names",
    [
        {"reservations": "ReservationName=a StartTime=x Nodes=cpu-3,cpu-4 NodeCnt=2\n"},
        {"pending": "\ncpu-4\n"},
        {"jobs": "cpu-4\n"},
    ],
    ids=str,
)
def test_the_record_of_a_node_that_a_reservation_or_a_job_names_is_not_deleted(
    worker: Worker, names: dict[str, str]
) -> None:
    worker.node("IDLE", cpus=2)
    worker.write(**names)
    assert worker.start(kept=True)[0] == "-D"
    assert worker.changes() == []


def test_slurmd_is_started_when_slurmctld_answers(worker: Worker) -> None:
    worker.write(answers="3")
    assert worker.start()[0] == "-D"
    assert int((worker.root / "looks").read_text()) == 4
