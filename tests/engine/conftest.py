"""Stacks of the engine tier: every test runs on each engine that is there, against a real API server."""

import contextlib
import itertools
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from tests import left_behind, warm_python
from tests.conftest import Kubernetes
from tests.engine.engines import ENGINES, PROGRAM
from tests.waiting import wait_until
from tools.engine import Deployer, DeployError, Result, StackChanges, Target

AVAILABLE = ["local", *(["pulumi"] if shutil.which("pulumi") else [])]
KILLED = -signal.SIGKILL
_numbers = itertools.count()


@dataclass
class Stack:
    """A stack of the program that creates what it is told, on one engine."""

    engine: str
    kubernetes: Kubernetes
    folder: Path
    namespace: str
    resources: list[dict[str, Any]] = field(default_factory=list)
    exports: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    """Output that a person saw."""

    def target(self, **changes: Any) -> Target:
        values: dict[str, Any] = {
            "project": PROGRAM,
            "stack": "test",
            "state": self.folder / "state",
            "environment": {"KUBECONFIG": str(self.kubernetes.kubeconfig), "PYTHONDONTWRITEBYTECODE": "1"},
            "config": {
                "declared:resources": self.resources,
                "declared:exports": self.exports,
                **({"kubernetes:context": c} if (c := self.kubernetes.target.context) else {}),
                **self.config,
            },
            "python": warm_python.executable(),
            **changes,
        }
        return Target(**values)

    def deployer(self, **changes: Any) -> Deployer:
        return ENGINES[self.engine](self.target(**changes), self.lines.append)

    def up(self, *resources: dict[str, Any]) -> Result:
        """Deploy these resources, or those of before."""
        self.resources = list(resources) or self.resources
        return self.deployer().up()

    def preview(self, *resources: dict[str, Any]) -> StackChanges:
        self.resources = list(resources) or self.resources
        return self.deployer().preview()

    def fails(self, operation: Callable[[], object]) -> DeployError:
        """Do what must fail, and return the error."""
        with pytest.raises(DeployError) as caught:
            operation()
        return caught.value

    # Resources ----------------------------------------------------------------------------------------------------

    def thing(self, name: str, **properties: Any) -> dict[str, Any]:
        """A dynamic resource that writes to the log."""
        options = properties.pop("options", {})
        (self.folder / "things").mkdir(exist_ok=True)
        properties = {"folder": str(self.folder / "things"), **properties}
        return {"name": name, "type": "Thing", "properties": properties, "options": options}

    def config_map(self, name: str, data: Any, **options: Any) -> dict[str, Any]:
        """A ConfigMap of a fixed name."""
        return self.object(name, "core/v1:ConfigMap", {"data": data}, **options)

    def object(self, name: str, kind: str, body: dict[str, Any], **options: Any) -> dict[str, Any]:
        """An object of Kubernetes; `metadata` in its body is merged with name and namespace."""
        version, _, word = kind.partition(":")
        metadata = {"name": name, "namespace": self.namespace, **body.get("metadata", {})}
        properties = {
            "apiVersion": version.removeprefix("core/"),
            "kind": word,
            **body,
            "metadata": {key: value for key, value in metadata.items() if value is not None},
        }
        return {
            "name": name, "type": f"kubernetes:{kind}", "properties": properties, "options": options,
        }  # fmt: skip

    # What is there ------------------------------------------------------------------------------------------------

    def log(self) -> list[str]:
        """Operations on the things, in order."""
        file = self.folder / "things" / "log"
        return file.read_text().splitlines() if file.exists() else []

    def mark(self, name: str) -> Path:
        """A file that tells a thing to hold, to fail, or that it has gone."""
        (self.folder / "things").mkdir(exist_ok=True)
        file = self.folder / "things" / name
        file.touch()
        return file

    def data(self, name: str) -> dict[str, str] | None:
        """The data of a ConfigMap; None if there is none."""
        found = self.find("configmaps", name)
        return None if found is None else found.get("data", {})

    def find(self, plural: str, name: str, api: str = "/api/v1") -> dict[str, Any] | None:
        """An object; None if there is none."""
        return self._get(f"{api}/namespaces/{self.namespace}/{plural}/{name}")

    def pods(self) -> list[dict[str, Any]]:
        """All pods that are not being deleted."""
        listed = self._get(f"/api/v1/namespaces/{self.namespace}/pods")
        assert listed is not None
        return [pod for pod in listed["items"] if "deletionTimestamp" not in pod["metadata"]]

    def _get(self, path: str) -> dict[str, Any] | None:
        client: Any = self.kubernetes.api
        response = client.call_api(*client.param_serialize("GET", path, auth_settings=["BearerToken"]))
        text = response.read()
        if response.status == 404:
            return None
        assert response.status == 200, text
        return dict(json.loads(text))

    def names(self) -> set[str]:
        """The names of the resources in the state, without the stack itself."""
        return {r.name for r in self.deployer().state() if r.type != "pulumi:pulumi:Stack"}

    # Processes ----------------------------------------------------------------------------------------------------

    def start(self, operation: str = "up") -> subprocess.Popen[str]:
        """Begin an operation in a process of its own, which can be killed with all that belongs to it."""
        target = self.target()
        arguments = {
            "engine": self.engine,
            "operation": operation,
            "stack": target.stack,
            "state": str(target.state),
            "config": dict(target.config),
            "environment": dict(target.environment),
            "lock_timeout_seconds": target.lock_timeout_seconds,
        }
        return subprocess.Popen(
            [sys.executable, "-m", "tests.engine.run", json.dumps(arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip

    def kill(self, process: subprocess.Popen[str]) -> None:
        """Kill a process of this stack."""
        kill(process)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill it, with all that it has started, as the kernel would that has run out of memory: no one is asked."""
    os.kill(process.pid, signal.SIGSTOP)  # it does not see its children end
    for pid in [*_descendants(process.pid), process.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.communicate()


def _descendants(root: int) -> list[int]:
    found = [root]
    for parent in found:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            for file in Path("/proc", str(parent), "task").glob("*/children"):
                found += map(int, file.read_text().split())
    return found[1:]


@pytest.fixture(params=AVAILABLE)
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine that is there."""
    return str(request.param)


@pytest.fixture
def new_stack(kubernetes: Kubernetes, tmp_path: Path) -> Iterator[Callable[..., Stack]]:
    """Make stacks, each with a namespace of its own, and take both away afterwards."""
    made: list[Stack] = []

    def make(engine: str) -> Stack:
        namespace = left_behind.record(f"engine-{next(_numbers)}-{secrets.token_hex(3)}")
        kubernetes.core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=namespace)))
        wait_until(
            lambda: _has_default_account(kubernetes, namespace), "pods without an account of their own may be made"
        )
        folder = tmp_path / namespace
        folder.mkdir()
        made.append(Stack(engine, kubernetes, folder, namespace))
        return made[-1]

    yield make
    for stack in made:
        things = stack.folder / "things"
        for mark in [*things.glob("hold-*"), *things.glob("fail-*")]:
            mark.unlink()
        kubernetes.core.delete_namespace(stack.namespace)


def _has_default_account(kubernetes: Kubernetes, namespace: str) -> bool:
    found = kubernetes.core.list_namespaced_service_account(namespace, field_selector="metadata.name=default")
    return bool(found.items)


@pytest.fixture
def stack(new_stack: Callable[..., Stack], engine: str) -> Stack:
    """A new stack on each engine that is there."""
    return new_stack(engine)


@pytest.fixture
def local(new_stack: Callable[..., Stack]) -> Stack:
    """A new stack on the local engine."""
    return new_stack("local")
