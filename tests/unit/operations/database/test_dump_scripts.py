"""The scripts of the database's image that work on dumps, run by bash with gzip and flock, as in a pod.

mariadb-dump itself runs in the cluster tier: here it is a program that writes a few lines, or ends in the middle.
"""

import gzip
import os
import subprocess
from pathlib import Path

import pytest

IMAGE = Path(__file__).parents[4] / "images" / "database"
HEADER = "-- soperator-pulumi: accounting of cluster hpc"
END = "-- Dump completed on 2026-11-21  8:00:00"


def a_dump(folder: Path, name: str, *lines: str) -> Path:
    file = folder / name
    file.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    return file


def check(file: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CLUSTER": "hpc"}
    return subprocess.run(
        ["bash", IMAGE / "check-dump", file], env=environment, capture_output=True, text=True, check=False
    )


def test_a_whole_dump_of_the_cluster_is_taken(tmp_path: Path) -> None:
    assert check(a_dump(tmp_path, "a.sql.gz", HEADER, "CREATE TABLE a (b INT);", END)).returncode == 0


def test_a_dump_that_ended_in_the_middle_is_refused(tmp_path: Path) -> None:
    checked = check(a_dump(tmp_path, "a.sql.gz", HEADER, "CREATE TABLE a (b INT);"))
    assert checked.returncode == 1
    assert "is incomplete: the dump ended before its last line" in checked.stderr


@pytest.mark.parametrize("kept_bytes", [0, 1, 20, -1])
def test_a_file_that_was_cut_is_refused(tmp_path: Path, kept_bytes: int) -> None:
    file = a_dump(tmp_path, "a.sql.gz", HEADER, "CREATE TABLE a (b INT);", END)
    file.write_bytes(file.read_bytes()[:kept_bytes])
    checked = check(file)
    assert checked.returncode == 1
    assert f"{file} is" in checked.stderr


def test_a_dump_of_another_cluster_is_refused_with_its_first_line(tmp_path: Path) -> None:
    checked = check(a_dump(tmp_path, "a.sql.gz", f"{HEADER}2", END))
    assert checked.returncode == 1
    assert f"is no dump of the cluster hpc. Its first line: {HEADER}2" in checked.stderr


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A volume with three dumps, one of another cluster, and what a killed dump has left."""
    volume = tmp_path / "dumps"
    volume.mkdir()
    for name in ("hpc-20261119T013000Z", "hpc-20261120T013000Z", "hpc2-20261118T013000Z"):
        a_dump(volume, f"{name}.sql.gz", HEADER, END)
    (volume / "hpc-20261121T013000Z.sql.gz.partial").touch()
    return volume


def dump(volume: Path, tool: str, *, keep: int = 2) -> subprocess.CompletedProcess[str]:
    """Run the script on a volume, with a program in place of mariadb-dump."""
    programs = volume.parent / "programs"
    programs.mkdir(exist_ok=True)
    for name, text in {"mariadb-dump": tool, "write-client-options": "true"}.items():
        (programs / name).write_text(f"#!/bin/bash\n{text}\n")
        (programs / name).chmod(0o755)
    script = (IMAGE / "dump-database").read_text().replace("/var/lib/dumps", str(volume))
    given = {"CLUSTER": "hpc", "KEEP": str(keep), "DATABASE_NAME": "slurm_acct_db"}
    environment = {**os.environ, **given, "PATH": f"{programs}:{IMAGE}:{os.environ['PATH']}"}
    return subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)


def names(volume: Path) -> list[str]:
    return sorted(path.name for path in volume.iterdir() if path.name != ".lock")


def test_the_oldest_dump_of_the_cluster_goes_once_a_new_one_is_whole(volume: Path) -> None:
    done = dump(volume, f"echo '{END}'")
    assert done.returncode == 0, done.stderr
    assert "removed hpc-20261119T013000Z.sql.gz" in done.stdout
    left = names(volume)
    assert left[0] == "hpc-20261120T013000Z.sql.gz"
    assert left[2:] == ["hpc2-20261118T013000Z.sql.gz"]
    assert check(volume / left[1]).returncode == 0


def test_dumps_of_a_database_that_lost_its_records_push_out_none_that_has_them(volume: Path) -> None:
    records = [os.urandom(32).hex() for _ in range(100)]
    full = a_dump(volume, "hpc-20261119T013000Z.sql.gz", HEADER, *records, END)
    done = dump(volume, f"echo '{END}'", keep=1)
    assert done.returncode == 0, done.stderr
    assert "kept hpc-20261119T013000Z.sql.gz: more than twice as large as the new one" in done.stderr
    assert "removed hpc-20261120T013000Z.sql.gz" in done.stdout
    assert check(full).returncode == 0


@pytest.mark.parametrize("tool", ["exit 2", "echo half; exit 3", "echo half"])
def test_a_dump_that_fails_leaves_all_former_ones(volume: Path, tool: str) -> None:
    assert dump(volume, tool, keep=1).returncode != 0
    assert [name for name in names(volume) if not name.endswith(".partial")] == [
        "hpc-20261119T013000Z.sql.gz",
        "hpc-20261120T013000Z.sql.gz",
        "hpc2-20261118T013000Z.sql.gz",
    ]


def test_a_dump_next_to_another_one_is_left_out(volume: Path) -> None:
    with subprocess.Popen(
        ["flock", volume / ".lock", "-c", "echo held; read -r _"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        done = dump(volume, f"echo '{END}'")
        holder.communicate("\n")
    assert done.returncode == 1
    assert "Another dump or a restore uses the volume" in done.stderr
    assert "hpc-20261121T013000Z.sql.gz.partial" in names(volume), "the other one's"
