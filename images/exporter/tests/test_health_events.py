"""Events of drains by health checks: which ones, once each, and sent whatever Kubernetes answers."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from exporter_testing.answers import NODES
from exporter_testing.api_server import of_account, self_signed, served
from slurm_exporter import event_posts, node_rows
from slurm_exporter.event_posts import EventPosts
from slurm_exporter.health_events import HealthDrain, HealthEvent, HealthWatch
from slurm_exporter.node_samples import of_nodes
from slurm_exporter.samples import Samples, Unread

REASON = "health gpu_count: 7, allowed 8"
EVENT = HealthEvent(HealthDrain("gpu-1", "gpu_count", REASON, 1795446127), over=False)


def nodes(reason: str = REASON, state: str = "IDLE+DRAIN+DYNAMIC_NORM") -> Samples:
    """Return the metrics of the two real nodes, with gpu-1 in another state."""
    drained, other = NODES.splitlines()
    line = drained.replace("IDLE+DRAIN+DYNAMIC_NORM", state).replace(REASON, reason)
    return of_nodes(node_rows.parse(f"{line}\n{other}", Unread()))


def said(events: list[HealthEvent]) -> list[tuple[str, str, bool]]:
    return [(event.drain.node, event.drain.check, event.over) for event in events]


def test_a_drain_and_its_end_are_one_event_each() -> None:
    watch = HealthWatch()

    assert said(watch.changes(nodes())) == [("gpu-1", "gpu_count", False)]
    assert watch.changes(nodes()) == []
    assert said(watch.changes(nodes(state="IDLE+DYNAMIC_NORM"))) == [("gpu-1", "gpu_count", True)]
    assert watch.changes(nodes(state="IDLE+DYNAMIC_NORM")) == []


def test_an_event_has_that_the_check_asks_for_another_machine() -> None:
    reason = "health gpu_remap_failed: failed on GPU 2 (replace the machine), allowed none"
    (event,) = HealthWatch().changes(nodes(reason))

    assert event.manifest("hpc", "2026-11-23T15:00:00Z")["message"] == reason


def test_another_check_ends_the_drain_of_the_first() -> None:
    watch = HealthWatch()
    watch.changes(nodes())

    changes = said(watch.changes(nodes("health xid: 79, allowed none")))
    assert changes == [("gpu-1", "gpu_count", True), ("gpu-1", "xid", False)]


@pytest.mark.parametrize("reason", ["fan of PSU 2", "soperator-pulumi a.b.c: pod-stop", "unhealthy x: y"])
def test_drains_of_others_have_no_event(reason: str) -> None:
    assert HealthWatch().changes(nodes(reason)) == []


def test_slurmctld_s_addition_for_a_silent_node_is_no_other_drain() -> None:
    watch = HealthWatch()
    watch.changes(nodes())

    assert watch.changes(nodes(f"{REASON} : Not responding")) == []


def test_a_round_without_an_answer_and_a_node_that_has_left_end_nothing() -> None:
    watch = HealthWatch()
    watch.changes(nodes())

    assert watch.changes({}) == []
    assert watch.changes(nodes()) == []
    assert watch.changes(of_nodes(node_rows.parse(NODES.splitlines()[1], Unread()))) == []


def test_an_exporter_that_has_restarted_gives_the_same_drain_the_same_name() -> None:
    first, second = HealthWatch().changes(nodes()), HealthWatch().changes(nodes())

    assert [health_event.name for health_event in first] == [health_event.name for health_event in second]
    later = HealthEvent(HealthDrain("gpu-1", "gpu_count", REASON, 1795446128), over=False)
    ended = HealthEvent(EVENT.drain, over=True)
    assert len({EVENT.name, later.name, ended.name}) == 3


def test_the_event_is_on_the_pod_of_the_node() -> None:
    manifest = EVENT.manifest("hpc", "2026-11-23T15:00:00Z")

    assert manifest["involvedObject"] == {"apiVersion": "v1", "kind": "Pod", "name": "gpu-1", "namespace": "hpc"}
    assert (manifest["type"], manifest["reason"], manifest["message"]) == ("Warning", "SlurmHealthDrain", REASON)


@pytest.mark.parametrize(
    ("answers", "outcome", "attempts"),
    [
        ([201], "created", 1),
        ([409], "created", 1),
        ([503, OSError("no route"), 201], "created", 3),
        ([401, 201], "created", 2),
        ([403], "failed", 1),
        ([429, 503, TimeoutError()], "failed", 3),
    ],
)
def test_an_event_is_sent_again_where_that_may_help(
    answers: list[Exception | int], outcome: str, attempts: int
) -> None:
    left, reports = list(answers), list[str]()

    def post(_: HealthEvent) -> int:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    posts = EventPosts(post, reports.append)
    posts.send(EVENT, after_seconds=(0, 0, 0))

    assert posts.outcomes == {**dict.fromkeys(event_posts.OUTCOMES, 0), outcome: 1}
    assert len(answers) - len(left) == attempts
    assert bool(reports) == (outcome == "failed")


def test_a_round_never_waits_for_kubernetes_and_what_does_not_fit_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_posts, "_QUEUE", 3)
    called, answers = threading.Event(), threading.Event()

    def hangs(_: HealthEvent) -> int:
        called.set()
        answers.wait(60)
        return 201

    posts = EventPosts(hangs, print)
    posts.start()
    posts.add([EVENT])
    assert called.wait(60)
    posts.add([EVENT] * 5)

    assert posts.outcomes["dropped"] == 2
    answers.set()


@dataclass
class Api:
    """A server in place of Kubernetes."""

    port: int
    seen: list[tuple[str, str, str]]
    """Path, authorization and message of each request."""
    certificate: str


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    seen: list[tuple[str, str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append((self.path, self.headers["Authorization"], body["message"]))
            self.send_response(201)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with served(Handler, tmp_path) as (port, certificate):
        yield Api(port, seen, certificate)


def account(folder: Path, api: Api, authority: str) -> Callable[[HealthEvent], int]:
    """Return what sends events with the files of a service account."""
    return event_posts.poster(of_account(folder, api.port, authority))


def test_the_token_of_the_moment_is_sent(tmp_path: Path, api: Api) -> None:
    post = account(tmp_path, api, api.certificate)
    assert post(EVENT) == 201
    (tmp_path / "token").write_text("second\n")
    assert post(EVENT) == 201

    path = "/api/v1/namespaces/hpc/events"
    assert api.seen == [(path, "Bearer first", REASON), (path, "Bearer second", REASON)]


def test_no_token_is_sent_to_a_server_of_another_authority(tmp_path: Path, api: Api) -> None:
    another, _ = self_signed()
    with pytest.raises(ssl.SSLError):
        account(tmp_path, api, another)(EVENT)
    assert api.seen == []
