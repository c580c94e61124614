"""The Kubernetes API as our providers use it, against a small server."""

import base64
import gzip
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.kube_api import Cluster
from soperator_pulumi.kube.kubeconfig import client_settings
from soperator_pulumi.kube.verbs import config_map_path

Reply = tuple[int, Any]


class Api(HTTPServer):
    """Answers every request with what the test says, and remembers it."""

    replies: list[Reply]
    requests: list[tuple[str, str, Any, str]]
    headers: list[dict[str, str]]


class Handler(BaseHTTPRequestHandler):
    server: Api

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kind = self.headers.get("Content-Type", "")
        self.server.requests.append((self.command, self.path, json.loads(body) if body else None, kind))
        self.server.headers.append(dict(self.headers))
        status, content = self.server.replies.pop(0)
        compressed = isinstance(content, bytes)
        data = content if compressed else (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(status)
        if compressed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 the server's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the server's name
        """Print nothing."""


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api(("127.0.0.1", 0), Handler)
    server.replies, server.requests, server.headers = [], [], []
    thread = threading.Thread(target=server.serve_forever, args=[0.02], daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def kubeconfig(api: Api, user: object = None) -> str:
    content = {
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{api.server_port}"}}],
        "users": [{"name": "u", "user": user or {"token": "s3cret"}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
    }
    return str(yaml.safe_dump(content))


@pytest.fixture
def cluster(api: Api) -> Iterator[Cluster]:
    cluster = Cluster(Access(kubeconfig(api)))
    yield cluster
    cluster._http.clear()


PATH = config_map_path("hpc", "users")


def test_an_object_that_is_there_comes_back_and_one_that_is_not_is_none(api: Api, cluster: Cluster) -> None:
    api.replies = [(200, {"data": {}}), (404, {"message": "not found"})]
    assert cluster.get(PATH) == {"data": {}}
    assert cluster.get(PATH) is None
    assert api.headers[0]["Authorization"] == "Bearer s3cret"


def test_labels_and_fields_narrow_a_list(api: Api, cluster: Cluster) -> None:
    api.replies = [(200, {"items": [{"a": 1}]})]
    assert cluster.find("/api/v1/nodes", {"app": "x", "b": "y"}, {"status.phase": "Running"}) == [{"a": 1}]
    chosen = "labelSelector=app%3Dx%2Cb%3Dy&fieldSelector=status.phase%3DRunning"
    assert api.requests[0][1] == f"/api/v1/nodes?{chosen}&limit=500"


def test_a_long_list_comes_in_pages(api: Api, cluster: Cluster) -> None:
    further = [{"continue": "c1=="}, {"continue": "c2"}, {}]
    api.replies = [(200, {"metadata": page, "items": [{"n": n}]}) for n, page in enumerate(further)]
    assert cluster.find("/api/v1/nodes", {"app": "x"}) == [{"n": 0}, {"n": 1}, {"n": 2}]
    first = "/api/v1/nodes?labelSelector=app%3Dx&limit=500"
    assert [path for _, path, _, _ in api.requests] == [first, f"{first}&continue=c1%3D%3D", f"{first}&continue=c2"]


def test_a_list_whose_pages_are_too_old_is_an_error_and_no_shorter_list(api: Api, cluster: Cluster) -> None:
    gone = {"message": "The provided continue parameter is too old"}
    api.replies = [(200, {"metadata": {"continue": "c"}, "items": [{"n": 0}]}), (410, gone)]
    with pytest.raises(KubernetesError, match="too old"):
        cluster.find("/api/v1/nodes")


def test_a_list_that_vanishes_between_its_pages_is_an_error_and_no_shorter_list(api: Api, cluster: Cluster) -> None:
    api.replies = [(200, {"metadata": {"continue": "c"}, "items": [{"n": 0}]}), (404, {})]
    with pytest.raises(KubernetesError, match="vanished"):
        cluster.find("/api/v1/nodes")


def test_pods_of_a_list_come_without_the_owners_of_their_fields(api: Api, cluster: Cluster) -> None:
    item = {"metadata": {"name": "gpu-0", "managedFields": [{"manager": "kubelet"}]}}
    api.replies = [(200, {"items": [item]}), (200, {"items": [item]})]
    assert cluster.find("/api/v1/namespaces/hpc/pods") == [{"metadata": {"name": "gpu-0"}}]
    assert cluster.find("/apis/batch/v1/namespaces/hpc/jobs") == [item], "their creator is read from there"


def test_answers_may_come_compressed(api: Api, cluster: Cluster) -> None:
    api.replies = [(200, gzip.compress(json.dumps({"items": [{"n": 0}]}).encode()))]
    assert cluster.find("/api/v1/nodes") == [{"n": 0}]
    assert api.headers[0]["Accept-Encoding"] == "gzip"


def test_applying_is_done_by_the_server_under_our_name(api: Api, cluster: Cluster) -> None:
    api.replies = [(200, {"ok": True})]
    cluster.apply(PATH, {"kind": "ConfigMap"})
    method, path, body, kind = api.requests[0]
    assert (method, body, kind) == ("PATCH", {"kind": "ConfigMap"}, "application/apply-patch+yaml")
    assert path.endswith("?fieldManager=soperator-pulumi&force=true")


def test_what_another_program_has_made_is_applied_under_its_name(api: Api, cluster: Cluster) -> None:
    api.replies = [(200, {"ok": True})]
    cluster.apply(PATH, {}, manager="pulumi-kubernetes-1")
    assert "?fieldManager=pulumi-kubernetes-1&" in api.requests[0][1]


def test_what_another_program_has_made_is_created_under_its_name(api: Api, cluster: Cluster) -> None:
    api.replies = [(201, {"ok": True})]
    cluster.create(PATH, {}, manager="pulumi-kubernetes")
    assert api.requests[0][1].endswith("?fieldManager=pulumi-kubernetes")


def test_applying_into_a_namespace_that_is_not_there_is_an_error(api: Api, cluster: Cluster) -> None:
    api.replies = [(404, {"message": 'namespaces "hpc" not found'})]
    with pytest.raises(KubernetesError, match="its namespace does not exist"):
        cluster.apply(PATH, {})


def test_deleting_what_is_gone_is_no_error(api: Api, cluster: Cluster) -> None:
    api.replies = [(404, {})]
    cluster.delete(PATH)


def test_an_object_can_be_made_to_go_after_all_that_it_owns(api: Api, cluster: Cluster) -> None:
    api.replies = [(200, {}), (200, {})]
    cluster.delete(PATH)
    cluster.delete(PATH, dependents_first=True)
    assert [path.partition("?")[2] for _, path, _, _ in api.requests] == ["", "propagationPolicy=Foreground"]


def test_a_refusal_is_reported_in_the_servers_words(api: Api, cluster: Cluster) -> None:
    api.replies = [(403, {"message": 'configmaps "users" is forbidden: User "u" cannot get resource'})]
    with pytest.raises(KubernetesError, match=r"GET .*/configmaps/users at http://127.*: configmaps .* is forbidden"):
        cluster.get(PATH)


@pytest.mark.parametrize("page", ["<html>Log in</html>", ""])
def test_what_kubernetes_has_not_said_is_an_error(api: Api, cluster: Cluster, page: str) -> None:
    """A proxy whose session has ended leads to its own page: that is not the answer that there is nothing."""
    api.replies = [(200, page), (200, page)]
    for ask in (cluster.get, cluster.find):
        with pytest.raises(KubernetesError, match=r"answers GET .* with something other than Kubernetes'"):
            ask(PATH)


def test_a_server_that_is_busy_is_asked_again(api: Api, cluster: Cluster) -> None:
    api.replies = [(429, {"message": "too many requests"}), (200, {"data": {}})]
    assert cluster.get(PATH) == {"data": {}}


def test_the_log_of_a_container_that_is_gone_is_empty(api: Api, cluster: Cluster) -> None:
    api.replies = [
        (200, "unable to retrieve container logs for containerd://1"),
        (400, {"message": "no"}),
        (200, "x\n"),
    ]
    assert [cluster.log("/pod", "sshd", previous=True, since_seconds=0, lines=9) for _ in range(3)] == ["", "", "x\n"]
    assert "sinceSeconds=1" in api.requests[0][1]
    assert "tailLines=9" in api.requests[0][1]


def test_a_kubeconfig_may_be_a_path(api: Api, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(kubeconfig(api))
    api.replies = [(200, {})]
    cluster = Cluster(Access(str(path), "main"))
    assert cluster.get(PATH) == {}
    cluster._http.clear()


def test_a_kubeconfig_may_be_json_in_one_line(api: Api) -> None:
    api.replies = [(200, {})]
    cluster = Cluster(Access(json.dumps(yaml.safe_load(kubeconfig(api)))))
    assert cluster.get(PATH) == {}
    cluster._http.clear()


def test_a_context_that_is_not_there_is_an_error_in_words(api: Api) -> None:
    with pytest.raises(KubernetesError, match=r"kubeconfig: cannot read a cluster from it: .*west"):
        Cluster(Access(kubeconfig(api), "west"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [\nb", "line 2 is not valid YAML"),
        ("- 1\n- 2\n", "its content is not a mapping"),
        ("apiVersion: v1\nkind: Config\n", "Invalid kube-config file"),
    ],
)
def test_a_broken_kubeconfig_is_an_error_that_says_where_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    path = tmp_path / "broken"
    path.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(path))
    with pytest.raises(KubernetesError) as given:
        Cluster(Access(text))
    assert words in str(given.value)
    with pytest.raises(KubernetesError, match="Set KUBECONFIG to a file that `kubectl` accepts") as ambient:
        Cluster(Access())
    assert str(path) in str(ambient.value)


def test_a_broken_kubeconfig_is_not_quoted_in_the_error() -> None:
    with pytest.raises(KubernetesError) as raised:
        Cluster(Access("token: s3cret: [\n"))
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("user", ["token: s3cret", ["s3cret"]])
def test_credentials_of_another_kind_than_they_must_be_are_an_error_without_them(api: Api, user: object) -> None:
    with pytest.raises(KubernetesError, match="cannot read a cluster from it: ") as raised:
        Cluster(Access(kubeconfig(api, user)))
    assert "s3cret" not in str(raised.value)


def test_an_entry_of_a_file_that_misses_something_is_not_quoted(api: Api, tmp_path: Path) -> None:
    content = yaml.safe_load(kubeconfig(api))
    content["users"] = [{"name": "u", "token": "s3cret"}]
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(KubernetesError, match="Expected key user") as raised:
        Cluster(Access(str(path)))
    assert "s3cret" not in str(raised.value)


def a_plugin(script: str) -> dict[str, Any]:
    """A user whose credentials a shell script prints."""
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": "/bin/sh", "args": ["-c", script], "interactiveMode": "Never"}}


def credential(**status: str) -> str:
    body = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return f"echo '{json.dumps(body)}'"


@pytest.mark.parametrize(
    ("user", "words"),
    [
        (a_plugin("echo s3cret >&2; exit 3"), "the program ended with exit code 3"),
        (a_plugin("echo s3cret"), "failed to decode"),
        (a_plugin(credential(clientCertificateData="s3cret")), "neither a token nor a certificate with its key"),
        (
            {"exec": {"apiVersion": "v1", "command": "/no/such"}},
            "No such file or directory: '/no/such'",
        ),
        ({"exec": "s3cret"}, "missing key 'command'"),
    ],
)
def test_an_exec_plugin_that_fails_is_an_error_that_shows_nothing_of_what_it_printed(
    api: Api, user: dict[str, Any], words: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KubernetesError, match="The exec plugin of the kubeconfig gives no credentials: ") as raised:
        Cluster(Access(kubeconfig(api, user)))
    assert words in str(raised.value)
    assert "s3cret" not in f"{raised.value}{raised.value.__cause__}{caplog.text}{capfd.readouterr()}"
    assert api.requests == []


def test_an_exec_plugin_is_asked_again_when_its_token_has_expired(api: Api, tmp_path: Path) -> None:
    expired = {"expirationTimestamp": "2026-01-01T00:00:00Z"}
    (tmp_path / "first").touch()
    script = f"cd {tmp_path}; rm first && {credential(token='one', **expired)} || {credential(token='two', **expired)}"
    api.replies = [(200, {})]
    cluster = Cluster(Access(kubeconfig(api, a_plugin(script))))
    assert cluster.get(PATH) == {}
    assert api.headers[0]["Authorization"] == "Bearer two"
    cluster._http.clear()


def test_an_exec_plugin_may_give_a_certificate_and_its_key(api: Api) -> None:
    given = credential(clientCertificateData="certificate", clientKeyData="key")
    settings = Cluster(Access(kubeconfig(api, a_plugin(given))))._configuration
    assert Path(settings.cert_file or "").read_text() == "certificate"
    assert Path(settings.key_file or "").read_text() == "key"


def with_certificates(authority: str) -> str:
    data = {name: base64.b64encode(name.encode()).decode() for name in (authority, "certificate", "key")}
    content = {
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": "https://c", "certificate-authority-data": data[authority]}}],
        "users": [
            {"name": "u", "user": {"client-certificate-data": data["certificate"], "client-key-data": data["key"]}}
        ],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
    }
    return str(yaml.safe_dump(content))


KILLED = """
import os, signal, sys
from pathlib import Path
from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.kubeconfig import client_settings

settings = client_settings(Access(sys.argv[1]))
files = (settings.ssl_ca_cert, settings.cert_file, settings.key_file)
print(*(Path(file).read_text() for file in files for _ in range(2)), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_no_file_with_a_certificate_or_key(tmp_path: Path) -> None:
    run = [sys.executable, "-c", KILLED, with_certificates("ca")]
    ended = subprocess.run(
        run, env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, "ca ca certificate certificate key key\n"), (
        ended.stderr
    )
    assert list(tmp_path.iterdir()) == []


def test_threads_that_read_a_kubeconfig_at_once_share_files_that_stay() -> None:
    for index in range(20):
        access = Access(with_certificates(f"ca-{index}"))
        with ThreadPoolExecutor(8) as threads:
            files = {settings.ssl_ca_cert or "" for settings in threads.map(client_settings, [access] * 8)}
        assert [Path(file).read_text() for file in files] == [f"ca-{index}"]


def test_a_server_that_is_not_there_is_named_with_what_to_check(api: Api) -> None:
    content = kubeconfig(api).replace(str(api.server_port), "1")
    with pytest.raises(KubernetesError) as raised:
        Cluster(Access(content)).get(PATH)
    assert str(raised.value).startswith("The Kubernetes API at http://127.0.0.1:1 is not reached: ")
    assert "refused" in str(raised.value)
