"""Scripts that start Slurm's daemons: no image of another version than the spec's, and the id that slurmctld has."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from soperator_pulumi.cluster.containers import script_of_image
from soperator_pulumi.operations.slurm_upgrade import OTHER_VERSION
from soperator_pulumi.render.layout import ACCOUNTING_CLUSTER_ID, IMAGE_SCRIPTS, SLURM_OF_SPEC
from tools.paths import ROOT

SCRIPTS = {
    "slurmctld": ROOT / "images/controller/start-slurmctld",
    "slurmdbd": ROOT / "images/accounting/start-slurmdbd",
    "slurmrestd": ROOT / "images/rest/start-slurmrestd",
}
OTHERS = {"dpkg-query": "echo 26.05.5", "install": "", "rm": "", "head": ""}
"""Programs that the scripts run, by name, with what they do here."""
FOLDERS = {"/var/spool/slurmctld": "state", "/run/slurmdbd": "run"}
"""Folders that the scripts write to, with those that stand for them here."""


def start(
    daemon: str, folder: Path, variables: Mapping[str, str] = MappingProxyType({}), *, sacct: str = "exit 1"
) -> subprocess.CompletedProcess[str]:
    """Run the script of a daemon of 26.05, which reports its start, with an answer of sacct; return what it did."""
    for name, does in {**OTHERS, "sacct": sacct, daemon: f"echo {daemon} starts"}.items():
        (folder / name).write_text(f"#!/bin/sh\n{does}\n")
        (folder / name).chmod(0o755)
    script = SCRIPTS[daemon].read_text()
    for known, other in FOLDERS.items():
        (folder / other).mkdir(exist_ok=True)
        script = script.replace(known, str(folder / other))
    return subprocess.run(
        ["sh", "-c", script, "start", str(folder / "slurm.conf")],
        env={"PATH": f"{folder}:{ROOT / 'images/version'}:/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


IN_USE = {"STATE_IN_USE": "on the claim slurmctld-state"}


def test_slurmctld_starts_on_the_empty_state_of_a_new_cluster(tmp_path: Path) -> None:
    assert start("slurmctld", tmp_path).stdout == "slurmctld starts\n"


def test_slurmctld_does_not_start_on_a_state_that_was_lost_and_says_what_to_do(tmp_path: Path) -> None:
    done = start("slurmctld", tmp_path, IN_USE)
    assert (done.returncode, done.stdout) == (66, "")
    assert "is empty, and slurmctld has run before (on the claim slurmctld-state)" in done.stderr
    assert "Restore the volume, or name the claim that has the state." in done.stderr
    assert "set storage.state.accept.emptied to the reason" in done.stderr
    assert done.returncode != OTHER_VERSION, "an upgrade takes that for an image of another version"
    assert not [*(tmp_path / "state").iterdir()]


def test_a_lost_state_is_accepted_for_a_reason_which_is_told(tmp_path: Path) -> None:
    done = start("slurmctld", tmp_path, {**IN_USE, "STATE_LOSS_ACCEPTED": "a trial"})
    assert done.stdout.endswith("Accepted: a trial\nslurmctld starts\n")


def test_a_state_with_files_needs_no_reason(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "job_state").touch()
    assert start("slurmctld", tmp_path, IN_USE).stdout == "slurmctld starts\n"


CONF = "AccountingStorageType=accounting_storage/slurmdbd\n"


def id_after_start(folder: Path, sacct: str, *, confirmed: str | None = None, recorded: str | None = None) -> str:
    """Start slurmctld on a state with the id 17, with an answer of sacct, and return the id that it then has."""
    state = folder / "state"
    state.mkdir(exist_ok=True)
    (folder / "slurm.conf").write_text(CONF)
    (state / "clustername").write_text("hpc|17")
    if recorded is not None:
        (state / "clustername.recorded").write_text(recorded)
    if confirmed is not None:
        (folder / ACCOUNTING_CLUSTER_ID).write_text(f"{confirmed}\n")
    done = start("slurmctld", folder, sacct=sacct)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "slurmctld starts")
    known = state / "clustername"
    return known.read_text() if known.exists() else ""


def test_a_database_without_jobs_of_the_cluster_gives_slurmctld_its_id(tmp_path: Path) -> None:
    assert id_after_start(tmp_path, "true") == ""
    assert (tmp_path / "state" / "clustername.before").read_text() == "hpc|17"


def test_the_id_stays_where_the_database_has_jobs_and_is_not_looked_up_again(tmp_path: Path) -> None:
    assert id_after_start(tmp_path, "echo 1; echo 2") == "hpc|17"
    assert id_after_start(tmp_path, "true", recorded="hpc|17") == "hpc|17"


def test_the_id_stays_where_slurmdbd_is_down(tmp_path: Path) -> None:
    assert id_after_start(tmp_path, "exit 1") == "hpc|17"
    assert not (tmp_path / "state" / "clustername.recorded").exists()


def test_an_id_that_was_confirmed_takes_the_place_of_the_former_which_is_kept(tmp_path: Path) -> None:
    assert id_after_start(tmp_path, "echo 1", confirmed="2695") == "hpc|2695"
    assert (tmp_path / "state" / "clustername.before").read_text() == "hpc|17"


@pytest.mark.parametrize("daemon", SCRIPTS)
def test_an_image_with_another_version_than_the_spec_starts_nothing(daemon: str, tmp_path: Path) -> None:
    done = start(daemon, tmp_path, {SLURM_OF_SPEC: "24.11"})

    assert (done.returncode, done.stdout) == (OTHER_VERSION, "")
    assert done.stderr.startswith("The image has Slurm 26.05.5, and slurm.version is 24.11: nothing was started.")


@pytest.mark.parametrize("daemon", SCRIPTS)
@pytest.mark.parametrize("spec", [{SLURM_OF_SPEC: "26.05"}, {}])
def test_an_image_with_the_version_of_the_spec_starts(daemon: str, spec: dict[str, str], tmp_path: Path) -> None:
    done = start(daemon, tmp_path, spec)

    assert (done.returncode, done.stdout) == (0, f"{daemon} starts\n")


@pytest.mark.parametrize(
    ("setting", "script"),
    [("controller", "start-slurmctld"), ("accounting", "start-slurmdbd"), ("database", "start-database")],
)
def test_an_image_of_before_ends_in_words_that_name_it(setting: str, script: str) -> None:
    done = subprocess.run(script_of_image(setting, script), capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout) == (127, "")
    assert f"{script} is not in this image: images.{setting} is of another version than the program" in done.stderr
    assert f"COPY {script} watch {IMAGE_SCRIPTS}/\n" in (ROOT / "images" / setting / "Containerfile").read_text()
