"""Limits, devices, and escapes of jobs, by the cluster tier's suites, on a machine with cgroup v2 and AppArmor."""

import re
import shlex

import pytest

from tests.cluster import fetch
from tools.lab.script_machine import run_script
from tools.lab.slurm_machine import MEMORY_MIB, PROCESSORS, preparation

pytestmark = [pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(3600)]

SUITES = {"test_constrain": 100, "test_gpu_jobs": 15, "test_jail_escapes": 250, "test_limits": 10}
"""Modules of tests/cluster, with a number of tests that pass at least: none is left out without a word."""

OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR) tests/cluster/\w+\.py::(.+)$", re.MULTILINE)


@pytest.mark.parametrize("module", SUITES)
def test_a_suite_passes_on_the_labs_kernel(module: str) -> None:
    fetch.main()  # the machine has no network
    command = [".venv/bin/python", "-m", "pytest", "-q", "-rA", "--color=no", f"tests/cluster/{module}.py"]
    printed = run_script(
        f"{preparation()}{shlex.join(command)} || true",
        memory_mib=MEMORY_MIB,
        processors=PROCESSORS,
        writable=True,
        timeout_seconds=3000,
    )
    ended = OUTCOME.findall(printed)
    assert [name for how, name in ended if how != "PASSED"] == [], printed
    assert len(ended) >= SUITES[module], printed
