"""Policy packs of a run: processes that serve the analyzer protocol of Pulumi.

As with the real engine, a violation fails a preview after all others are found, and an update before the resource is
touched; a policy on the whole stack runs at the end.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import grpc
import grpc.aio
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from tools.console import UserError
from tools.engine import project
from tools.engine.local import child_process
from tools.engine.local.state import Resource
from tools.engine.project import Project
from tools.engine.protocol import Target
from tools.engine.values import Properties, from_struct, to_struct

_FILE = "PulumiPolicy.yaml"
_START_SECONDS = 120
_INTERNAL = "__"
_LIMIT_BYTES = 400 * 2**20  # the SDK's own limit


@dataclass(frozen=True)
class PolicyReport:
    """Report of a policy about a resource or, without a URN, about the stack."""

    urn: str
    message: str
    fails: bool


class Packs:
    """All packs of a run."""

    def __init__(self, stubs: "Sequence[analyzer_pb2_grpc.AnalyzerAsyncStub]") -> None:
        self._stubs = stubs

    def __bool__(self) -> bool:
        """Return True if there is any pack."""
        return bool(self._stubs)

    async def remediated(self, resource: Resource) -> tuple[Resource, list[PolicyReport]]:
        """Return a resource with the inputs that the packs correct, and a report of every correction.

        Raises:
            UserError: a pack fails.
        """
        reports: list[PolicyReport] = []
        for stub in self._stubs:
            with _failing_for_its_author():
                answer = await stub.Remediate(_request(resource, to_struct(resource.inputs)))
            for remediation in answer.remediations:
                if remediation.diagnostic:
                    text = remediation.diagnostic
                else:
                    resource = replace(resource, inputs=from_struct(remediation.properties))
                    text = f"{remediation.policyName} has corrected the resource: {remediation.description}"
                reports.append(PolicyReport(resource.urn, text, fails=False))
        return resource, reports

    async def of_resource(self, resource: Resource) -> list[PolicyReport]:
        """Return the reports about a single resource.

        Raises:
            UserError: a pack fails.
        """
        request = _request(resource, to_struct(_visible(resource.inputs)))
        with _failing_for_its_author():
            answers = [await stub.Analyze(request) for stub in self._stubs]
        return [_report(diagnostic, resource.urn) for answer in answers for diagnostic in answer.diagnostics]

    async def of_stack(self, resources: Collection[Resource]) -> list[PolicyReport]:
        """Return the reports about all resources together.

        Raises:
            UserError: a pack fails.
        """
        request = analyzer_pb2.AnalyzeStackRequest(resources=[_in_stack(resource) for resource in resources])
        with _failing_for_its_author():
            answers = [await stub.AnalyzeStack(request) for stub in self._stubs]
        return [_report(diagnostic, "") for answer in answers for diagnostic in answer.diagnostics]


@asynccontextmanager
async def running(
    project_: Project, target: Target, say: Callable[[str], None], *, preview: bool
) -> AsyncIterator[Packs]:
    """Start the target's policy packs, and stop them at the end.

    Args:
        project_: Project of the program that they judge.
        target: Stack that they judge.
        say: Takes each line that a pack prints.
        preview: True for a preview.

    Raises:
        UserError: a pack does not start; the message has what it printed.
    """
    async with AsyncExitStack() as stack:
        packs = [_pack(folder, project_, target, say, preview=preview) for folder in target.policy_packs]
        yield Packs([await stack.enter_async_context(pack) for pack in packs])


@asynccontextmanager
async def _pack(
    folder: Path, project_: Project, target: Target, say: Callable[[str], None], *, preview: bool
) -> "AsyncIterator[analyzer_pb2_grpc.AnalyzerAsyncStub]":
    child = await _start(folder, project_, target, preview=preview)
    try:
        port = await _port(child, folder)
        pumps = [asyncio.create_task(child_process.pump(stream, say)) for stream in (child.stdout, child.stderr)]
        options = [("grpc.max_receive_message_length", _LIMIT_BYTES), ("grpc.max_send_message_length", -1)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
            stub = cast("analyzer_pb2_grpc.AnalyzerAsyncStub", analyzer_pb2_grpc.AnalyzerStub(channel))
            with _failing_for_its_author():
                info = await stub.GetAnalyzerInfo(empty_pb2.Empty(), wait_for_ready=True, timeout=_START_SECONDS)
            judging = [policy for policy in info.policies if policy.enforcementLevel != analyzer_pb2.DISABLED]
            say(f"policy pack {info.name} judges with {len(judging)} of {len(info.policies)} policies")
            yield stub
    finally:
        await child_process.stop(child)
    await asyncio.gather(*pumps)


@contextmanager
def _failing_for_its_author() -> Iterator[None]:
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise UserError(f"a policy pack failed: {error.details()}") from None


async def _start(folder: Path, project_: Project, target: Target, *, preview: bool) -> asyncio.subprocess.Process:
    return await child_process.start(
        "policy",
        replace(project_, python=_interpreter(folder, target)),
        target,
        settings={"pack": str(folder)},
        environment={"PULUMI_DRY_RUN": str(preview).lower(), "PULUMI_ORGANIZATION": "organization"},
    )


def _interpreter(folder: Path, target: Target) -> Path:
    if not (folder / _FILE).exists():
        raise UserError(f"{folder} is not a policy pack: it has no {_FILE}. Name the folder of one.")
    return project.interpreter(replace(target, project=folder), _FILE)


async def _port(child: asyncio.subprocess.Process, folder: Path) -> int:
    """Return the port that a pack prints on its first line."""
    if child.stdout is None or child.stderr is None:
        raise UserError(f"the policy pack {folder} has no output")
    try:
        line = await asyncio.wait_for(child.stdout.readline(), _START_SECONDS)
        return int(line)
    except (TimeoutError, ValueError):
        await child_process.stop(child)
        words = (await child.stderr.read()).decode(errors="replace").strip()
        raise UserError(f"the policy pack {folder} does not start:\n{words or 'it has printed nothing'}") from None


def _request(resource: Resource, properties: struct_pb2.Struct) -> analyzer_pb2.AnalyzeRequest:
    return analyzer_pb2.AnalyzeRequest(
        type=resource.type,
        properties=properties,
        urn=resource.urn,
        name=resource.name,
        options=_options(resource),
    )


def _in_stack(resource: Resource) -> analyzer_pb2.AnalyzerResource:
    dependencies = {
        key: analyzer_pb2.AnalyzerPropertyDependencies(urns=urns)
        for key, urns in resource.property_dependencies.items()
        if urns
    }
    return analyzer_pb2.AnalyzerResource(
        type=resource.type,
        properties=to_struct(_visible(resource.outputs)),
        urn=resource.urn,
        name=resource.name,
        options=_options(resource),
        parent=resource.parent,
        dependencies=resource.dependencies,
        propertyDependencies=dependencies,
    )


def _options(resource: Resource) -> analyzer_pb2.AnalyzerResourceOptions:
    return analyzer_pb2.AnalyzerResourceOptions(
        protect=resource.protect,
        ignoreChanges=resource.ignore_changes,
        additionalSecretOutputs=resource.additional_secret_outputs,
        parent=resource.parent,
    )


def _visible(properties: Properties) -> Properties:
    return {key: value for key, value in properties.items() if not key.startswith(_INTERNAL)}


def _report(found: analyzer_pb2.AnalyzeDiagnostic, urn: str) -> PolicyReport:
    fails = found.enforcementLevel != analyzer_pb2.ADVISORY
    level = "mandatory" if fails else "advisory"
    return PolicyReport(found.urn or urn, f"[{level}] {found.policyName}: {found.message}", fails)
