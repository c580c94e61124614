"""The tests' own device plugin: a container gets the devices that it asks for, and a driver."""

import json
import secrets
from collections.abc import Iterator

import pytest

from tests.cluster import busybox
from tests.cluster.device_plugin import DevicePlugin, served
from tests.cluster.driver_files import VERSIONS, Driver, by_hook, compiled
from tests.conftest import Kubernetes
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

RESOURCE = "example.com/gpu-of-plugin"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return compiled(tmp_path_factory.mktemp("driver"), VERSIONS[0])


@pytest.fixture(scope="module")
def plugin(kubernetes: Kubernetes, driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevicePlugin]:
    offered = DevicePlugin(RESOURCE, tmp_path_factory.mktemp("devices"), count=3, mounts=by_hook(driver))
    with served(offered, kubernetes) as it:
        yield it


@pytest.fixture
def namespace(kubernetes: Kubernetes) -> Iterator[str]:
    name = f"devices-{secrets.token_hex(3)}"
    kubernetes.run("create", "namespace", name)
    yield name
    kubernetes.run("delete", "namespace", name, "--wait=false")


def run_pod(kubernetes: Kubernetes, namespace: str, script: str) -> str:
    """Run a pod with two devices to its end, and return what it prints."""
    assert kubernetes.target.embedded
    if busybox.IMAGE not in kubernetes.target.embedded.images():
        kubernetes.target.embedded.import_image(busybox.archive())
    container = {**busybox.container(script), "resources": {"limits": {RESOURCE: "2"}}}
    pod = busybox.pod("devices", restartPolicy="Never", containers=[container])
    kubernetes.run("create", "--namespace", namespace, "--filename=-", stdin=json.dumps(pod))
    phase = ("get", "pod", "devices", "--namespace", namespace, "--output=jsonpath={.status.phase}")
    wait_until(lambda: kubernetes.run(*phase) in {"Succeeded", "Failed"}, what="the pod has ended")
    return kubernetes.run("logs", "devices", "--namespace", namespace)


def test_a_container_gets_its_devices_and_no_others_and_the_driver(
    kubernetes: Kubernetes, namespace: str, plugin: DevicePlugin, driver: Driver
) -> None:
    look = "ls /dev | grep nvidia; ls /usr/lib/x86_64-linux-gnu /usr/bin/nvidia-smi"
    opened = "for i in 0 1 2; do mknod /tmp/nvidia$i c 195 $i; cat /tmp/nvidia$i 2>&1; done; true"

    said = run_pod(kubernetes, namespace, f"mkdir -p /tmp; {look}; {opened}").splitlines()

    (got,) = plugin.allocated
    (other,) = {"nvidia0", "nvidia1", "nvidia2"} - set(got)
    assert len(got) == 2
    assert sorted(said[:4]) == sorted([*got, "nvidia-uvm", "nvidiactl"])
    assert {path.name for path in driver.libraries} <= set(said)
    assert [line for line in said if "Operation not permitted" in line] == [
        f"cat: can't open '/tmp/{other}': Operation not permitted"
    ]
    assert len([line for line in said if "No such device or address" in line]) == len(got)
