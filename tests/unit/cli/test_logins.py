"""`soperator ssh`, `admin`, `render` and `policy`: the programs that they become, and the files that they write."""

import json
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import pytest
import urllib3
import yaml
from kubernetes import client

from soperator_pulumi import cli
from soperator_pulumi.cli import ssh_proxy
from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.policy.registry import POLICIES
from tests.strategies import a_cluster

KUBECONFIG = {
    "current-context": "one",
    "contexts": [{"name": name, "context": {"cluster": name, "user": "u"}} for name in ("one", "two")],
    "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example"}} for name in ("one", "two")],
    "users": [{"name": "u", "user": {"token": "t"}}],
}


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "kube config"
    file.write_text(yaml.safe_dump(KUBECONFIG))
    return file


def config_of(capsys: pytest.CaptureFixture[str], *words: str) -> Path:
    """Return the file of OpenSSH's configuration for a command line."""
    assert cli.main(["ssh", "--print-config", *words]) == 0
    return Path(capsys.readouterr().out.strip())


def test_clusters_of_one_namespace_in_two_kubernetes_have_a_configuration_each(
    kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["-n", "hpc", "--kubeconfig", str(kubeconfig), "--context"]
    one, two = (config_of(capsys, *words, context) for context in ("one", "two"))
    assert one != two
    assert "--context one" in one.read_text()
    assert "--context two" in two.read_text()


@pytest.mark.skipif(shutil.which("ssh") is None, reason="needs OpenSSH's client")
def test_openssh_understands_the_configuration(kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-n", "hpc", "--kubeconfig", str(kubeconfig), "--user", "alice", "--host-key", "ssh-ed25519 AAAA"]
    file = config_of(capsys, *words)
    shown = subprocess.run(["ssh", "-G", "-F", file, "hpc"], capture_output=True, text=True, check=True).stdout
    assert "user alice\n" in shown
    assert "stricthostkeychecking true\n" in shown
    assert f"'{kubeconfig}'" in shown


def test_a_host_key_that_was_seen_is_kept(kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-n", "hpc", "--kubeconfig", str(kubeconfig)]
    file = config_of(capsys, *words)
    known = file.with_name("hpc.known_hosts")
    known.write_text("login.hpc ssh-ed25519 SEEN\n")
    assert "StrictHostKeyChecking accept-new" in config_of(capsys, *words).read_text()
    assert known.read_text() == "login.hpc ssh-ed25519 SEEN\n"


def test_a_login_to_a_pool_has_its_own_configuration_and_asks_for_a_pod_of_the_pool(
    kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["-n", "hpc", "--kubeconfig", str(kubeconfig)]
    outside, pool = config_of(capsys, *words), config_of(capsys, *words, "--pool", "gpu")
    assert outside != pool
    assert "--login login-gpu" in pool.read_text()
    assert "--login" not in outside.read_text()
    assert "HostKeyAlias login.hpc\n" in pool.read_text(), "all pools have the same host key"


@pytest.mark.parametrize(("metadata", "takes"), [({}, True), ({"deletionTimestamp": "2026-11-28T08:00:00Z"}, False)])
def test_a_login_pod_that_waits_for_its_last_sessions_gets_no_new_one(metadata: dict[str, str], *, takes: bool) -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    assert ssh_proxy._ready({"metadata": metadata, "status": ready}) is takes


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("http://127.0.0.1:1", "The Kubernetes API at http://127.0.0.1:1 is not reached: [Errno 111]"),
        ("", "cannot read a cluster from it"),
    ],
)
def test_a_login_without_an_api_ends_with_one_line(tmp_path: Path, server: str, said: str) -> None:
    file = tmp_path / "kubeconfig"
    if server:
        described = {**KUBECONFIG, "clusters": [{"name": "one", "cluster": {"server": server}}]}
        file.write_text(yaml.safe_dump(described))
    words = ["-m", "soperator_pulumi.cli.ssh_proxy", "--namespace", "hpc", "--kubeconfig", str(file)]
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_answer_of_another_server_than_kubernetes_ends_a_login_with_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = BytesIO(b"<html>Sign in</html>")
    answer = urllib3.HTTPResponse(body=page, status=200, reason="OK")
    monkeypatch.setattr(urllib3.PoolManager, "request", lambda *_args, **_named: answer)
    settings = client.Configuration(host="https://one.example")
    with pytest.raises(KubernetesError, match="answers 200 OK, but not as a Kubernetes API does"):
        ssh_proxy.join(0, BytesIO(), settings, "hpc")


class WithoutPortForward(BaseHTTPRequestHandler):
    """A Kubernetes API with a login pod, whose user may not forward ports."""

    def do_GET(self) -> None:
        ready = {"metadata": {"name": "login-0"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        refused = "/portforward" in self.path
        answer = {"message": 'pods "login-0" is forbidden'} if refused else {"items": [ready]}
        body = json.dumps(answer).encode()
        self.send_response(403 if refused else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Print nothing."""


def test_a_login_without_the_right_to_forward_ports_ends_with_the_servers_words() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), WithoutPortForward) as server:
        threading.Thread(target=server.serve_forever).start()
        settings = client.Configuration(host=f"http://127.0.0.1:{server.server_port}")
        try:
            with pytest.raises(
                KubernetesError, match=r'^pod hpc/login-0: cannot log in: pods "login-0" is forbidden\.$'
            ):
                ssh_proxy.join(0, BytesIO(), settings, "hpc")
        finally:
            server.shutdown()


def test_the_admin_shell_says_what_is_wrong_with_a_kubeconfig_before_it_asks_kubectl(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["admin", "-n", "hpc", "--kubeconfig", str(tmp_path / "missing")]) == 2
    assert "error: kubeconfig: cannot read a cluster from it" in capsys.readouterr().err


def test_the_admin_shell_names_the_next_step_if_the_api_is_not_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kubeconfig"
    described = {**KUBECONFIG, "clusters": [{"name": "one", "cluster": {"server": "https://127.0.0.1:1"}}]}
    file.write_text(yaml.safe_dump(described))
    assert cli.main(["admin", "-n", "hpc", "--kubeconfig", str(file)]) == 2
    said = capsys.readouterr().err
    assert "error: The Kubernetes API at https://127.0.0.1:1 is not reached: " in said
    assert "Check that the cluster runs" in said


def test_the_admin_s_pod_starts_for_the_session_alone(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    fake = tmp_path / "kubectl"
    fake.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/words\ncase "$*" in *" get "*) printf 0;; *exec*) exit 3;; esac\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    answer = urllib3.HTTPResponse(body=BytesIO(b"{}"), status=200)
    monkeypatch.setattr(urllib3.PoolManager, "request", lambda *_args, **_named: answer)
    assert cli.main(["admin", "-n", "hpc", "--context", "one", "echo a\necho b"]) == 3
    words = (tmp_path / "words").read_text()
    assert [line.split()[4] for line in words.splitlines() if line.startswith("--context one --namespace")] == [
        "get",
        "scale",
        "rollout",
        "exec",
        "scale",
    ]
    assert words.endswith("--replicas=0\n")
    assert "-lc echo a\necho b\n" in words
    assert "Changes in the jail stay." in capfd.readouterr().err


def test_a_stack_s_file_is_rendered_by_the_package_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("Pulumi.prod.yaml").write_text(yaml.safe_dump({"config": {"soperator:cluster": a_cluster(name="hpc")}}))
    assert cli.main(["render", "Pulumi.prod.yaml"]) == 0
    assert Path("manifests/prod/001-namespace-hpc.yaml").exists()
    assert "Secrets left out" in capsys.readouterr().err
    Path("manifests/prod/mine.txt").touch()
    assert cli.main(["render", "Pulumi.prod.yaml"]) == 2
    assert "holds other files: mine.txt" in capsys.readouterr().err


def test_manifests_need_no_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = {"soperator:cluster": a_cluster(name="hpc"), "soperator:kubeconfig": {"secure": "v1:x"}}
    Path("Pulumi.prod.yaml").write_text(yaml.safe_dump({"config": config}))
    assert cli.main(["render", "Pulumi.prod.yaml"]) == 0


def test_every_policy_is_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["policy", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [policy["name"] for policy in listed] == [policy.name for policy in POLICIES]
    for policy in POLICIES:
        assert cli.main(["policy", "explain", policy.name]) == 0
        assert policy.cure in capsys.readouterr().out
