"""Conditions of machines: what the API server has after each round, whatever happened in between."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from exporter_testing.api_server import of_account, served
from slurm_exporter.health_events import HealthDrain
from slurm_exporter.kubernetes_api import KubernetesApi
from slurm_exporter.node_conditions import NodeConditions

TYPE = "SlurmNodeHealthy/hpc"
READY = {"type": "Ready", "status": "True"}
THEIRS = {"type": "SlurmNodeHealthy/other", "status": "False", "reason": "GpuXid", "message": "gpu-9: health x"}
OURS = {"type": TYPE, "status": "False", "reason": "GpuCount", "message": "gpu-7: health gpu_count: 7, allowed 8"}


@dataclass
class Machines:
    """Machines and pods of a Kubernetes cluster that merges conditions by their type, two machines a page."""

    conditions: dict[str, list[dict[str, Any]]]
    pods: dict[str, str]
    """Machine of each pod."""
    status: int = 200
    refused: str = ""
    """Machine that takes no change."""
    calls: list[str] = field(default_factory=list)
    forms: set[str] = field(default_factory=set)

    def answer(self, verb: str, path: str, body: Any) -> tuple[int, Any]:
        self.calls.append(f"{verb} {path.partition('?')[0]}")
        *_, name = path.partition("?")[0].split("/")
        if self.status != 200:
            return self.status, {}
        if path.startswith("/api/v1/namespaces/hpc/pods/"):
            return (200, {"spec": {"nodeName": self.pods[name]}}) if name in self.pods else (404, {})
        if verb == "GET":
            return 200, self._page(int(path.partition("continue=")[2] or 0))
        *_, machine, last = path.split("/")
        assert (verb, last) == ("PATCH", "status")
        if machine not in self.conditions or machine == self.refused:
            return 403 if machine == self.refused else 404, {}
        (given,) = body["status"]["conditions"]
        kept = [condition for condition in self.conditions[machine] if condition["type"] != given["type"]]
        self.conditions[machine] = kept if given.get("$patch") == "delete" else [*kept, given]
        return 200, {}

    def _page(self, first: int) -> dict[str, Any]:
        names = [*self.conditions]
        more = {"continue": str(first + 2)} if len(names) > first + 2 else {}
        items = [
            {"metadata": {"name": name}, "status": {"conditions": self.conditions[name]}}
            for name in names[first : first + 2]
        ]
        return {"metadata": more, "items": items}

    def ours(self) -> dict[str, tuple[str, str, str]]:
        return {
            name: (entry["status"], entry["reason"], entry["message"])
            for name, every in self.conditions.items()
            for entry in every
            if entry["type"] == TYPE
        }


@pytest.fixture
def machines() -> Machines:
    conditions = {"m-0": [READY], "m-1": [READY, THEIRS], "m-2": [READY]}
    return Machines(conditions, {"gpu-0": "m-0", "gpu-1": "m-1", "gpu-2": "m-1", "gpu-3": ""})


@pytest.fixture
def api(machines: Machines, tmp_path: Path) -> Iterator[KubernetesApi]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            machines.forms.add(f"{self.command} {self.headers['Content-Type']}")
            status, body = machines.answer(self.command, self.path, json.loads(self.rfile.read(length) or "null"))
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_PATCH = do_GET  # noqa: N815 - the name that http.server looks for

        def log_message(self, *_: object) -> None:
            pass

    with served(Handler, tmp_path) as (port, certificate):
        yield of_account(tmp_path, port, certificate)


def drain(node: str, check: str = "gpu_count", since: int = 10) -> HealthDrain:
    return HealthDrain(node, check, f"health {check}: 7, allowed 8", since)


def test_a_drain_is_a_condition_of_its_machine_until_it_ends(machines: Machines, api: KubernetesApi) -> None:
    conditions = NodeConditions(api, print)

    conditions.settle([drain("gpu-0")])
    assert machines.ours() == {"m-0": ("False", "GpuCount", "gpu-0: health gpu_count: 7, allowed 8")}
    assert (conditions.count, conditions.errors) == (1, 0)
    assert "PATCH application/strategic-merge-patch+json" in machines.forms

    conditions.settle([])
    assert machines.conditions == {"m-0": [READY], "m-1": [READY, THEIRS], "m-2": [READY]}


def test_a_condition_has_that_the_check_asks_for_another_machine(machines: Machines, api: KubernetesApi) -> None:
    reason = "health gpu_remap_failed: failed on GPU 2 (replace the machine), allowed none"
    NodeConditions(api, print).settle([HealthDrain("gpu-0", "gpu_remap_failed", reason, 10)])

    assert machines.ours() == {"m-0": ("False", "GpuRemapFailed", f"gpu-0: {reason}")}


def test_a_machine_is_unhealthy_while_one_of_its_nodes_is_drained(machines: Machines, api: KubernetesApi) -> None:
    conditions = NodeConditions(api, print)
    conditions.settle([drain("gpu-1", since=20), drain("gpu-2", "gpu_xid")])
    both = "gpu-2: health gpu_xid: 7, allowed 8; gpu-1: health gpu_count: 7, allowed 8"
    assert machines.ours() == {"m-1": ("False", "GpuXid", both)}

    conditions.settle([drain("gpu-1", since=20)])
    assert machines.ours() == {"m-1": ("False", "GpuCount", "gpu-1: health gpu_count: 7, allowed 8")}
    assert THEIRS in machines.conditions["m-1"]


def test_nothing_is_written_while_nothing_changes(machines: Machines, api: KubernetesApi) -> None:
    conditions = NodeConditions(api, print)
    for _ in range(3):
        conditions.settle([drain("gpu-0")])

    assert [call for call in machines.calls if call.startswith("PATCH")] == ["PATCH /api/v1/nodes/m-0/status"]
    assert machines.calls.count("GET /api/v1/nodes") == 2, "two pages, once"


def test_what_an_exporter_before_left_behind_is_removed(machines: Machines, api: KubernetesApi) -> None:
    machines.conditions["m-2"].append(OURS)
    NodeConditions(api, print).settle([])
    assert machines.ours() == {}


def test_a_pod_that_moves_takes_the_condition_with_it(machines: Machines, api: KubernetesApi) -> None:
    conditions = NodeConditions(api, print)
    conditions.settle([drain("gpu-0")])
    machines.pods["gpu-0"] = "m-2"
    conditions.settle([drain("gpu-0")])
    assert [*machines.ours()] == ["m-2"]


@pytest.mark.parametrize("node", ["gpu-3", "gpu-9"])
def test_a_node_without_a_machine_has_no_condition(machines: Machines, api: KubernetesApi, node: str) -> None:
    conditions = NodeConditions(api, print)
    conditions.settle([drain(node)])
    assert (machines.ours(), conditions.errors) == ({}, 0)


def test_a_machine_that_has_left_is_forgotten(machines: Machines, api: KubernetesApi) -> None:
    conditions = NodeConditions(api, print)
    conditions.settle([drain("gpu-0")])
    del machines.conditions["m-0"], machines.pods["gpu-0"]
    conditions.settle([drain("gpu-0")])
    assert (conditions.count, conditions.errors) == (0, 0)


def test_a_refusal_is_reported_once_counted_and_repeated(machines: Machines, api: KubernetesApi) -> None:
    said: list[str] = []
    conditions = NodeConditions(api, said.append)
    machines.status = 403
    conditions.settle([drain("gpu-0")])
    conditions.settle([drain("gpu-0")])
    assert (len(said), conditions.errors) == (1, 2)
    assert "Kubernetes answers 403 to GET /api/v1/nodes" in said[0]

    machines.status = 200
    conditions.settle([drain("gpu-0")])
    assert [*machines.ours()] == ["m-0"]


def test_a_machine_that_takes_no_change_holds_up_no_other(machines: Machines, api: KubernetesApi) -> None:
    said: list[str] = []
    conditions = NodeConditions(api, said.append)
    machines.refused = "m-0"

    conditions.settle([drain("gpu-0"), drain("gpu-1")])

    assert [*machines.ours()] == ["m-1"]
    assert (len(said), conditions.errors, conditions.count) == (1, 1, 1)


def test_the_end_of_the_exporter_removes_all_conditions(machines: Machines, api: KubernetesApi) -> None:
    conditions = NodeConditions(api, print)
    conditions.settle([drain("gpu-0")])
    assert machines.ours()
    conditions.start()
    conditions.end()
    assert machines.ours() == {}
