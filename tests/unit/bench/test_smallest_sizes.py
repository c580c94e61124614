"""Benchmarks work: `make soak` runs all in their smallest size."""

import os
import subprocess
import sys

import pytest

from tools import paths

BENCH = "tests/bench"
ON_A_CLUSTER = sorted(
    str(file.relative_to(paths.ROOT))
    for file in (paths.ROOT / BENCH).glob("test_*.py")
    if "pytest.mark.cluster" in file.read_text()
)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        command,
        cwd=paths.ROOT,
        env={**os.environ, "BENCH_SIZE": "smallest"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.mark.soak
def test_benchmarks_without_a_cluster_measure() -> None:
    done = run("-m", "not cluster", BENCH)
    assert done.returncode == 0, done.stdout
    assert "what, against what" in done.stdout


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("file", ON_A_CLUSTER)
def test_benchmarks_on_a_cluster_measure(file: str) -> None:
    done = run(file)
    assert done.returncode == 0, done.stdout
