"""Containers of images without a shell, with another C library, and with very many files."""

import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from containers_testing.image_registry import layer, make_layout, special

from tests.cluster import busybox
from tests.cluster.slurm import JAIL, Slurm, a_cluster, a_jail, a_node_set, bring_images, deployed, unique
from tests.conftest import Kubernetes
from tests.debian_packages import unpacked_packages
from tests.unit.spank_plugin.compiler import toolchain

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.timeout(1200)]

PROGRAM = """
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    const struct passwd *user = getpwuid(getuid());

    printf("%s in %s\\n", user ? user->pw_name : "no name", user ? user->pw_dir : "no home");
    return 7;
}
"""
"""Prints what its C library knows of the user, and ends with an exit code of its own."""

MUSL = ("musl", "musl-dev")
FILES, FILES_A_FOLDER = 200_000, 1000


def compiled(folder: Path, *options: str | Path) -> bytes:
    """Return the program, built with the options, of which files are linked after it."""
    (folder / "program.c").write_text(PROGRAM)
    tools = toolchain()
    command = [*tools.compiler, "-O2", "-o", folder / "program", folder / "program.c", *options]
    subprocess.run(command, env={**os.environ, **tools.environment}, check=True, timeout=300)
    return (folder / "program").read_bytes()


def with_musl(folder: Path) -> bytes:
    """Return a layer with the C library musl, and a program that is linked to it."""
    root = unpacked_packages("musl", MUSL, lambda apt: apt.fresh_closure(MUSL) & set(MUSL))
    library, headers, start = (next(root.glob(f"**/{name}")) for name in ("libc.so", "stdio.h", "crt1.o"))
    loader = f"/lib/ld-musl-{os.uname().machine}.so.1"
    without = ("-nostdlib", "-nostdinc", "-fno-stack-protector", "-no-pie", f"-Wl,--dynamic-linker={loader}")
    library_by_name = (f"-L{library.parent}", f"-l:{library.name}")  # by its path, the program would ask for that
    files = (start, start.with_name("crti.o"), *library_by_name, start.with_name("crtn.o"))
    program = compiled(folder, "-isystem", headers.parent, *without, *files)
    return layer([(loader[1:], library.read_bytes()), ("program", program)], mode=0o755)


def many_files() -> Iterator[tarfile.TarInfo | tuple[str, bytes]]:
    for number in range(FILES):
        folder = f"many/{number // FILES_A_FOLDER}"
        if number % FILES_A_FOLDER == 0:
            yield special(folder, tarfile.DIRTYPE)
        yield f"{folder}/{number}", b""


@pytest.fixture(scope="module")
def slurm(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A cluster with the layouts of the images in a submount."""
    bring_images(kubernetes)
    data = tmp_path_factory.mktemp("data")
    data.chmod(0o755)
    folder = tmp_path_factory.mktemp("built")
    programs = layer([("bin/busybox", busybox.program())], mode=0o755)
    make_layout(data / "alone", [layer([("program", compiled(folder, "-static"))], mode=0o755)])
    make_layout(data / "musl", [with_musl(folder)])
    make_layout(data / "many", [programs, layer(many_files())])
    jail = a_jail(JAIL, submounts=[{"path": "/data", "host_path": str(data), "read_only": True}])
    described = a_cluster(name=unique("kinds"), node_sets=[a_node_set("cpu")], jail=jail, containers={})
    with deployed(Slurm(kubernetes, tmp_path_factory.mktemp("kinds"), described)) as made:
        yield made


def test_an_image_with_another_c_library_knows_the_user(slurm: Slurm) -> None:
    done = slurm.ssh("srun -n1 --container-image=/data/musl /program", check=False)
    assert (done.stdout, done.returncode) == ("alice in /home/alice\n", 7)


def test_an_image_with_one_program_and_nothing_else_runs_it(slurm: Slurm) -> None:
    done = slurm.ssh("srun -n1 --container-image=/data/alone /program", check=False)
    assert (done.stdout, done.returncode) == ("alice in /home/alice\n", 7)


def test_an_image_of_200_000_files_has_all_of_them_and_starts_again_from_the_store(slurm: Slurm) -> None:
    shell = "busybox find /many -type f | busybox wc -l"
    count = f"srun -n1 --mem=800 --container-image=/data/many /bin/busybox sh -c '{shell}'"
    for _ in range(2):
        assert slurm.ssh(count, timeout_seconds=900).stdout.strip() == str(FILES)
