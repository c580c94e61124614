"""bounded_hostlists.so, built with the machine's compiler, in front of a library in slurmctld's place."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.spank_plugin.compiler import toolchain

SOURCES = Path(__file__).parents[2] / "images" / "controller" / "hostlists"
LIBRARY = """\
void *hostlist_create_dims(const char *list, int dims) { return dims == 1 ? (void *)list : 0; }
void *slurm_hostlist_create_dims(const char *list, int dims) { return hostlist_create_dims(list, dims); }
void *hostlist_create(const char *list) { return hostlist_create_dims(list, 1); }
"""
PROGRAM = """\
void *hostlist_create(const char *list);
int main(int count, char **words) { return count == 2 && hostlist_create(words[1]) ? 0 : 1; }
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tools, build = toolchain(), tmp_path_factory.mktemp("hostlists") / "build"
    shutil.copytree(SOURCES, build)
    (build / "library.c").write_text(LIBRARY)
    (build / "program.c").write_text(PROGRAM)
    environment = {**os.environ, **tools.environment}
    compiled = [
        [str(tools.make), "--silent", *tools.variables],
        [*tools.compiler, "-fPIC", "-shared", "-o", "liblists.so", "library.c"],
        [*tools.compiler, "-o", "program", "program.c", "-L.", "-llists", f"-Wl,-rpath,{build}"],
    ]
    for command in compiled:
        subprocess.run(command, cwd=build, env=environment, check=True, timeout=300)
    return build


def is_made(build: Path, hosts: str, limit: dict[str, str]) -> bool:
    """Return True if a program gets a list of the hosts."""
    environment = {"LD_PRELOAD": str(build / "bounded_hostlists.so"), **limit}
    return subprocess.run([build / "program", hosts], env=environment, check=False, timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("hosts", "made"),
    [
        ("", True),
        ("cpu-0", True),
        ("cpu-[0-9]", True),
        ("cpu-[0-4,7-9],gpu-0,gpu-1", True),
        ("cpu-[0-9],gpu-0", False),
        ("cpu-[00-09] gpu-0", False),
        ("a,b,c,d,e,f,g,h,i,j,k", False),
        ("x[0-9999][0-9999]", False),
        ("x[0-4]y[0-1]", True),
        ("x[0-4]y[0-2]", False),
        ("x[0-18446744073709551615]", False),
        ("x[0-4294967295][0-4294967295][0-4294967295]", False),
        ("x[5-1]", True),
        ("x[][0-10]", False),
        ("x[,][0-10]", False),
        ("x[0-+9]", False),
        ("x[0- 9]", False),
        ("x[[0-1]y[0-1]", False),
        ("x[0-99", False),
        ("x[", False),
        ("x]", True),
        ("x[a-z]", False),
    ],
)
def test_a_list_of_more_hosts_than_the_limit_is_no_list(build: Path, hosts: str, made: bool) -> None:
    assert is_made(build, hosts, {"HOSTLIST_MAX": "10"}) == made


def test_without_a_limit_every_list_is_made(build: Path) -> None:
    assert is_made(build, "x[0-99999]", {})
