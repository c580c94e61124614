"""Images, file by file."""

import re
import tarfile
from pathlib import PurePosixPath

import pytest

from tests.cluster import image_files
from tests.cluster.image_files import ImageFiles
from tools import images
from tools.images.builder import cache
from tools.images.recipe import PUBLISHED, Recipe

pytestmark = pytest.mark.cluster

SLURM, MUNGE = 64030, 64031
DAEMONS = {"controller": "slurmctld", "worker": "slurmd", "login": "openssh-server", "munge": "munge"}
"""The images of daemons, all on one parent, and the package of each."""


@pytest.fixture(scope="session")
def built() -> dict[str, ImageFiles]:
    """Build the images where they are not yet, and read them."""
    images.build()
    tags = Recipe().tags()
    return {name: image_files.read(cache().layout(name, tags[name])) for name in PUBLISHED}


@pytest.fixture(params=PUBLISHED)
def image(request: pytest.FixtureRequest, built: dict[str, ImageFiles]) -> ImageFiles:
    """One image after the other."""
    return built[request.param]


@pytest.fixture(params=DAEMONS)
def daemon(request: pytest.FixtureRequest, built: dict[str, ImageFiles]) -> ImageFiles:
    """One image of a daemon after the other."""
    return built[request.param]


def test_no_image_has_a_key_that_its_containers_would_share(image: ImageFiles) -> None:
    private = [
        path for path, file in image.files.items() if b"PRIVATE KEY" in (file.content or b"").partition(b"\n")[0]
    ]

    assert image.matching("munge.key", "munged.seed", "ssh_host_*", "machine-id", "random-seed") == []
    assert private == []


def test_no_image_has_anything_of_the_machine_that_built_it(image: ImageFiles) -> None:
    left = image.matching("/etc/resolv.conf", "/etc/hosts", "/etc/hostname")

    assert [path for path in left if image.files[path].content] == []
    assert image.matching("/etc/apt/sources.list", "/etc/apt/auth.conf.d/*", "/etc/apt/keyrings/*") == []
    settings = "".join(image.text(path) for path in image.matching("/etc/apt/apt.conf.d/*"))
    assert "Acquire::" not in settings
    assert "proxy" not in " ".join(image.settings["config"]["Env"]).lower()


def test_only_the_jail_says_where_its_packages_come_from_and_that_is_debian(built: dict[str, ImageFiles]) -> None:
    lists = {name: image.matching("/etc/apt/sources.list.d/*") for name, image in built.items()}
    (debian,) = lists.pop("jail")

    assert set(map(len, lists.values())) == {0}
    assert built["jail"].text(debian) == built["jail"].text("usr/share/doc/apt/examples/debian.sources")


def test_no_image_has_what_only_its_build_needed(image: ImageFiles) -> None:
    assert image.matching("/var/lib/apt/lists/*", "/var/cache/apt/archives/*.deb", "/var/log/apt") == []
    assert [path for path in image.files if path.startswith("tmp/")] == []
    assert [path for path in image.files if path.startswith("usr/share/locale/de")] == []


def test_manual_pages_are_for_people_alone(built: dict[str, ImageFiles]) -> None:
    pages = {name: set(image.matching("*/share/man/man1/*")) for name, image in built.items()}

    assert {"usr/share/man/man1/ls.1.gz", "usr/share/man/man1/git.1.gz"} <= pages.pop("jail")
    assert "opt/slurm/share/man/man1/sbatch.1.gz" in pages["login"]
    assert [page for found in pages.values() for page in found if not page.startswith("opt/slurm/")] == []


def test_no_program_of_an_image_gains_privileges(image: ImageFiles) -> None:
    assert [path for path, file in image.files.items() if file.gains_privileges] == []


def test_the_users_of_daemons_have_the_same_ids_everywhere(daemon: ImageFiles) -> None:
    users = {line.split(":")[0]: line.split(":")[2:4] for line in daemon.text("etc/passwd").splitlines()}

    assert users["slurm"] == [str(SLURM), str(SLURM)]
    assert users["munge"] == [str(MUNGE), str(MUNGE)]


