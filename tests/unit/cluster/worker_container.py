"""A worker's container with a Slurm that answers from files, for its scripts; the cluster tier runs the real one."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from soperator_pulumi.cluster.mounts import scratch
from soperator_pulumi.cluster.worker_scripts import (
    NEWCOMER_SECONDS,
    start_command,
    started_command,
    stop_command,
)
from soperator_pulumi.render.layout import IMAGE_SCRIPTS
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
cd "${CALLS%/*}" || exit
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
case "$*" in
    *pending*) cat pending 2>/dev/null; exit 0 ;;
    *running,suspended*) cat running 2>/dev/null; exit 0 ;;
esac
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

STAT = """\
#!/bin/sh
case "$*" in *%S*) echo "65536*4096" ;; *" /tmp") echo tmpfs ;; *) echo nfs ;; esac
"""

UNSHARE = """\
#!/bin/sh
echo "unshare $1" >> "$CALLS"
shift
exec "$@"
"""

SVSCAN = """\
#!/bin/sh
cd "$1/slurmd" && exec ./run
"""
"""Starts slurmd alone; the cluster tier has the real supervisor."""

PKILL = """\
#!/bin/sh
echo "pkill $*" >> "$CALLS"
"""

SLEEP = """\
#!/bin/sh
echo $(($(cat clock) + $1)) > clock
"""


def paths() -> dict[str, str]:
    """Return the paths that the scripts have in common."""
    return dict(re.findall(r"(?m)^(\w+)=(.*)$", (IMAGE / "scripts/layout.sh").read_text()))


IN_SERVICE = "put_into_service.sh"
"""Started with slurmd, it would outlive a test: one in its place notes its arguments alone."""


class Worker:
    """A container's programs, each of which answers from a file and notes how it was called."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls = root / "calls"
        self.calls.touch()
        self.options: dict[str, Any] = {"lock_memory": False}
        self.conf = CONF
        programs = {"hostname": "#!/bin/sh\necho cpu-4\n", "sleep": SLEEP, "date": "#!/bin/sh\ncat clock\n"}
        programs |= {"scontrol": SCONTROL, "mountpoint": "#!/bin/sh\necho 0:44\n"}
        programs |= {
            "s6-svscan": SVSCAN,
            "pkill": PKILL,
            "pgrep": "#!/bin/sh\nexit 1\n",
            "stat": STAT,
            "squeue": SQUEUE,
            "mount": MOUNT,
            "unshare": UNSHARE,
            "slurmd": '#!/bin/sh\nprintf "%s\\n" "$@"\n',
        }
        for name, text in programs.items():
            program = root / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(text)
            program.chmod(0o755)
        (root / "scripts").mkdir()
        for script in (IMAGE / "scripts").iterdir():
            if script.name not in {"layout.sh", IN_SERVICE}:
                (root / "scripts" / script.name).symlink_to(script)
        stand_in = root / "scripts" / IN_SERVICE
        stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > begun && mv begun put-into-service\n')
        stand_in.chmod(0o755)
        own = {name: f"{root}/{Path(path).name}" for name, path in paths().items() if re.match("/(?!dev/)", path)}
        own["SPOOL_DIR"] = f"{root}/spool"  # slurmd has a file of its own
        self.write(**{"scripts/layout.sh": "".join(f"{name}={path}\n" for name, path in (paths() | own).items())})
        (root / "proc/self").mkdir(parents=True)
        for folder in ("dev", "cgroup", "spool"):
            (root / folder).mkdir()
        self.write(**{"slurmd": "0", "looks": "0", "clock": "0", "proc/self/mountinfo": MOUNTINFO})
        self.write(**{"cgroup/cgroup.controllers": "cpuset cpu memory", "cgroup/memory.oom.group": "1"})
        self.write(**{"cgroup/cgroup.type": "domain"})

    def write(self, **files: str) -> None:
        for name, content in files.items():
            (self.root / name).write_text(content)

    def node(
        self,
        state: str,
        reason: str = "",
        *,
        cpus: int = 4,
        features: str = "cpu,ib",
        weight: int = 3,
        gres: str = "(null)",
        layout: tuple[int, int, int] | None = None,
        reserved_cores: int = 0,
    ) -> None:
        sockets, cores, threads = layout or (cpus, 1, 1)
        reserved = f"   CoreSpecCount={reserved_cores} CPUSpecList={cpus - reserved_cores}\n" if reserved_cores else ""
        self.write(
            node=f"NodeName=cpu-4 Arch=x86_64 CoresPerSocket={cores}\n"
            f"   CPUAlloc=0 CPUEfctv={cpus} CPUTot={cpus} CPULoad=0.1\n"
            f"   AvailableFeatures={features}\n   ActiveFeatures={features}\n   Gres={gres}\n"
            f"   RealMemory=1024 AllocMem=0 FreeMem=900 Sockets={sockets} Boards=1\n"
            f"{reserved}"
            f"   State={state} ThreadsPerCore={threads} TmpDisk=0 Weight={weight} Owner=N/A\n   Partitions=main \n"
        )
        if reason:
            with (self.root / "node").open("a") as node:
                node.write(f"   Reason={reason} [root@2026-11-21T17:00:00]\n   Comment=State=IDLE+DRAIN\n")

    @property
    def _environment(self) -> dict[str, str]:
        return {"PATH": f"{self.root}/bin:/usr/bin:/bin", "CALLS": str(self.calls)}

    @contextmanager
    def running(self, command: Sequence[str]) -> Iterator[None]:
        """Run a command of the container meanwhile, and kill it then."""
        with subprocess.Popen(command, cwd=self.root, env=self._environment) as process:
            try:
                yield
            finally:
                process.kill()

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [word.replace(IMAGE_SCRIPTS, str(self.root / "scripts")) for word in command],
            cwd=self.root,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )

    def changes(self) -> list[str]:
        return [call for call in self.calls.read_text().splitlines() if call.startswith(("update ", "delete "))]

    def stop(self) -> None:
        assert self.run(stop_command(OWNER)).returncode == 0

    def start(self, ordinal: int = 4, *, kept: bool = False) -> list[str]:
        """Start slurmd, and return its arguments; `kept`: a warning names a record that stays as it is."""
        self.write(**{"bin/hostname": f"#!/bin/sh\necho cpu-{ordinal}\n", "termination-log": "", "open_as_user.so": ""})
        done = self.run(self.start_command())
        assert done.returncode == 0, done.stderr
        assert ("Slurm keeps the record that it has of cpu-4" in done.stderr) == kept, done.stderr
        return done.stdout.splitlines()

    def start_command(self) -> list[str]:
        return start_command(
            OWNER,
            self.conf,
            [scratch("tmp", "/tmp"), scratch("data", "/data", read_only=True)],
            ["bind=/tmp", "bind=/data:ro"],
            processes=4096,
            **self.options,
        )

    def put_into_service(self) -> int:
        """Do what is done while a new slurmd runs, and return the seconds that it takes."""
        stand_in = self.root / "scripts" / IN_SERVICE
        stand_in.unlink()
        stand_in.symlink_to(IMAGE / "scripts" / IN_SERVICE)
        script = f"{IMAGE_SCRIPTS}/{IN_SERVICE}"
        assert self.run([script, "cpu-4", POD_START, str(NEWCOMER_SECONDS)]).returncode == 0
        return int((self.root / "clock").read_text())

    def started(self) -> int:
        return self.run(started_command(OWNER)).returncode
