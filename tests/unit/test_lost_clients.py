"""lost_clients.so (images/bounds) in front of what stands for libslurm and slurmstepd."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.spank_plugin.compiler import toolchain
from tools.paths import ROOT

LIBRARY = """\
int asked;
int slurm_send_recv_rc_msg_only_one(const char *request, int *code, int milliseconds)
{
    asked++;
    *code = request[1];
    return request[0];
}
#ifdef NEWER
int switch_g_stepinfo_unpack(void) { return 0; }
#endif
"""
"""What stands for libslurm. A request says what comes of it, and its code."""

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern int asked;
int slurm_send_recv_rc_msg_only_one(const char *request, int *code, int milliseconds);
int main(int count, char **words)
{
    unsigned short type = atoi(words[1]);
    char request[256] = {atoi(words[2]), atoi(words[3])};
    int told = 0, code;

    memcpy(request + TYPE_AT, &type, sizeof(type));
    for (int i = 0; i < 100; i++)
        told += !slurm_send_recv_rc_msg_only_one(request, &code, 0) && !code;
    printf("%d %d", asked, told);
    return 0;
}
"""
"""Ask 100 times, and print how often libslurm was asked, and how often all went well, as it seems."""

LAUNCHED, EXITED, STEP_COMPLETE = 6002, 6003, 5016
VERSIONS = {"24.11": ["-DTYPE_AT=212"], "26.05": ["-DTYPE_AT=226", "-DNEWER"]}


@pytest.fixture(scope="module", params=sorted(VERSIONS))
def build(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    tools, build = toolchain(), tmp_path_factory.mktemp("clients") / "build"
    shutil.copytree(ROOT / "images" / "bounds", build)
    (build / "library.c").write_text(LIBRARY)
    (build / "program.c").write_text(PROGRAM)
    version = VERSIONS[request.param]
    compiled = [
        [str(tools.make), "--silent", *tools.variables, "lost_clients.so"],
        [*tools.compiler, *version, "-fPIC", "-shared", "-o", "libclients.so", "library.c"],
        [*tools.compiler, *version, "-o", "program", "program.c", "-L.", "-lclients", f"-Wl,-rpath,{build}"],
    ]
    for command in compiled:
        subprocess.run(command, cwd=build, env={**os.environ, **tools.environment}, check=True, timeout=300)
    return build


def asked_and_told(build: Path, kind: int, result: int, code: int) -> tuple[int, int]:
    """Return how many of 100 messages are sent, and how many are told as received."""
    command = [str(build / "program"), *(str(word) for word in (kind, result, code))]
    environment = {"LD_PRELOAD": str(build / "lost_clients.so")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    asked, told = done.stdout.split()
    return int(asked), int(told)


@pytest.mark.parametrize("kind", [LAUNCHED, EXITED])
@pytest.mark.parametrize(("result", "code"), [(-1, 0), (0, 1)])
def test_a_step_waits_for_its_lost_clients_for_a_minute(build: Path, kind: int, result: int, code: int) -> None:
    """Every one takes a second at least. slurmstepd would wait for a client that it believes lost."""
    asked, told = asked_and_told(build, kind, result, code)
    assert 58 <= asked <= 60
    assert told == 100 - asked


def test_clients_that_answer_are_all_told(build: Path) -> None:
    assert asked_and_told(build, EXITED, 0, 0) == (100, 100)


def test_slurmctld_is_asked_as_often_as_it_takes(build: Path) -> None:
    assert asked_and_told(build, STEP_COMPLETE, -1, 0) == (100, 0)
