"""The REST API on a cluster with accounting: real slurmrestd behind its proxy, asked from pods' addresses."""

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from soperator_pulumi.spec.rest import RestLimitsSpec
from tests.cluster.certificates import Authority
from tests.cluster.slurm import SMALL, VERSION, Slurm, a_cluster, bring_images, unique
from tests.cluster.strangers import a_stranger, reached
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import paths

pytestmark = pytest.mark.cluster

PORT = 6820
API = "/slurm/v0.0.42"
RECORDS = "/slurmdb/v0.0.42"
LIMIT = RestLimitsSpec().connections_per_client
REQUESTS = RestLimitsSpec().requests_per_client
REQUEST_SECONDS = 5
"""Time for a whole request, shorter than by default: a test waits for it."""

ACCOUNTING = {
    "database": {"own": {"pod_resources": SMALL, "storage": {"size_gib": 1}}},
    "slurmdbd": {"pod_resources": SMALL},
}
DAEMONS = [("rest-0", PORT), ("accounting-0", 6819), ("database-0", 3306)]

_PAGE = (paths.ROOT / "docs" / "rest.md").read_text()
(PROGRAM,) = re.findall(r"```python\n(.*?)```", _PAGE, re.DOTALL)
"""The program on the page about the REST API."""
(_ROW,) = re.findall(rf"^\| {re.escape(VERSION)} \| (.*) \|$", _PAGE, re.MULTILINE)
VERSIONS = re.findall(r"v0\.0\.\d+", _ROW)
"""Versions of the API that the page lists for this Slurm."""


@dataclass(frozen=True)
class Answer:
    """Status and content of an answer."""

    status: int
    text: str

    @property
    def content(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True)
class Client:
    """A program that calls the API of a cluster."""

    slurm: Slurm
    headers: dict[str, str] = field(default_factory=dict)

    def pod(self) -> Any:
        return self.slurm.api.read_namespaced_pod("rest-0", self.slurm.namespace)

    def connect(self) -> HTTPConnection:
        return HTTPConnection(self.pod().status.pod_ip, PORT, timeout=60)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        with closing(self.connect()) as connection:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            sent = {**self.headers, "Content-Type": "application/json", **headers}
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read().decode())

    def get(self, path: str) -> Answer:
        return self.call("GET", API + path)


def token(slurm: Slurm, *arguments: str) -> str:
    """Return the token that alice makes for herself in the jail."""
    line = slurm.ssh(" ".join(["scontrol token", *arguments])).stdout.strip()
    return line.removeprefix("SLURM_JWT=")


def with_token(slurm: Slurm, text: str) -> Client:
    return Client(slurm, {"X-SLURM-USER-TOKEN": text})


