"""Hostlist expressions against the real scontrol."""

import itertools
import shlex

import pytest

from soperator_pulumi.slurm.hostlist import compress, expand
from tests.cluster.slurm import Slurm

pytestmark = pytest.mark.cluster

EXPRESSIONS = [
    *(
        "a",
        "a1",
        "12",
        "a[5]",
        "a[1-3]",
        "a[1,3,5-7]",
        "x[1-3,2]",
        "a-[0-3],b-[2]",
        "n[1-2],n[2-3]",
        "gpu-0,gpu-1,gpu-1",
    ),
    *("a[01-03]", "a[8-11]", "a[08-11]", "a[99-101]", "a[099-101]", "a[1-02]", "a[001-2]", "a[1,01]", "[1-3]"),
    *("a[0-1]b", "a[0-1]-b[2-3]", "n[0-1]x[0-1]", "a[1-2][3-4]", "a[1-2]b[3-4]c", "a.b-[1-2].c"),
    "a[123456789012-123456789013]",
]
NUMBERS = [(7,), (0, 1, 2), (9, 10), (8, 9, 10, 11), (2, 1), (5, 5), (1, 3, 5, 6), (98, 99, 100, 101), (0, 0, 1)]
PARTS = [
    [f"{prefix}{number:0{width}d}" for number in numbers]
    for prefix, width, numbers in itertools.product(["gpu-", "a-b-", "r1n"], [0, 2, 3], NUMBERS)
]
LISTS = [*PARTS, *map(list.__add__, PARTS, PARTS[1:]), *map(list.__add__, PARTS, PARTS[len(PARTS) // 3 :])]


def test_hostlists_are_those_of_the_real_scontrol(slurm: Slurm) -> None:
    asked = [("hostnames", expression) for expression in EXPRESSIONS] + [("hostlist", ",".join(row)) for row in LISTS]
    script = "\n".join(f"echo =; scontrol show {what} {shlex.quote(given)}" for what, given in asked)
    answers = slurm.exec("controller-0", "slurmctld", "sh", "-ec", script).split("=\n")[1:]
    told = [expand(expression) for expression in EXPRESSIONS] + [[compress(row)] for row in LISTS]
    assert [answer.split() for answer in answers] == told
