"""A device plugin for tests: GPUs without the silicon, on the kubelet's own API.

Devices are character devices of NVIDIA's major number, made in a folder of the test's. No kernel driver serves them: to
open one gives ENXIO, and EPERM where the device cgroup forbids it. The driver's files come as container runtimes bring
them (`tests/cluster/driver_files.py`).
"""

import json
import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import grpc

from tests.cluster.device_plugin_api import FOLDER, KUBELET_SOCKET, VERSION, message
from tests.cluster.kwok import SIMULATED
from tests.conftest import Kubernetes
from tests.waiting import wait_until
from tools import locks, paths
from tools.kube.health import socket_problem

GPU = "nvidia.com/gpu"
"""Resource of whole GPUs."""

MAJOR = 195
"""Major number of /dev/nvidia* (Documentation/admin-guide/devices.txt of Linux)."""

CONTROL_MINOR = 255
_UVM_MAJOR = 511
_ANSWER_SECONDS = 30
_LOCK_SECONDS = 550


@dataclass(frozen=True)
class DriverMount:
    """A file or folder of the machine, and its place in a container."""

    source: Path
    place: str


@dataclass
class DevicePlugin:
    """Devices of one resource, and what a container gets with them."""

    resource: str
    folder: Path
    """Folder of the device nodes."""
    count: int
    mounts: Sequence[DriverMount] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_of: Callable[[int], str] = "nvidia{}".format
    """Name of a device's node below /dev."""
    shared_nodes: Mapping[str, tuple[int, int]] = field(
        default_factory=lambda: {"nvidiactl": (MAJOR, CONTROL_MINOR), "nvidia-uvm": (_UVM_MAJOR, 0)}
    )
    """Nodes that come with any device: name, major and minor number."""
    unhealthy: frozenset[int] = frozenset()
    allocated: list[list[str]] = field(default_factory=list)
    """Nodes of devices that each container has got, in the order of their start."""
    _changed: threading.Condition = field(default_factory=threading.Condition, init=False, repr=False)
    _version: int = field(default=0, init=False, repr=False)
    _ended: bool = field(default=False, init=False, repr=False)

    def offer(self, count: int, *, unhealthy: Sequence[int] = ()) -> None:
        """Offer another number of devices, of which some are unhealthy."""
        with self._changed:
            self.count, self.unhealthy = count, frozenset(unhealthy)
            self._version += 1
            self._changed.notify_all()

    def devices(self, _request: Any, context: Any) -> Iterator[Any]:
        """Answer ListAndWatch: all devices now, and again after each change."""
        response, device = message("ListAndWatchResponse"), message("Device")
        told = -1
        while context.is_active():
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._version != told, timeout=1)  # noqa: B023 # used here
                if self._ended:
                    return
                if self._version == told:
                    continue
                told = self._version
                listed = [
                    device(ID=str(i), health="Unhealthy" if i in self.unhealthy else "Healthy")
                    for i in range(self.count)
                ]
            yield response(devices=listed)

    def allocate(self, request: Any, _context: Any) -> Any:
        """Answer Allocate: nodes, driver and variables for each container."""
        asked = [sorted(map(int, container_request.devices_ids)) for container_request in request.container_requests]
        return message("AllocateResponse")(container_responses=[self._container(devices) for devices in asked])

    def end(self) -> None:
        """End the streams of ListAndWatch."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _container(self, devices: Sequence[int]) -> Any:
        nodes = {self.node_of(i): (MAJOR, i) for i in devices}
        self.allocated.append(sorted(nodes))
        variables = {"NVIDIA_VISIBLE_DEVICES": ",".join(map(str, devices)), **self.environment}
        return message("ContainerAllocateResponse")(
            envs=[{"key": key, "value": value} for key, value in variables.items()],
            annotations=[{"key": key, "value": value} for key, value in self.annotations.items()],
            mounts=[
                {"container_path": mount.place, "host_path": str(mount.source), "read_only": True}
                for mount in self.mounts
            ],
            devices=[
                {"container_path": f"/dev/{name}", "host_path": str(self._node(name, *number)), "permissions": "rw"}
                for name, number in {**self.shared_nodes, **nodes}.items()
            ],
        )

    def _node(self, name: str, major: int, minor: int) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(major, minor))
            path.chmod(0o666)
        return path


@contextmanager
def served(plugin: DevicePlugin, kubernetes: Kubernetes) -> Iterator[DevicePlugin]:
    """Register the plugin, wait until the node has its devices, and take all back at the end.

    A kubelet has one plugin a resource: another run of tests that wants the same one waits. The Node keeps the
    resource's name, with 0 devices.
    """
    assert kubernetes.target.embedded, "devices are made on the machine of the embedded Kubernetes"
    assert socket_problem(KUBELET_SOCKET) is None, f"the kubelet has lost {KUBELET_SOCKET}: make down, then make up"

    def allocatable() -> int:
        nodes = kubernetes.run("get", "nodes", f"--selector=!{SIMULATED}", "--output=json")
        (node,) = json.loads(nodes)["items"]
        return int(node["status"]["allocatable"].get(plugin.resource, "0"))

    key = sha256(plugin.resource.encode()).hexdigest()[:12]
    endpoint = FOLDER / f"test-{key}.sock"
    lock = paths.state_dir() / f"device-plugin-{key}.lock"
    with locks.held(lock, f"tests with {plugin.resource}", wait_seconds=_LOCK_SECONDS):
        endpoint.unlink(missing_ok=True)
        server = _start(plugin, endpoint)
        try:
            _register(endpoint.name, plugin.resource)
            wait_until(lambda: allocatable() == plugin.count, what=f"the node has {plugin.count} {plugin.resource}")
            yield plugin
        finally:
            plugin.end()
            server.stop(grace=1).wait()
            endpoint.unlink(missing_ok=True)


def _start(plugin: DevicePlugin, endpoint: Path) -> grpc.Server:
    def unary(request: str, answer: Callable[[Any, Any], Any]) -> Any:
        return grpc.unary_unary_rpc_method_handler(answer, message(request).FromString, _bytes)

    options = message("DevicePluginOptions")
    calls = {
        "GetDevicePluginOptions": unary("Empty", lambda *_: options()),
        "ListAndWatch": grpc.unary_stream_rpc_method_handler(plugin.devices, message("Empty").FromString, _bytes),
        "Allocate": unary("AllocateRequest", plugin.allocate),
    }
    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(f"{VERSION}.DevicePlugin", calls)])
    server.add_insecure_port(f"unix://{endpoint}")
    server.start()
    return server


def _register(endpoint: str, resource: str) -> None:
    request = message("RegisterRequest")(version=VERSION, endpoint=endpoint, resource_name=resource)
    with grpc.insecure_channel(f"unix://{KUBELET_SOCKET}") as channel:
        register = channel.unary_unary(f"/{VERSION}.Registration/Register", _bytes, message("Empty").FromString)
        register(request, timeout=_ANSWER_SECONDS, wait_for_ready=True)


def _bytes(given: Any) -> bytes:
    content: bytes = given.SerializeToString()
    return content