def test_users_are_looked_up_in_the_mounted_directory_too(daemon: ImageFiles) -> None:
    lookups = dict(re.findall(r"^(\w+):\s+(.*)$", daemon.text("etc/nsswitch.conf"), re.MULTILINE))

    assert {name: lookups[name] for name in ("passwd", "group", "shadow")} == dict.fromkeys(
        ("passwd", "group", "shadow"), "files extrausers"
    )
    assert "usr/lib/libnss_extrausers.so.2" in daemon.files
    assert "var/lib/extrausers" in daemon.files


def test_every_container_starts_with_an_init_that_reaps(daemon: ImageFiles) -> None:
    assert daemon.settings["config"]["Entrypoint"] == ["/usr/bin/tini", "-g", "--"]
    assert "usr/bin/tini" in daemon.files


def test_no_configuration_of_slurm_is_in_an_image(daemon: ImageFiles) -> None:
    assert daemon.matching("/etc/slurm/*") == []


@pytest.mark.parametrize(("name", "package"), DAEMONS.items())
def test_an_image_has_its_daemon_and_says_its_version(built: dict[str, ImageFiles], name: str, package: str) -> None:
    assert package in versions(built[name])


def test_all_images_have_the_same_slurm(built: dict[str, ImageFiles]) -> None:
    found = {versions(built[name])["slurm-client"] for name in DAEMONS}

    assert len(found) == 1
    assert found.pop().startswith("24.11.")


def test_the_unprivileged_daemons_run_as_their_users(built: dict[str, ImageFiles]) -> None:
    assert built["controller"].settings["config"]["User"] == f"{SLURM}:{SLURM}"
    assert built["munge"].settings["config"]["User"] == f"{MUNGE}:{MUNGE}"


def test_directories_that_daemons_insist_on_are_as_they_want_them(built: dict[str, ImageFiles]) -> None:
    run_sshd = built["login"].files["run/sshd"]
    state = built["controller"].files["var/spool/slurmctld"]

    assert (run_sshd.mode & 0o777, run_sshd.uid, run_sshd.gid) == (0o755, 0, 0)
    assert (state.mode & 0o777, state.uid, state.gid) == (0o700, SLURM, SLURM)


def test_no_one_but_root_gets_at_a_program_of_the_worker(built: dict[str, ImageFiles]) -> None:
    worker = built["worker"]
    open_folders = [path for path in ("usr", "opt") if worker.files[path].mode & 0o777 != 0o700]
    outside = [
        path
        for path, file in worker.files.items()
        if file.is_regular and file.mode & 0o011 and not path.startswith(("usr/", "opt/"))
    ]

    assert open_folders == []
    # What is left are scripts, which start nothing without /usr, and empty files that the builder mounts over.
    assert [path for path in outside if not re.match(r"#! ?/(usr/)?bin/|\Z", worker.text(path))] == []


def test_the_worker_can_change_how_folders_are_mounted(built: dict[str, ImageFiles]) -> None:
    assert "usr/bin/mount" in built["worker"].files


def test_daemons_and_the_bundle_of_clients_have_the_same_plugins(built: dict[str, ImageFiles]) -> None:
    for name in ("worker", "login"):
        own, bundled = (
            {PurePosixPath(path).name for path in built[name].matching(pattern)}
            for pattern in ("/usr/lib/*/slurm-wlm/*.so", "/opt/slurm/lib/slurm/*.so")
        )
        assert {"mpi_pmi2.so", "mpi_pmix_v5.so", "job_submit_lua.so"} <= own
        assert bundled == {*own, "spank_jail.so"}


def test_srun_loads_the_pmix_of_the_bundle_as_a_jail_may_have_none(built: dict[str, ImageFiles]) -> None:
    plugin = built["worker"].files["opt/slurm/lib/slurm/mpi_pmix_v5.so"].content

    assert plugin is not None
    assert b"/pmix2/lib" not in plugin
    assert "opt/slurm/lib/libpmix.so.2" in built["worker"].files


