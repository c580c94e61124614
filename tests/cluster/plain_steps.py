"""Steps without the plugin, on the workers' own root: what the jail is compared with.

Root of the machine opens the workers' root, which users can't use otherwise, through the processes of slurmd.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.slurm import Slurm
from tests.cluster.workers import pods

_PLUGSTACK = "var/spool/slurmd/conf-cache/plugstack.conf"
"""File by which the steps of a node find their plugins, read at every start of a step."""

_PROGRAMS = ("usr", "opt")
"""Folders that only root may read in a worker."""


class Roots:
    """Root folders of the workers of a node set, as this machine sees them."""

    def __init__(self, slurm: Slurm) -> None:
        uids = {pod.metadata.uid for pod in pods(slurm).values()}
        self._of = {process: Path(f"/proc/{process}/root") for process in _oldest(uids)}
        assert len(self._of) == len(uids), f"{len(self._of)} of {len(uids)} pods have a slurmd"
        self._stack = next(iter(self._of.values())).joinpath(_PLUGSTACK).read_text()

    @contextmanager
    def open_to_users(self) -> Iterator[None]:
        """Let users run the programs of the workers' own root while the body runs."""
        self._remount("rw", 0o755)
        try:
            yield
        finally:
            self.use_plugin(True)
            self._remount("rw", 0o700)
            self._remount("ro", 0o700)

    def use_plugin(self, used: bool) -> None:
        """Have the next steps start with the jail's plugin, or without any."""
        for root in self._of.values():
            root.joinpath(_PLUGSTACK).write_text(self._stack if used else "")

    def _remount(self, mode: str, bits: int) -> None:
        for process, root in self._of.items():
            enter = ["nsenter", f"--target={process}", "--mount", "--"]
            subprocess.run([*enter, "mount", "-o", f"remount,bind,{mode}", "/"], check=True, timeout=60)
            for name in _PROGRAMS if mode == "rw" else ():
                root.joinpath(name).chmod(bits)


def _oldest(uids: set[str]) -> list[int]:
    """Return the process of slurmd in every pod: the oldest of that name, as slurmd forks for steps."""
    found: dict[str, int] = {}
    for process in sorted(int(path.name) for path in Path("/proc").glob("[0-9]*")):
        try:
            if Path(f"/proc/{process}/comm").read_text() != "slurmd\n":
                continue
            cgroup = Path(f"/proc/{process}/cgroup").read_text()
        except OSError:
            continue  # it has ended
        for uid in uids:
            if f"pod{uid}" in cgroup:
                found.setdefault(uid, process)
    return [*found.values()]
