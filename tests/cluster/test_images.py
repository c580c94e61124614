"""What is in the images, and how their containers behave under the security contexts of a cluster."""

import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.cluster import image_files
from tests.cluster.image_files import ImageFiles
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import images
from tools.images.builder import cache
from tools.images.recipe import PUBLISHED, Recipe

pytestmark = pytest.mark.cluster

NAMESPACE = "test-images"
SLURM, MUNGE = 64030, 64031
DAEMONS = {"controller": "slurmctld", "worker": "slurmd", "login": "openssh-server", "munge": "munge"}
"""The images of daemons, all on one parent, and the package of each."""

SSHD_CONFIG = """\
Port 2222
HostKey /etc/ssh-keys/host
AuthorizedKeysFile none
AuthorizedKeysCommand /usr/bin/cat /etc/ssh-config/%u
AuthorizedKeysCommandUser nobody
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM yes
PidFile none
Subsystem sftp internal-sftp
"""
SSHD_CAPABILITIES = ["SYS_CHROOT", "SETUID", "SETGID", "CHOWN", "AUDIT_WRITE"]


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
    assert [path for path in image.files if path.startswith(("usr/share/man/man", "usr/share/locale/de"))] == []


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


def test_nobody_but_root_gets_at_a_program_of_the_worker(built: dict[str, ImageFiles]) -> None:
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
    tools = {"python3", "git", "rsync", "curl", "ssh", "vi", "vim", "nano", "less", "tmux", "ps", "find", "tar", "xz"}

    assert [name for name in compilers | tools if f"usr/bin/{name}" not in built["jail"].files] == []


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
    compiled = built["jail-tools"].matching(f"{library}/json/*.pyc", f"{library}/jail_tools/commands/__pycache__/*.pyc")

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


# ---- containers ----


@pytest.fixture(scope="module")
def namespace(kubernetes: Kubernetes, built_images: None) -> Iterator[str]:
    """Give a namespace with a login node, munged, and a worker that makes orphans."""
    objects = [namespace_object(), *login_objects(), orphans_pod(), worker_pod(), munge_pod()]
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    kubernetes.run("apply", "-f", "-", stdin=manifest)
    kubernetes.run("wait", "-n", NAMESPACE, "pod", "--all", "--for=condition=Ready", "--timeout=90s")
    yield NAMESPACE
    kubernetes.run("delete", "namespace", NAMESPACE, "--wait=true")


def test_a_first_login_makes_a_home_that_is_closed_to_others(kubernetes: Kubernetes, namespace: str) -> None:
    assert ssh(kubernetes, "carol", "stat -c '%a %U' ~; pwd") == "700 carol\n/home/carol\n"
    assert ssh(kubernetes, "carol", "ls -A ~") == ".bash_logout\n.bashrc\n.profile\n"


def test_a_command_over_ssh_prints_its_output_and_nothing_else(kubernetes: Kubernetes, namespace: str) -> None:
    assert ssh(kubernetes, "bob", "echo first login") == "first login\n"
    assert ssh(kubernetes, "bob", "echo second login") == "second login\n"


def test_a_session_finds_the_bundle_of_clients_after_everything_else(kubernetes: Kubernetes, namespace: str) -> None:
    assert ssh(kubernetes, "alice", "echo $PATH $LANG") == "/usr/local/bin:/usr/bin:/bin:/opt/slurm/bin C.UTF-8\n"


def test_a_terminal_is_given(kubernetes: Kubernetes, namespace: str) -> None:
    assert "/dev/pts/" in ssh(kubernetes, "alice", "tty", "-tt")


def test_a_user_can_start_no_program_of_the_worker(kubernetes: Kubernetes, namespace: str) -> None:
    tried, *started = kubernetes.exec(namespace, "worker", None, "python3", "-c", START_EVERYTHING).splitlines()

    assert int(tried) > 300
    assert started == []


def test_files_are_copied_by_sftp(kubernetes: Kubernetes, namespace: str) -> None:
    in_login(kubernetes, "sftp", "-b", "-", *OPTIONS, "alice@127.0.0.1", stdin="put /etc/hostname copy\n")

    assert ssh(kubernetes, "alice", "cat ~/copy") == "login-0\n"


def test_a_session_has_no_capability_and_can_gain_none(kubernetes: Kubernetes, namespace: str) -> None:
    status = ssh(kubernetes, "alice", "cat /proc/self/status")

    assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)


def test_orphans_are_reaped(kubernetes: Kubernetes, namespace: str) -> None:
    def states() -> list[str]:
        return kubernetes.exec(namespace, "orphans", None, "ps", "-eo", "stat=,comm=").splitlines()

    wait_until(lambda: not any("sleep" in line and "Z" not in line for line in states()), what="the sleeps ended")
    assert [line for line in states() if line.startswith("Z")] == []


def test_munged_runs_without_root_on_a_root_that_it_cannot_write(kubernetes: Kubernetes, namespace: str) -> None:
    answer = kubernetes.exec(namespace, "munge", None, "sh", "-c", "munge -n | unmunge")

    assert "STATUS:          Success (0)" in answer
    assert f"({MUNGE})" in answer