def test_the_bundle_is_roots_alone_to_change(built: dict[str, ImageFiles]) -> None:
    bundle = {path: file for path, file in built["worker"].files.items() if path.startswith("opt/slurm")}

    assert {(file.uid, file.gid) for file in bundle.values()} == {(0, 0)}
    assert [path for path, file in bundle.items() if file.mode & 0o022 and file.kind != tarfile.SYMTYPE] == []
    assert bundle["opt/slurm"].mode & 0o777 == 0o755


def test_the_plugin_needs_nothing_but_libc(built: dict[str, ImageFiles]) -> None:
    for path in ("opt/slurm/lib/slurm/spank_jail.so", "opt/slurm/sbin/jail-login"):
        content = built["worker"].files[path].content
        assert content is not None
        assert set(re.findall(rb"lib\w+\.so\.\d+", content)) == {b"libc.so.6"}


def test_the_default_jail_has_what_people_work_with(built: dict[str, ImageFiles]) -> None:
    compilers = {"gcc", "g++", "gfortran", "make", "mpicc", "mpirun"}
    languages = {"python", "python3", "pip", "cmake", "gdb", "perl"}
    tools = {"git", "rsync", "curl", "wget", "ssh", "vi", "vim", "nano", "less", "tmux", "screen", "jq", "man", "htop"}
    basics = {"ps", "find", "tar", "xz", "zip", "unzip", "bzip2", "tree", "strace", "lsof", "bc", "time", "numactl"}

    assert [n for n in compilers | languages | tools | basics if f"usr/bin/{n}" not in built["jail"].files] == []


def test_the_default_jail_is_no_larger_than_a_gibibyte(built: dict[str, ImageFiles]) -> None:
    size = sum(file.size for file in built["jail"].files.values())

    assert size < 2**30


def test_the_default_jail_has_no_slurm(built: dict[str, ImageFiles]) -> None:
    assert built["jail"].matching("/usr/bin/srun", "/usr/lib/*/libslurm*", "/usr/lib/*/slurm*", "/opt/*") == []


def test_the_default_jail_has_a_place_for_gpu_libraries(built: dict[str, ImageFiles]) -> None:
    assert built["jail"].text("etc/ld.so.conf.d/nvidia.conf") == "/usr/local/nvidia/lib64\n"
    assert "usr/local/nvidia/lib64" in built["jail"].files


def test_our_python_is_in_one_folder_and_there_is_nothing_else(built: dict[str, ImageFiles]) -> None:
    tools = built["jail-tools"]

    assert {path.partition("/")[0] for path in tools.files} == {".jail-tools"}
    assert [path for path in tools.files if "/test" in path] == []
    assert tools.settings["config"]["Entrypoint"] == ["/.jail-tools/bin/python3", "-I", "-m", "jail_tools"]


def test_our_python_need_not_compile_either(built: dict[str, ImageFiles]) -> None:
    library = "/.jail-tools/lib/python3.*"
    compiled = built["jail-tools"].matching(f"{library}/json/*.pyc", f"{library}/jail_tools/accounts/__pycache__/*.pyc")

    assert len(compiled) > 10
    # Flag 1 (PEP 552): never compared with a source.
    assert {(built["jail-tools"].files[path].content or b"")[4:8] for path in compiled} == {b"\x01\0\0\0"}


def test_python_need_not_compile_its_library_in_every_process(built: dict[str, ImageFiles]) -> None:
    # A read-only root can't keep what Python compiles, and all files have one date: so by content, flag 3 (PEP 552).
    compiled = built["worker"].matching("/usr/lib/python3*/json/__pycache__/decoder.cpython-*.pyc")

    assert [built["worker"].files[path].content[4:8] for path in compiled] == [b"\x03\0\0\0"]  # type: ignore[index] # a small file


def versions(image: ImageFiles) -> dict[str, str]:
    """Return the version of each package, by the list that an image has for whoever looks into it."""
    return dict(line.split("\t") for line in image.text("usr/share/soperator/packages").splitlines())
