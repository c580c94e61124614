"""The trial start's script, run by a real shell with programs that stand for slurmctld and scontrol."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given

from soperator_pulumi.errors import SlurmError
from soperator_pulumi.render import layout
from soperator_pulumi.render.change_impact import parse_conf
from soperator_pulumi.render.slurm_files import slurm_files
from soperator_pulumi.slurm.transport import Answer
from soperator_pulumi.slurm.trial import TRIAL_PORT, trial_files, trial_start
from soperator_pulumi.spec.cluster import ClusterSpec
from tests.strategies import cluster_specs

FILES = {"slurm.conf": "ClusterName=hpc\n", "cgroup.conf": "CgroupPlugin=disabled\nümlaut\n"}


class Shell:
    """Runs commands on this machine, with `programs` first on PATH; standard input stays open, as in an exec."""

    def __init__(self, programs: Path) -> None:
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}

    def run(self, command: Sequence[str], *, stdin: bytes = b"", timeout_seconds: int = 30) -> Answer:
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
        ) as process:
            assert process.stdin
            assert process.stdout
            assert process.stderr
            process.stdin.write(stdin)
            process.stdin.flush()
            returncode = process.wait(timeout_seconds)
            return Answer(returncode, process.stdout.read().decode(), process.stderr.read().decode())


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    # It starts, and writes down that it was stopped.
    noted = f'trap "touch {tmp_path}/stopped; exit" TERM'
    program(folder, "slurmctld", f'{noted}; cp -r "$PWD" {tmp_path}/seen; sleep 60 & wait')
    used = f'test "$SLURM_CONF" = {tmp_path}/trial/slurm.conf'
    program(folder, "scontrol", f"test -e {tmp_path}/seen/slurm.conf && {used}")
    return folder


def test_files_with_which_slurmctld_starts_are_taken_and_nothing_is_left(programs: Path, tmp_path: Path) -> None:
    trial_start(Shell(programs), FILES, PurePosixPath(tmp_path / "trial"))
    assert {name: (tmp_path / "seen" / name).read_text() for name in FILES} == FILES
    assert (tmp_path / "seen" / "state").is_dir()
    assert (tmp_path / "stopped").exists()
    assert not (tmp_path / "trial").exists()


def test_what_slurmctld_says_as_it_ends_is_the_error(programs: Path, tmp_path: Path) -> None:
    words = "slurmctld: error: no such plugin\nslurmctld: fatal: cannot start"
    program(programs, "slurmctld", f"echo 'slurmctld: starting'; echo '{words}' >&2; exit 1")
    program(programs, "scontrol", "exit 1")
    with pytest.raises(SlurmError) as raised:
        trial_start(Shell(programs), FILES, PurePosixPath(tmp_path / "trial"))
    assert str(raised.value) == words
    assert not (tmp_path / "trial").exists()


def test_what_a_killed_trial_left_behind_does_not_matter(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "trial" / "state").mkdir(parents=True)
    (tmp_path / "trial" / "state" / "old").touch()
    trial_start(Shell(programs), FILES, PurePosixPath(tmp_path / "trial"))
    assert not (tmp_path / "seen" / "state" / "old").exists()


FOLDER = PurePosixPath("/somewhere/trial")


@given(cluster_specs())
def test_a_trial_differs_from_the_real_thing_in_port_and_places_only(spec: ClusterSpec) -> None:
    files = slurm_files(spec)
    trial = trial_files(files, FOLDER)
    assert {name for name in files if trial[name] != files[name]} == {"slurm.conf"}
    real, other = parse_conf(files["slurm.conf"]), parse_conf(trial["slurm.conf"])
    assert real.lines == other.lines
    names = real.parameters.keys() | other.parameters.keys()
    differing = {name for name in names if real.parameters.get(name) != other.parameters.get(name)}
    assert not any(name.startswith("Accounting") for name in other.parameters), "it would register at slurmdbd"
    differing = {name for name in differing if not name.startswith("Accounting")}
    assert differing == {"SlurmctldPort", "StateSaveLocation", "SlurmctldPidFile"}
    assert other.parameters["StateSaveLocation"] == "/somewhere/trial/state"


def test_a_file_without_the_places_is_refused_as_a_trial_would_touch_the_real_state() -> None:
    with pytest.raises(ValueError, match=r"slurm\.conf has 0 lines of SlurmctldPort"):
        trial_files({"slurm.conf": "ClusterName=a\n"}, FOLDER)


def test_the_port_of_a_trial_is_no_port_of_a_pod() -> None:
    ports = {value for name, value in vars(layout).items() if name.endswith("_PORT")}
    assert layout.SLURMCTLD_PORT in ports
    assert TRIAL_PORT not in ports
