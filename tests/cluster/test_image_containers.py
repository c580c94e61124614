"""Containers of our images under the security contexts of a cluster, with no Slurm around them."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.cluster.slurm import unique
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import images

pytestmark = pytest.mark.cluster

NAMESPACE = unique("test-images")
MUNGE = 64031

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


@pytest.fixture(scope="module")
def namespace(kubernetes: Kubernetes, built_images: None) -> Iterator[str]:
    """Give a namespace with a login node, munged, and a worker that makes orphans."""
    objects = [namespace_object(), *login_objects(), orphans_pod(), worker_pod(), munge_pod()]
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    kubernetes.run("apply", "-f", "-", stdin=manifest)
    kubernetes.run("wait", "-n", NAMESPACE, "pod", "--all", "--for=condition=Ready", "--timeout=90s")
    yield NAMESPACE
    kubernetes.throw_away(NAMESPACE)


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
    tried, *started = kubernetes.exec(namespace, "worker", "worker", "python3", "-c", START_EVERYTHING).splitlines()

    assert int(tried) > 300
    assert started == []


def test_files_are_copied_by_sftp(kubernetes: Kubernetes, namespace: str) -> None:
    # By a pipe within the pod: containerd can close the standard input of `kubectl exec -i` before it is read.
    sftp = ["sh", "-c", 'echo "put /etc/hostname copy" | "$@"', "sh", "sftp", "-b", "-", *OPTIONS, "alice@127.0.0.1"]

    assert in_login(kubernetes, *sftp) == "sftp> put /etc/hostname copy\n"
    assert ssh(kubernetes, "alice", "cat ~/copy") == "login-0\n"


def test_a_session_has_no_capability_and_can_gain_none(kubernetes: Kubernetes, namespace: str) -> None:
    status = ssh(kubernetes, "alice", "cat /proc/self/status")

    assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)


def test_orphans_are_reaped(kubernetes: Kubernetes, namespace: str) -> None:
    def states() -> list[str]:
        return kubernetes.exec(namespace, "orphans", "orphans", "ps", "-eo", "stat=,comm=").splitlines()

    def neither_run_nor_wait() -> bool:
        return not any("sleep" in line or line.startswith("Z") for line in states())

    wait_until(neither_run_nor_wait, what="the orphans have ended and are reaped")


def test_munged_runs_without_root_on_a_root_that_it_cannot_write(kubernetes: Kubernetes, namespace: str) -> None:
    answer = kubernetes.exec(namespace, "munge", "munge", "sh", "-c", "munge -n | unmunge")

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


def in_login(kubernetes: Kubernetes, *command: str) -> str:
    """Run a program in the login pod, its standard error with its standard output."""
    both = ["sh", "-c", 'exec "$@" 2>&1', "sh", *command]
    return kubernetes.run("exec", "-n", NAMESPACE, "login-0", "--", *both)


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
    """Return munged as it runs next to each daemon."""
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
