"""The quick checks of a healthy machine under load: the real program on the real kernel. slurmctld alone is made."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from health_testing import IMPORT_ROOTS
from soperator_pulumi import parse_cluster
from soperator_pulumi.render.node_health import node_settings
from tests.rendered.cluster.clusters import a_spec
from tests.soak import times

HEALTH = Path(__file__).parents[2] / "images/health"
SERIES = range(times(1, 10))
ROUNDS = times(10, 100)
"""In each series."""
MEMORY_MIB = times(64, 4096)

SCONTROL = """#!/bin/sh
case "$1" in
show) echo 'NodeName=cpu-0 State=IDLE+DYNAMIC_NORM ThreadsPerCore=1' ;;
*) echo "$*" >> {calls} ;;
esac
"""
PROGRAM = """
import sys; sys.path[:0] = {roots}
from node_health.command import check; sys.exit(check("cpu-0", {folder!r}, {folder!r}))
"""


@pytest.mark.timeout(times(300, 1800))
@pytest.mark.parametrize("series", SERIES)
def test_rounds_of_a_healthy_machine_under_load_drain_nothing(tmp_path: Path, series: int) -> None:
    spec = parse_cluster({"name": "hpc", **a_spec()})
    volumes = [{"path": "/dev/shm", "shared": False, "read_only": False}]
    settings = node_settings(spec, spec.node_sets[0]) | {"volumes": volumes, "jail": str(tmp_path), "memory_mib": 1}
    (tmp_path / "active").mkdir()
    (tmp_path / "cpu.json").write_text(json.dumps(settings))
    scontrol, calls = tmp_path / "bin/scontrol", tmp_path / "calls"
    scontrol.parent.mkdir()
    scontrol.write_text(SCONTROL.format(calls=calls))
    scontrol.chmod(0o755)
    program = PROGRAM.format(roots=IMPORT_ROOTS, folder=str(tmp_path))
    done = subprocess.run(
        [
            *("nice", sys.executable, HEALTH / "health_testing/rounds_under_load.py", str(ROUNDS), tmp_path),
            *(str(MEMORY_MIB), sys.executable, "-IS", "-c", program),
        ],
        env={**os.environ, "PATH": f"{scontrol.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    sys.stdout.write(done.stdout)
    found = json.loads(done.stdout)
    made = calls.read_text() if calls.exists() else ""
    assert (found["rounds"], found["held"]) == (ROUNDS, None), found
    assert "state=drain" not in made, (found, made)
    assert found["checks"] >= 8