def signed(claims: dict[str, Any], key: bytes) -> str:
    """Return a token with these claims, as auth/jwt makes them."""

    def part(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    head = part(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    text = f"{head}.{part(json.dumps(claims).encode())}"
    return f"{text}.{part(hmac.new(key, text.encode(), hashlib.sha256).digest())}"


class Rested(Slurm):
    """A cluster whose REST API was switched on while a job ran."""

    job_of_before: dict[str, str]
    """A job that ran before there was a REST API, as it was once there was one."""
    reached_by_login: set[str]
    """Ports of `DAEMONS` that a login node reached while the API was closed."""
    reached_by_stranger: set[str]
    """Ports of `DAEMONS` that a pod of another namespace reached then."""


@pytest.fixture(scope="module")
def slurm(kubernetes: Kubernetes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rested]:
    """A cluster with accounting that gets the REST API, closed first, then open to this machine."""
    bring_images(kubernetes)
    described = a_cluster(name=unique("rest"), accounting=ACCOUNTING)
    slurm = Rested(kubernetes, Path(tmp_path_factory.mktemp("rest")), described)
    login = (slurm.namespace, "login-0", "sshd")
    try:
        slurm.up()
        job = slurm.submit("sleep 600")
        slurm.wait_for_job(job, "RUNNING")
        slurm.cluster["rest"] = {"pod_resources": SMALL, "limits": {"request_seconds": REQUEST_SECONDS}}
        slurm.up()
        slurm.job_of_before = slurm.job(job)
        slurm.ssh(f"scancel {job}")
        with a_stranger(slurm) as stranger:
            slurm.reached_by_stranger = reached(slurm, stranger, DAEMONS)
        slurm.reached_by_login = reached(slurm, login, DAEMONS)
        slurm.cluster["rest"]["allowed_sources"] = ["0.0.0.0/0"]
        slurm.up()
        wait_until(lambda: bool(reached(slurm, login, DAEMONS[:1])), "the REST API is open")
        yield slurm
    finally:
        slurm.destroy()


@pytest.fixture
def alice(slurm: Slurm) -> Client:
    return with_token(slurm, token(slurm, "lifespan=3600"))


def submitted(client: Client, script: str) -> int:
    job = {
        "script": f"#!/bin/sh\n{script}\n",
        "job": {"name": "rest", "current_working_directory": "/tmp", "environment": ["PATH=/usr/bin:/bin"]},
    }
    answer = client.call("POST", f"{API}/job/submit", job)
    assert answer.status == HTTPStatus.OK, answer.text
    return int(answer.content["job_id"])


def test_a_job_from_before_runs_on(slurm: Rested) -> None:
    assert (slurm.job_of_before["JobState"], slurm.job_of_before["Restarts"]) == ("RUNNING", "0")


def test_a_job_is_submitted_seen_and_cancelled_with_a_token(slurm: Slurm, alice: Client) -> None:
    job = submitted(alice, "sleep 600")
    slurm.wait_for_job(job, "RUNNING")
    (seen,) = alice.get(f"/job/{job}").content["jobs"]
    assert (seen["user_name"], seen["job_state"]) == ("alice", ["RUNNING"])
    assert alice.call("DELETE", f"{API}/job/{job}").status == HTTPStatus.OK
    slurm.wait_for_job(job, "CANCELLED")


def test_no_pod_reaches_a_closed_api_and_another_namespace_reaches_no_records(slurm: Rested) -> None:
    assert slurm.reached_by_login == {"accounting-0:6819"}  # or silence would prove nothing
    assert slurm.reached_by_stranger == set()


def test_the_record_of_a_job_is_read_with_a_token_and_not_without(slurm: Slurm, alice: Client) -> None:
    job = submitted(alice, "exit 0")

    def recorded() -> list[tuple[str, list[str]]]:
        found = alice.call("GET", f"{RECORDS}/job/{job}").content.get("jobs") or []  # none before slurmdbd has it
        return [(item["user"], item["state"]["current"]) for item in found]

    wait_until(lambda: recorded() == [("alice", ["COMPLETED"])], "the job is recorded", seen=recorded)
    every = alice.call("GET", f"{RECORDS}/jobs")
    assert every.status == HTTPStatus.OK, every.text
    assert job in [job["job_id"] for job in every.content["jobs"]]
    assert Client(slurm).call("GET", f"{RECORDS}/jobs").status == HTTPStatus.UNAUTHORIZED


def test_each_version_of_the_page_answers(alice: Client) -> None:
    answers = {version: alice.call("GET", f"/slurm/{version}/ping").status for version in VERSIONS}

    assert answers == dict.fromkeys(VERSIONS, HTTPStatus.OK)


def test_the_program_of_the_page_submits_queries_and_cancels_a_job(slurm: Slurm, alice: Client) -> None:
    before = {job.get("JobId") for job in slurm.jobs()}
    given = {
        "no_proxy": "*",
        "SLURM_JWT": alice.headers["X-SLURM-USER-TOKEN"],
        "SLURM_REST": f"http://{alice.pod().status.pod_ip}:{PORT}",
    }

    words = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(words, env={**os.environ, **given}, capture_output=True, text=True, check=False, timeout=120)

    assert done.returncode == 0, done.stderr
    assert re.search("PENDING|RUNNING", done.stdout)
    (job,) = (job for job in slurm.jobs() if job["JobId"] not in before)
    assert job["JobName"] == "second"
    slurm.wait_for_job(int(job["JobId"]), "CANCELLED")


def test_no_token_and_tokens_that_are_not_the_clusters_are_refused(slurm: Slurm, alice: Client) -> None:
    now = int(time.time())
    claims = {"sun": "alice", "iat": now, "exp": now + 600}
    refused = {
        "none": Client(slurm),
        "another cluster's": with_token(slurm, signed(claims, secrets.token_bytes(32))),
        "expired": with_token(slurm, signed({**claims, "exp": now - 10}, key_of(slurm))),
        "with another user": Client(slurm, {**alice.headers, "X-SLURM-USER-NAME": "root"}),
        "without a signature": with_token(slurm, alice.headers["X-SLURM-USER-TOKEN"].rpartition(".")[0] + "."),
    }
    assert with_token(slurm, signed(claims, key_of(slurm))).get("/ping").status == HTTPStatus.OK
    for name, client in refused.items():
        assert client.get("/jobs").status >= HTTPStatus.BAD_REQUEST, name


def key_of(slurm: Slurm) -> bytes:
    """Return the cluster's key, as only an administrator of Kubernetes can."""
    found = slurm.api.read_namespaced_secret("jwt-key", slurm.namespace)
    return base64.b64decode(found.data["jwt.key"])


def test_a_job_of_another_user_cannot_be_submitted(slurm: Slurm, alice: Client) -> None:
    job = {
        "script": "#!/bin/sh\nid -u\n",
        "job": {"current_working_directory": "/tmp", "environment": ["PATH=/bin"], "user_id": "0"},
    }
    assert alice.call("POST", f"{API}/job/submit", job).status >= HTTPStatus.BAD_REQUEST


def test_a_user_makes_tokens_for_no_other_user(slurm: Slurm) -> None:
    assert slurm.ssh("scontrol token username=slurm lifespan=60", check=False).returncode != 0


def test_a_body_that_is_too_large_is_refused_with_and_without_its_length(slurm: Slurm, alice: Client) -> None:
    for length_bytes in (1024 * 1024 + 1, 2**31, 2**32 + 1, 2**63 - 1):
        with closing(alice.connect()) as connection:
            connection.putrequest("POST", f"{API}/job/submit")
            connection.putheader("Content-Length", str(length_bytes))
            connection.endheaders()
            assert connection.getresponse().status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE, length_bytes
    with closing(alice.connect()) as connection:
        connection.putrequest("POST", f"{API}/job/submit")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        assert connection.getresponse().status == HTTPStatus.BAD_REQUEST


def test_a_body_that_does_not_arrive_in_time_is_refused(alice: Client) -> None:
    with closing(alice.connect()) as connection:
        connection.putrequest("POST", f"{API}/job/submit")
        connection.putheader("Content-Length", "10")
        connection.endheaders(b"{")
        assert connection.getresponse().status == HTTPStatus.REQUEST_TIMEOUT


def test_too_many_requests_of_one_client_are_refused_and_harm_no_one_else(slurm: Slurm, alice: Client) -> None:
    """They come from a worker's address, which no other test calls from. The proxy itself answers each of them."""
    program = f"""
import http.client, sys
for number in range(10 * {REQUESTS}):
    connection = http.client.HTTPConnection(sys.argv[1], {PORT}, timeout=30)
    connection.putrequest("GET", "/")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    status = connection.getresponse().status
    connection.close()
    if status != {int(HTTPStatus.BAD_REQUEST)}:
        break
print(number, status)
"""
    number, status = slurm.exec("cpu-1", "slurmd", "python3", "-c", program, alice.pod().status.pod_ip).split()

    assert int(status) == HTTPStatus.TOO_MANY_REQUESTS
    assert int(number) >= REQUESTS
    assert alice.get("/ping").status == HTTPStatus.OK


def test_slow_and_many_connections_of_one_client_harm_no_one_else(slurm: Slurm, alice: Client) -> None:
    """The flood comes from this machine; the other client is a pod of the cluster with an address of its own."""
    address = alice.pod().status.pod_ip
    slow = []
    try:
        for _ in range(40):
            # Beyond the connections of one client the proxy closes them, also before they are made.
            with suppress(ConnectionError):
                connection = socket.create_connection((address, PORT), timeout=30)
                slow.append(connection)
                connection.sendall(b"POST /slurm/v0.0.42/job/submit HTTP/1.1\r\nHost: rest\r\nContent-Le")
        assert len(slow) >= LIMIT
        header = f"X-SLURM-USER-TOKEN: {alice.headers['X-SLURM-USER-TOKEN']}"
        url = f"http://{address}:{PORT}{API}/ping"
        program = (
            "import sys, urllib.request as r; n, v = sys.argv[2].split(': ');"
            "print(r.urlopen(r.Request(sys.argv[1], headers={n: v}), timeout=30).status)"
        )
        answered = slurm.exec("login-0", "sshd", "python3", "-c", program, url, header)
        assert answered.strip() == str(int(HTTPStatus.OK))
        assert all(status.ready for status in alice.pod().status.container_statuses)
    finally:
        for connection in slow:
            connection.close()


def test_no_secret_is_in_what_others_may_read(slurm: Slurm, alice: Client) -> None:
    alice.get("/ping")
    hidden = [alice.headers["X-SLURM-USER-TOKEN"], key_of(slurm).hex(), base64.b64encode(key_of(slurm)).decode()]
    logs = [
        slurm.api.read_namespaced_pod_log("rest-0", slurm.namespace, container=name) for name in ("proxy", "slurmrestd")
    ]
    listed = (slurm.api.list_namespaced_config_map, slurm.api.list_namespaced_pod)
    read = [*logs, *(str(item(slurm.namespace).to_dict()) for item in listed)]
    assert not [text for text in hidden for found in read if text in found]


def test_slurmrestd_that_was_killed_is_back(slurm: Slurm, alice: Client) -> None:
    def restarts() -> int:
        return sum(
            container_status.restart_count
            for container_status in alice.pod().status.container_statuses
            if container_status.ready
        )

    before = restarts()
    slurm.exec("rest-0", "slurmrestd", "/bin/sh", "-c", "kill -KILL $(pidof slurmrestd)")
    wait_until(lambda: alice.get("/ping").status == HTTPStatus.OK, "slurmrestd answers again")
    wait_until(lambda: restarts() == before + 1, "the pod is ready again, with one container restarted")


def test_another_version_of_the_key_ends_tokens_and_no_job(slurm: Slurm, alice: Client) -> None:
    job = submitted(alice, "sleep 600")
    slurm.wait_for_job(job, "RUNNING")
    slurm.cluster["rest"]["key_version"] = slurm.cluster["rest"].get("key_version", 1) + 1
    slurm.up()
    assert alice.get("/jobs").status >= HTTPStatus.BAD_REQUEST
    anew = with_token(slurm, token(slurm))
    assert anew.get(f"/job/{job}").content["jobs"][0]["job_state"] == ["RUNNING"]
    assert anew.call("DELETE", f"{API}/job/{job}").status == HTTPStatus.OK


def test_with_a_certificate_the_api_answers_over_tls_alone(slurm: Slurm, alice: Client) -> None:
    authority = Authority.made("authority of the site")
    files = authority.sign("127.0.0.1")
    data = {name: base64.b64encode(content).decode() for name, content in files.items()}
    secret = {"metadata": {"name": "certificate"}, "type": "kubernetes.io/tls", "data": data}
    slurm.api.create_namespaced_secret(slurm.namespace, secret)
    slurm.cluster["rest"]["tls"] = {"secret": "certificate"}
    try:
        slurm.up()
        trusting = ssl.create_default_context(cadata=authority.pem.decode())
        trusting.check_hostname = False  # the pod's address is not known before
        with closing(HTTPSConnection(alice.pod().status.pod_ip, PORT, timeout=60, context=trusting)) as connection:
            connection.request("GET", f"{API}/ping", headers=alice.headers)
            assert connection.getresponse().status == HTTPStatus.OK
        with pytest.raises((HTTPException, ConnectionError)):
            alice.get("/ping")
    finally:
        del slurm.cluster["rest"]["tls"]
        slurm.up()
