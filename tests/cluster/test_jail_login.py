"""Logging in: sessions live in the jail, with all that ssh offers and without any power."""

import os
import re
import socket
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from soperator_pulumi.render import layout
from tests.cluster.programs import of_openssh, program
from tests.cluster.slurm import Slurm
from tests.waiting import wait_until
from tools import ssh
from tools.kube.debs import Tool

pytestmark = pytest.mark.cluster

SYS_ADMIN, SETPCAP = 1 << 21, 1 << 8

HOLDER = f"""
import contextlib, socket, sys, time
target, network = sys.argv[1:]
held = []
for number in range(2000):  # sshd drops most of the last ones at random, before it has as many as it takes
    with contextlib.suppress(OSError):
        source = (network + str(number % 200 + 1), 0) if network else None
        held.append(socket.create_connection((target, {layout.SSH_PORT}), timeout=10, source_address=source))
answer, end = b"", time.monotonic() + 20
while answer != b"SSH-2.0" and time.monotonic() < end:
    time.sleep(0.5)
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", {layout.SSH_PORT}), timeout=10) as other:
        answer = other.recv(7)
print(answer.decode())
"""
"""Program that holds more connections to sshd than it has for all, and waits for sshd's answer to another one."""


def run(client: Tool, *arguments: str | Path, stdin: str = "") -> str:
    """Run a client on this machine to its end; a failure fails the test with what was printed."""
    done = subprocess.run(
        [client.path, *arguments],
        env={**os.environ, **client.environment},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{client.name} gave {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def payload(tmp_path: Path) -> Path:
    file = tmp_path / "payload"
    file.write_bytes(os.urandom(100_000))
    return file


def same(slurm: Slurm, path: str, file: Path) -> bool:
    """Tell whether a file at the login is this one."""
    ours = subprocess.run(["sha256sum", file], capture_output=True, text=True, check=True).stdout
    return slurm.ssh(f"sha256sum {path}").stdout.split()[0] == ours.split()[0]


def test_sftp_puts_and_gets(slurm: Slurm, payload: Path, tmp_path: Path) -> None:
    slurm.ssh("rm -f by-sftp")
    commands = f"put {payload} by-sftp\nget by-sftp {tmp_path}/back\nls -l /etc/os-release\n"
    run(of_openssh("sftp"), "-F", slurm.ssh_config("alice"), "-b", "-", ssh.HOST, stdin=commands)

    assert same(slurm, "by-sftp", payload)
    assert (tmp_path / "back").read_bytes() == payload.read_bytes()


@pytest.mark.parametrize("protocol", [[], ["-O"]], ids=["sftp", "scp's own protocol"])
def test_scp_copies_both_ways(slurm: Slurm, payload: Path, tmp_path: Path, protocol: list[str]) -> None:
    scp, options = of_openssh("scp"), ["-F", str(slurm.ssh_config("alice")), *protocol]
    run(scp, *options, payload, f"{ssh.HOST}:by-scp")
    run(scp, *options, f"{ssh.HOST}:by-scp", tmp_path / "back")

    assert same(slurm, "by-scp", payload)
    assert (tmp_path / "back").read_bytes() == payload.read_bytes()


def test_rsync_copies_a_folder(slurm: Slurm, payload: Path) -> None:
    shell = f"{of_openssh('ssh').path} -F {slurm.ssh_config('alice')}"
    run(program("rsync"), "-a", "-e", shell, f"{payload.parent}/", f"{ssh.HOST}:by-rsync/")

    assert same(slurm, "by-rsync/payload", payload)


def test_an_interactive_session_has_a_terminal_and_the_users_shell(slurm: Slurm) -> None:
    said = slurm.ssh("tty; echo shell $0; exit", options=["-tt"]).stdout

    assert "/dev/pts/" in said


@pytest.mark.parametrize("shell", ["", "exec sh -l"], ids=["the user's", "sh"])
def test_a_login_is_told_what_is_free_what_runs_and_where_documents_are(slurm: Slurm, shell: str) -> None:
    job = slurm.submit("true", options="--hold", user="bob")
    sessions: list[str] = []

    def is_answered() -> bool:
        sessions.append(slurm.ssh(shell, options=["-tt"], stdin="exit\n", user="bob").stdout)
        return "slurmctld does not answer" not in sessions[-1]

    wait_until(is_answered, what="a login with slurmctld's answer, which has a second")
    slurm.ssh(f"scancel {job}", user="bob")
    said = sessions[-1]

    assert f"Slurm cluster {slurm.cluster['name']}" in said
    assert re.search(r"Free nodes  ((main [12] of 2|big 1 of 1)(, |\s*$)){1,2}", said, re.MULTILINE), said
    assert re.search(r"Your jobs   \d running, [1-9] pending", said), said
    assert "https://slurm.schedmd.com/quickstart.html" in said
    assert said.count("Slurm cluster") == 1


def test_a_login_waits_for_no_slurmctld_that_does_not_answer(slurm: Slurm) -> None:
    nowhere = "SLURM_CONF_SERVER=192.0.2.1:6817"  # TEST-NET-1, where no one answers
    said = slurm.ssh(f"time -p {nowhere} bash -l", options=["-tt"], stdin="exit 3\n", check=False)

    assert said.returncode == 3
    assert "slurmctld does not answer just now" in said.stdout
    assert float(re.findall(r"real (\S+)", said.stdout)[-1]) < 10  # 1 s, and what a machine under load adds


@pytest.mark.parametrize(
    ("before", "command"),
    [
        ("true", "exec bash -c true"),
        ("true", "srun --pty bash -l"),
        ("true", "env -u SSH_TTY bash -l"),
        ("touch .hushlogin", ""),
    ],
    ids=["a command", "a job", "another terminal", ".hushlogin"],
)
def test_all_else_is_silent(slurm: Slurm, before: str, command: str) -> None:
    slurm.ssh(before)
    said = slurm.ssh(command, options=["-tt"], stdin="exit\n").stdout
    slurm.ssh("rm -f .hushlogin")

    assert "Slurm cluster" not in said


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextmanager
def a_web_server(slurm: Slurm, port: int, *options: str) -> Iterator[None]:
    """Serve alice's home inside her session, for as long as it takes."""
    client = of_openssh("ssh")
    command = f"exec python3 -m http.server --bind 127.0.0.1 {port}"
    with subprocess.Popen(
        [client.path, "-F", slurm.ssh_config("alice"), *options, "-tt", ssh.HOST, command],
        env={**os.environ, **client.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as session:
        try:
            yield
        finally:
            session.terminate()


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
            return b"Directory listing" in answer.read()
    except OSError:
        return False


def test_a_port_of_the_session_is_forwarded(slurm: Slurm) -> None:
    here, there = free_port(), 18080
    with a_web_server(slurm, there, "-L", f"127.0.0.1:{here}:127.0.0.1:{there}"):
        wait_until(lambda: answers(here), what="the server in the session answers here")


def test_a_port_of_the_users_machine_is_forwarded(slurm: Slurm) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as pool:
        port = int(server.getsockname()[1])
        reach = "timeout 10 bash -c 'echo hello > /dev/tcp/127.0.0.1/18081'"
        session = pool.submit(slurm.ssh, reach, options=["-R", f"127.0.0.1:18081:127.0.0.1:{port}"])
        server.settimeout(30)
        connection, _ = server.accept()
        with connection:
            said = connection.recv(100)
        session.result()

    assert said == b"hello\n"


def test_the_users_agent_is_forwarded(slurm: Slurm) -> None:
    agent, add = of_openssh("ssh-agent"), of_openssh("ssh-add")
    with tempfile.TemporaryDirectory() as folder:  # a socket's path must be short
        address = Path(folder) / "agent"
        with subprocess.Popen([agent.path, "-D", "-a", address], stdout=subprocess.DEVNULL) as process:
            try:
                wait_until(address.exists, what="the agent listens")
                environment = {**os.environ, **add.environment, "SSH_AUTH_SOCK": str(address)}
                subprocess.run([add.path, slurm.folder / "id_alice"], env=environment, check=True, capture_output=True)
                said = slurm.ssh("ssh-add -l", options=["-A", "-o", f"IdentityAgent={address}"]).stdout
            finally:
                process.terminate()

    assert "ED25519" in said


def test_sessions_and_their_sshd_have_no_right_to_mount(slurm: Slurm) -> None:
    """The process that prepares the trees has it; sshd and all that comes of it has lost it for good."""
    look = "grep -E 'CapBnd|NoNewPrivs' /proc/$p/status 2>/dev/null || true"  # a session may have ended meanwhile
    script = f"for p in $(pgrep -x sshd; pgrep sshd-session); do {look}; done"
    bounds = slurm.exec("login-0", "sshd", "sh", "-c", script)
    lines = [line.split() for line in bounds.splitlines()]

    assert lines
    assert [value for name, value in lines if name == "CapBnd:" and int(value, 16) & (SYS_ADMIN | SETPCAP)] == []
    assert [value for name, value in lines if name == "NoNewPrivs:" and value != "1"] == []


@pytest.mark.parametrize("network", ["", "127.0.1."])
def test_a_session_that_holds_connections_to_its_sshd_keeps_no_one_out(slurm: Slurm, network: str) -> None:
    own = slurm.kubernetes.run("get", "pod", "login-0", "-n", slurm.namespace, "-o", "jsonpath={.status.podIP}").strip()
    target = "127.0.0.1" if network else own

    def startups() -> str:
        """What sshd's title says of connections that have not authenticated, such as `0 of 150-200`."""
        return slurm.exec("login-0", "sshd", "sh", "-c", "pgrep -fa '[[]listener[]]'").split("[listener] ")[1]

    assert slurm.exec("login-0", "sshd", "python3", "-c", HOLDER, target, network).strip() == "SSH-2.0"
    wait_until(
        lambda: startups().startswith("0 of "), what="the end of all held connections, for which sshd would drop others"
    )


def test_a_session_sees_no_daemon_file_of_the_login_pod(slurm: Slurm) -> None:
    for path in ("/etc/ssh-keys", "/etc/ssh-host", "/run/jail", "/jail"):
        assert slurm.ssh(f"ls {path}", check=False).returncode != 0, path


@pytest.fixture
def dave(slurm: Slurm, admin: Callable[[str], str]) -> Iterator[str]:
    """A user whom root has added inside the jail, with alice's key; gone with the test."""
    key = slurm.ssh("cat .ssh/authorized_keys 2>/dev/null || true").stdout or (
        (slurm.folder / "id_alice.pub").read_text()
    )
    admin("useradd --create-home --shell /bin/bash --uid 5005 dave")
    admin(
        f"install -d -o dave -g dave -m 0700 /home/dave/.ssh && echo '{key.strip()}' > /home/dave/.ssh/authorized_keys"
    )
    admin("chown dave:dave /home/dave/.ssh/authorized_keys && chmod 600 /home/dave/.ssh/authorized_keys")
    yield "dave"
    admin("userdel --remove dave")


def test_a_user_added_inside_the_jail_logs_in_and_runs_jobs_at_once(slurm: Slurm, dave: str) -> None:
    configuration = slurm.ssh_config("alice").read_text().replace("User alice", f"User {dave}")
    slurm.ssh_config(dave).write_text(configuration)

    wait_until(
        lambda: slurm.ssh("true", user=dave, check=False).returncode == 0,
        what="the new user logs in",
    )
    wait_until(
        lambda: "dave" in slurm.exec("controller-0", "slurmctld", "sh", "-c", "getent passwd dave || true"),
        what="slurmctld knows the new user",
    )
    assert slurm.ssh("id -un; pwd", user=dave).stdout == "dave\n/home/dave\n"
    assert slurm.ssh("srun -N2 id -un", user=dave).stdout == "dave\ndave\n"
    job = slurm.submit("id -un", user=dave, options="-o out.%j")
    slurm.wait_for_job(job, "COMPLETED")
    assert slurm.ssh(f"cat out.{job}", user=dave).stdout == "dave\n"


def test_a_password_set_inside_the_jail_lets_no_one_in(slurm: Slurm, dave: str, admin: Callable[[str], str]) -> None:
    admin("echo dave:not-a-secret-of-anybody | chpasswd")

    refused = slurm.ssh(
        "true", user="bob", options=["-l", dave, "-o", "PreferredAuthentications=password"], check=False
    )
    assert "Permission denied (publickey)" in refused.stderr
