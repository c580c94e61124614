"""A trial start of slurmctld next to the running one, to test new files before they are in place.

`scontrol reconfigure` alone does not show this. scontrol parses the files and refuses those that it cannot read. But a
slurmctld in the foreground (`-D`, as in a pod) answers "done", replaces itself, and only then refuses the new file, for
example because of a missing plugin: then it is gone (measured with 24.11.5: `SchedulerType=sched/nonsense`, exit code
0, controller dead).
"""

import re
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath

from soperator_pulumi.errors import SlurmError
from soperator_pulumi.slurm.transport import Transport

TRIAL_SECONDS = 30
"""Time for a start, which takes 0.1 to 0.3 s (measured)."""

TRIAL_PORT = 6815
"""Port of the trial's slurmctld: unused in the controller's pod, and not opened by any Service or NetworkPolicy."""

# $1 is the folder. Leftovers of a killed trial are removed first.
_SCRIPT = """
rm -rf "$1" && mkdir -p -m 0700 "$1/state" && cd "$1"
{write}
slurmctld -D -f "$1/slurm.conf" >log 2>&1 & pid=$!
trap 'kill $pid 2>/dev/null; wait $pid; rm -rf "$1"' EXIT
export SLURM_CONF="$1/slurm.conf"
while kill -0 $pid 2>/dev/null; do
    if scontrol ping >ping 2>&1; then exit 0; fi
    sleep 0.1
done
cat log >&2
exit 1
"""


def trial_files(files: dict[str, str], folder: PurePosixPath) -> dict[str, str]:
    """Return the files for a trial start, to be written into `folder` before `slurmctld -D -f <folder>/slurm.conf`.

    State, pid file and port are separate, and the state is empty: the trial knows no nodes and jobs, and affects none.
    `folder` needs an empty subfolder `state`, and slurm must be able to write to both. `SLURM_CONF=<folder>/slurm.conf
    scontrol ping` answers if the files are accepted; otherwise slurmctld ends with exit code 1 and prints the reason.
    """
    own = {
        "SlurmctldPort": str(TRIAL_PORT),
        "StateSaveLocation": str(folder / "state"),
        "SlurmctldPidFile": str(folder / "slurmctld.pid"),
    }
    text = files["slurm.conf"]
    # The trial slurmctld must not register with slurmdbd. Without slurmdbd, it accepts no TRES to account for.
    text = re.sub(r"(?m)^AccountingStor(age|e)\w+=.*\n", "", text)
    for name, value in own.items():
        text, count = re.subn(rf"(?m)^{name}=.*$", f"{name}={value}", text)
        if count != 1:
            raise ValueError(f"slurm.conf has {count} lines of {name}, needs one")
    return {**files, "slurm.conf": text}


def trial_start(transport: Transport, files: Mapping[str, str], folder: PurePosixPath) -> None:
    """Start slurmctld on `files`, made by `trial_files` for `folder`, and stop it again.

    Raises:
        SlurmError: slurmctld did not start; with its own message.
        TransportError: the result of the start is unknown.
    """
    contents = {name: text.encode() for name, text in files.items()}
    # The files arrive on standard input one after the other; their lengths separate them.
    write = "\n".join(f"head -c {len(text)} >{shlex.quote(name)}" for name, text in contents.items())
    answer = transport.run(
        ["/bin/sh", "-c", _SCRIPT.format(write=write), "trial", str(folder)],
        stdin=b"".join(contents.values()),
        timeout_seconds=TRIAL_SECONDS,
    )
    if answer.returncode != 0:
        # The cause is in the last error before the fatal one, and in the fatal one.
        causes = [line for line in answer.message.splitlines() if "error:" in line or "fatal:" in line][-2:]
        raise SlurmError("\n".join(causes) or answer.message or f"slurmctld did not start in {TRIAL_SECONDS} s.")
