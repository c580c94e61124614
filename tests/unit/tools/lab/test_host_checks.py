"""Machines on which a machine of the lab can't run."""

from dataclasses import replace
from pathlib import Path

import pytest

from tools.console import UserError
from tools.kube.machine import Filesystem
from tools.lab.host_checks import LARGE_MIB, Host, host, problems, require

FIT = Host(Filesystem(Path("/dev/shm"), 0, 1 << 40))


def test_a_fit_machine_has_no_problem() -> None:
    assert not list(problems(FIT, 8192))


def test_the_facts_are_those_of_this_machine() -> None:
    assert host().mappings > 0
    assert host().memory_bytes > 0


def test_a_large_machine_needs_a_setting_that_a_small_one_does_not() -> None:
    usual = replace(FIT, mappings=65530)
    assert not list(problems(usual, LARGE_MIB - 1))
    (problem,) = problems(usual, LARGE_MIB)
    assert problem.endswith("sysctl -w vm.max_map_count=1048576")


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(replace(FIT, uid=1000), "runs as user id 1000", id="user"),
        pytest.param(replace(FIT, memory_bytes=1 << 30), "1024 MiB of memory are available", id="memory"),
        pytest.param(
            replace(FIT, shared_memory=replace(FIT.shared_memory, free_bytes=64 << 20)),
            "/dev/shm has 64 MiB free.*mount -o remount,size=9216m /dev/shm",
            id="shared memory",
        ),
        pytest.param(
            replace(FIT, shared_memory=replace(FIT.shared_memory, noexec=True)),
            "mount -o remount,exec /dev/shm",
            id="noexec",
        ),
    ],
)
def test_an_unfit_machine_is_told_the_next_step(facts: Host, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        require(facts, 8192)


def test_all_problems_come_at_once() -> None:
    with pytest.raises(UserError) as raised:
        require(replace(FIT, uid=1000, mappings=65530, memory_bytes=0), 8192)
    assert str(raised.value).count("\n  - ") == 3
