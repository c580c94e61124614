"""A slurm.conf for a trial start: a second slurmctld beside the running one, to hear whether it takes new files.

`scontrol reconfigure` alone cannot tell. scontrol parses the file and refuses what it cannot read; but a slurmctld in
the foreground (`-D`, as in a pod) then answers "done" and replaces itself, and when it refuses the new file only
then, for a plugin that is not there for example, it is gone (measured with 24.11.5: `SchedulerType=sched/nonsense`,
exit code 0, controller dead). A trial start with the same files takes 0.1 to 0.3 s and says why not.
"""

import re
from pathlib import PurePosixPath

TRIAL_PORT = 6816
"""Port of the trial's slurmctld: free in the controller's pod, and opened by no Service or NetworkPolicy."""


def trial_files(files: dict[str, str], folder: PurePosixPath) -> dict[str, str]:
    """Return the files of a trial start, to be written into `folder` before `slurmctld -D -f <folder>/slurm.conf`.

    Its state, pid file and port are its own, and its state is empty: it knows no node and no job, and touches none.
    `folder` needs an empty subfolder `state`, both writable for slurm. `SLURM_CONF=<folder>/slurm.conf scontrol
    ping` answers when the files are taken; else slurmctld ends with exit code 1, its reason in its output.
    """
    own = {
        "SlurmctldPort": str(TRIAL_PORT),
        "StateSaveLocation": str(folder / "state"),
        "SlurmctldPidFile": str(folder / "slurmctld.pid"),
    }
    text = files["slurm.conf"]
    for name, value in own.items():
        text, count = re.subn(rf"(?m)^{name}=.*$", f"{name}={value}", text)
        if count != 1:
            raise ValueError(f"slurm.conf has {count} lines of {name}, needs one")
    return {**files, "slurm.conf": text}