START_EVERYTHING = """\
import os, stat, subprocess
paths = []
for folder, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if os.path.join(folder, name) not in ("/proc", "/sys", "/dev")]
    paths += [os.path.join(folder, name) for name in files]
paths = [path for path in paths if stat.S_ISREG(os.lstat(path).st_mode) and os.lstat(path).st_mode & 0o111]
print(len(paths))
for path in paths:
    try:
        program = subprocess.Popen([path], user=2001, group=2001, extra_groups=[], cwd="/", stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except PermissionError:
        continue
    program.kill()
    print(path)
"""
"""As root, tries to start every program of the container as a user; prints how many there are and which started."""

OPTIONS = [
    *("-i", "/etc/ssh-keys/user", "-o", "Port=2222"),
    *("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"),
]


def ssh(kubernetes: Kubernetes, user: str, command: str, *options: str) -> str:
    """Run a command as a user over ssh, from within the pod, and return all that ssh printed."""
    words = ["ssh", *options, *OPTIONS, f"{user}@127.0.0.1", command]
    return in_login(kubernetes, *words)


def in_login(kubernetes: Kubernetes, *command: str, stdin: str | None = None) -> str:
    """Run a program in the login pod, its standard error with its standard output."""
    both = ["sh", "-c", 'exec "$@" 2>&1', "sh", *command]
    return kubernetes.run("exec", "-i", "-n", NAMESPACE, "login-0", "--", *both, stdin=stdin or "")


def namespace_object() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def a_pod(
    name: str,
    image: str,
    args: list[str],
    user: int,
    *,
    mounts: dict[str, dict[str, Any]],
    capabilities: list[str] | None = None,
    readiness: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a pod as those of a cluster: read-only root, no privileges, an init by the image."""
    volumes = [{"name": f"volume-{number}", **source} for number, source in enumerate(mounts.values())]
    container: dict[str, Any] = {
        "name": name,
        "image": images.references()[image],
        "args": args,
        "securityContext": {
            "runAsUser": user,
            "runAsGroup": user,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": capabilities or []},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [
            {"name": volume["name"], "mountPath": path} for volume, path in zip(volumes, mounts, strict=True)
        ],
    }
    if readiness:
        container["readinessProbe"] = {"periodSeconds": 1, **readiness}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            "volumes": volumes,
        },
    }


def login_objects() -> list[dict[str, Any]]:
    """Return a login node with three users, and what it mounts."""
    host, user = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    public = user.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    users = {"alice": 2001, "bob": 2002, "carol": 2003}
    extrausers = {
        "passwd": "".join(f"{name}:x:{uid}:{uid}::/home/{name}:/bin/bash\n" for name, uid in users.items()),
        "group": "".join(f"{name}:x:{uid}:\n" for name, uid in users.items()),
        "shadow": "".join(f"{name}:*:19000:0:99999:7:::\n" for name in users),
    }
    pod = a_pod(
        "login-0",
        "login",
        ["/usr/sbin/sshd", "-D", "-e", "-f", "/etc/ssh-config/sshd_config"],
        0,
        capabilities=SSHD_CAPABILITIES,
        readiness={"tcpSocket": {"port": 2222}},
        mounts={
            "/etc/ssh-config": {"configMap": {"name": "ssh"}},
            "/etc/ssh-keys": {"secret": {"secretName": "ssh", "defaultMode": 0o400}},
            "/var/lib/extrausers": {"configMap": {"name": "users"}},
            "/home": {"emptyDir": {}},
            "/tmp": {"emptyDir": {"medium": "Memory"}},
        },
    )
    return [
        config("ConfigMap", "ssh", {"sshd_config": SSHD_CONFIG, **dict.fromkeys(users, public)}),
        config("ConfigMap", "users", extrausers),
        config("Secret", "ssh", {"host": private(host), "user": private(user)}),
        pod,
    ]


def orphans_pod() -> dict[str, Any]:
    """Return a worker whose first process leaves its children to the init."""
    orphans = "for i in 1 2 3; do (sleep 0.2 &); done; exec tail -f /dev/null"
    return a_pod("orphans", "worker", ["sh", "-c", orphans], 0, mounts={})


def worker_pod() -> dict[str, Any]:
    """Return a worker in which root can become a user, as slurmd does."""
    return a_pod("worker", "worker", ["sleep", "3600"], 0, mounts={}, capabilities=["SETUID", "SETGID"])


def munge_pod() -> dict[str, Any]:
    """Return munged as it runs beside each daemon."""
    start = (
        "head -c 32 /dev/urandom > /run/munge-key/munge.key && chmod 400 /run/munge-key/munge.key && "
        "exec munged --foreground --key-file=/run/munge-key/munge.key "
        "--pid-file=/run/munge-key/munged.pid --seed-file=/run/munge-key/munged.seed"
    )
    memory = {"emptyDir": {"medium": "Memory"}}
    return a_pod(
        "munge",
        "munge",
        ["sh", "-c", start],
        MUNGE,
        readiness={"exec": {"command": ["sh", "-c", "munge -n > /dev/null"]}},
        mounts={"/run/munge": memory, "/run/munge-key": memory},
    )


def config(kind: str, name: str, content: dict[str, str]) -> dict[str, Any]:
    """Return a ConfigMap or a Secret."""
    field = "data" if kind == "ConfigMap" else "stringData"
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, field: content}


def private(key: Ed25519PrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
