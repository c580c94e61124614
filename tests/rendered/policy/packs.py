"""Packs as Pulumi runs them: a process that is asked over the analyzer's protocol, with recorded resources."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from soperator_pulumi.policy.recorded import views
from soperator_pulumi.testing import Deployment
from tools import paths

OURS = paths.ROOT / "policy"
"""Folder of the pack of this repository."""

_START_SECONDS = 120


class Pack:
    """A running pack. It is asked the same once: most resources of one test's cluster are those of the next one's."""

    def __init__(self, stub: analyzer_pb2_grpc.AnalyzerStub) -> None:
        self._stub = stub
        self._answers: dict[tuple[str, bytes], Any] = {}

    def info(self) -> analyzer_pb2.AnalyzerInfo:
        found: analyzer_pb2.AnalyzerInfo = self._stub.GetAnalyzerInfo(empty_pb2.Empty())
        return found

    def corrected(self, request: analyzer_pb2.AnalyzeRequest) -> list[analyzer_pb2.Remediation]:
        return [*self._answer("Remediate", request).remediations]

    def analyzed(self, request: analyzer_pb2.AnalyzeRequest) -> list[analyzer_pb2.AnalyzeDiagnostic]:
        return [*self._answer("Analyze", request).diagnostics]

    def _answer(self, question: str, request: analyzer_pb2.AnalyzeRequest) -> Any:
        key = question, request.SerializeToString(deterministic=True)
        if key not in self._answers:
            self._answers[key] = getattr(self._stub, question)(request)
        return self._answers[key]

    def judge(self, deployment: Deployment, before: Deployment | None = None) -> list[analyzer_pb2.AnalyzeDiagnostic]:
        """Ask as an engine does: each resource first, then all together."""
        requests = requests_of(deployment, before)
        found: list[analyzer_pb2.AnalyzeDiagnostic] = []
        for request in requests:
            for correction in self.corrected(request):
                request.properties.CopyFrom(correction.properties)
            found += self.analyzed(request)
        resources = [
            analyzer_pb2.AnalyzerResource(
                type=analyze_request.type,
                properties=analyze_request.properties,
                urn=analyze_request.urn,
                name=analyze_request.name,
                options=analyze_request.options,
                parent=analyze_request.options.parent,
            )
            for analyze_request in requests
        ]
        answer = self._stub.AnalyzeStack(analyzer_pb2.AnalyzeStackRequest(resources=resources))
        return [*found, *answer.diagnostics]


@contextmanager
def running(
    folder: Path, stack: str, policy: Mapping[str, Any] | None = None, variables: Mapping[str, str] | None = None
) -> Iterator[Pack]:
    """Run the pack in a folder for a stack of this name, with `soperator:policy`."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(paths.ROOT),
        "PULUMI_CONFIG": json.dumps({"soperator:policy": json.dumps(policy or {})}),
        "PULUMI_PROJECT": "project",
        "PULUMI_STACK": stack,
        "PULUMI_DRY_RUN": "true",
        **(variables or {}),
    }
    command = [sys.executable, "-u", "-m", "pulumi.policy", "127.0.0.1:0", str(folder)]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            port = int(process.stdout.readline())
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                grpc.channel_ready_future(channel).result(_START_SECONDS)
                yield Pack(analyzer_pb2_grpc.AnalyzerStub(channel))
        finally:
            process.kill()


def requests_of(deployment: Deployment, before: Deployment | None = None) -> list[analyzer_pb2.AnalyzeRequest]:
    """Return the engine's requests for recorded resources, the stack first, with secrets marked."""
    stack, *found = views(deployment, before)
    raw = [resource.request.object for resource in deployment.recorded]
    requests = [request(stack.type, stack.name, {})]
    for view, properties in zip(found, raw, strict=True):
        added = {key: value for key, value in view.props.items() if key not in properties.fields and value is not None}
        whole = {**json_format.MessageToDict(properties), **added}
        requests.append(request(view.type, view.name, whole, urn=view.urn, protect=view.protect, parent=view.parent))
    return requests


def request(
    type_: str, name: str, properties: Mapping[str, Any], *, urn: str = "", protect: bool = False, parent: str = ""
) -> analyzer_pb2.AnalyzeRequest:
    struct = struct_pb2.Struct()
    struct.update({key: value for key, value in properties.items() if not key.startswith("__")})
    return analyzer_pb2.AnalyzeRequest(
        type=type_,
        name=name,
        urn=urn or f"urn:pulumi:test::project::{type_}::{name}",
        properties=struct,
        options=analyzer_pb2.AnalyzerResourceOptions(protect=protect, parent=parent),
    )


def failing(diagnostics: Sequence[analyzer_pb2.AnalyzeDiagnostic]) -> set[str]:
    return {diagnostic.policyName for diagnostic in diagnostics if diagnostic.enforcementLevel != analyzer_pb2.ADVISORY}
