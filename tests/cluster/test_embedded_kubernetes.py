"""The embedded Kubernetes: what a pod, and one who stands outside, can and cannot do.

All clusters of this tier stand on it, so most of its own tests are for `make soak`; what no other test shows stays.
"""

import itertools
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import busybox
from tests.cluster.isolated import Outside, outside
from tests.waiting import wait_until
from tools import paths
from tools.kube import EmbeddedKubernetes, listeners
from tools.kube.debs import tool
from tools.kube.health import Asker

pytestmark = pytest.mark.cluster

_numbers = itertools.count()


@pytest.fixture(scope="module")
def kube() -> EmbeddedKubernetes:
    """The embedded cluster, whichever other one KUBECONFIG names, with the image that pods here are made of."""
    embedded = EmbeddedKubernetes()
    embedded.up()
    if busybox.IMAGE not in embedded.images():
        embedded.import_image(busybox.archive())
    return embedded


class Namespace:
    """A namespace for one test, with what a person does in it."""

    def __init__(self, kube: EmbeddedKubernetes, labels: dict[str, str] | None = None) -> None:
        self.kube = kube
        self.name = f"kube-{next(_numbers)}-{time.time_ns() % 10**9}"
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name, "labels": labels or {}}})
        # Pods are refused until then: right after a start, the controllers take a moment.
        self.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s")

    def apply(self, *objects: dict[str, Any]) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kube.kubectl("--namespace", self.name, "apply", "-f", "-", stdin=json.dumps(listed))

    def kubectl(self, *arguments: str) -> str:
        return self.kube.kubectl("--namespace", self.name, *arguments)

    def start(self, *pods: dict[str, Any]) -> None:
        """Create pods and wait until their containers run, and listen where they serve."""
        self.apply(*pods)
        for one in pods:
            name = one["metadata"]["name"]
            self.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
            if "httpd" in one["spec"]["containers"][0]["args"][-1]:
                self.wait_for_server(name)

    def wait_for_server(self, pod: str) -> None:
        wait_until(lambda: self.opens(pod, "127.0.0.1"), f"{pod} listens")

    def address(self, pod: str) -> str:
        return self.kubectl("get", "pod", pod, "--output=jsonpath={.status.podIP}")

    def sh(self, pod: str, script: str) -> str:
        """Run a shell script in a pod, and return its output whatever its exit code."""
        return self.kubectl("exec", pod, "--", "sh", "-c", f"{script} 2>&1; true").strip()

    def opens(self, pod: str, address: str, port: int = 8080) -> bool:
        """Tell whether a pod can connect; what is dropped takes the second that it waits."""
        return self.sh(pod, f"nc -w 1 {address} {port} < /dev/null && echo open").endswith("open")


@pytest.fixture
def namespace(kube: EmbeddedKubernetes) -> Iterator[Namespace]:
    made = Namespace(kube)
    yield made
    kube.kubectl("delete", "namespace", made.name, "--wait=false")


@pytest.fixture
def other(kube: EmbeddedKubernetes) -> Iterator[Namespace]:
    made = Namespace(kube, labels={"team": "other"})
    yield made
    kube.kubectl("delete", "namespace", made.name, "--wait=false")


def service(name: str, **spec: Any) -> dict[str, Any]:
    ports = [{"name": "http", "port": 80, "targetPort": "http"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": "web"}, "ports": ports, **spec},
    }


def stateful_set(replicas: int) -> dict[str, Any]:
    probe = {"httpGet": {"port": "http"}, "periodSeconds": 1}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [busybox.container(readinessProbe=probe)],
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web"},
        "spec": {
            "serviceName": "web",
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "web"}},
            "template": template,
        },
    }


def claim(name: str, mode: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}, **spec},
    }


def policy(name: str, app: str | None, **spec: Any) -> dict[str, Any]:
    """Return a NetworkPolicy for the pods labelled `app` (None: all)."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name},
        "spec": {"podSelector": {"matchLabels": {"app": app}} if app else {}, **spec},
    }


def from_pods(app: str) -> dict[str, Any]:
    return {"podSelector": {"matchLabels": {"app": app}}}


@pytest.mark.soak
def test_pods_of_a_stateful_set_find_each_other_by_name_and_by_service(namespace: Namespace) -> None:
    namespace.apply(service("web", clusterIP="None"), service("vip"), stateful_set(2))
    namespace.kubectl("rollout", "status", "statefulset/web", "--timeout=60s")
    wait_until(
        lambda: namespace.sh("web-0", "wget -qO- http://web-1.web:8080") == "web-1",
        "the name is known",
    )
    ask = "for _ in $(seq 30); do wget -qO- http://vip; done"
    wait_until(lambda: set(namespace.sh("web-0", ask).split()) == {"web-0", "web-1"}, "both answer for the service")


@pytest.mark.soak
def test_a_name_server_answers_at_once_even_when_there_is_nothing_to_say(namespace: Namespace) -> None:
    namespace.start(busybox.pod("client"))
    for name in ("0.0.0.0", "no-such-service", "no-such-name.invalid"):  # noqa: S104 - a name to look up
        assert "; answered" in namespace.sh("client", busybox.lookup(name)), name


@pytest.mark.soak
def test_a_pods_address_has_its_name(namespace: Namespace) -> None:
    namespace.apply(service("web", clusterIP="None"), stateful_set(1))
    namespace.kubectl("rollout", "status", "statefulset/web", "--timeout=60s")
    name, address = f"web-0.web.{namespace.name}.svc.cluster.local", namespace.address("web-0")
    wait_until(
        lambda: name in namespace.sh("web-0", f"nslookup {address}"),
        "the address has its name",
    )


@pytest.mark.soak
def test_a_pod_reaches_the_api_server_with_its_service_account(kube: EmbeddedKubernetes, namespace: Namespace) -> None:
    volumes = [{"name": "bin", "hostPath": {"path": str(kube.bin_dir)}}]
    container = busybox.container(volumeMounts=[{"name": "bin", "mountPath": "/kubernetes", "readOnly": True}])
    namespace.start(busybox.pod("client", containers=[container], volumes=volumes))
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    said = namespace.sh(
        "client",
        f"/kubernetes/kubectl --server https://kubernetes.default --certificate-authority {account}/ca.crt "
        f"--token $(cat {account}/token) auth whoami",
    )
    assert f"system:serviceaccount:{namespace.name}:default" in said


@pytest.mark.soak
def test_a_node_port_is_open_on_the_bridge(kube: EmbeddedKubernetes, namespace: Namespace) -> None:
    namespace.start(busybox.pod("web", labels={"app": "web"}))
    namespace.apply(service("door", type="NodePort"))
    port = namespace.kubectl("get", "service", "door", "--output=jsonpath={.spec.ports[0].nodePort}")
    url = f"http://{kube.settings.address}:{port}"
    wait_until(lambda: Asker().problem(url) is None, "the node port is open")


@pytest.mark.soak
def test_a_shared_claim_is_written_by_one_pod_and_read_by_another(namespace: Namespace) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "shared"}}]
    mounts = [{"name": "data", "mountPath": "/data"}]
    namespace.apply(claim("shared", "ReadWriteMany"))
    for name in ("writer", "reader"):
        container = busybox.container("sleep infinity", volumeMounts=mounts, securityContext={"runAsUser": 2001})
        namespace.start(busybox.pod(name, containers=[container], volumes=volumes))
    namespace.sh("writer", "echo hello > /data/file")
    assert namespace.sh("reader", "cat /data/file") == "hello"


@pytest.mark.soak
def test_a_claim_of_one_writer_outlives_its_pod(namespace: Namespace) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "state"}}]
    pod = busybox.pod(
        "one", containers=[busybox.container(volumeMounts=[{"name": "data", "mountPath": "/data"}])], volumes=volumes
    )
    namespace.apply(claim("state", "ReadWriteOnce"))
    namespace.start(pod)
    namespace.sh("one", "echo kept > /data/file")
    namespace.kubectl("delete", "pod", "one")
    namespace.start(pod)
    assert namespace.sh("one", "cat /data/file") == "kept"


@pytest.mark.soak
def test_a_volumes_folder_goes_with_its_claim(kube: EmbeddedKubernetes, namespace: Namespace) -> None:
    namespace.apply(claim("short", "ReadWriteOnce"))
    namespace.kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/short", "--timeout=30s")
    volume = namespace.kubectl("get", "pvc", "short", "--output=jsonpath={.spec.volumeName}")
    folder = kube.settings.volumes / f"{namespace.name}_short_{volume}"
    assert folder.stat().st_mode & 0o777 == 0o777
    namespace.kubectl("delete", "pvc", "short")
    wait_until(lambda: not folder.exists(), "the folder is gone")


@pytest.mark.soak
def test_what_the_storage_class_cannot_give_is_said_in_an_event(namespace: Namespace) -> None:
    namespace.apply(claim("chosen", "ReadWriteOnce", selector={"matchLabels": {"disk": "fast"}}))
    wait_until(
        lambda: "remove the selector" in namespace.kubectl("get", "events", "--output=yaml"),
        "the event",
    )


@pytest.mark.soak
def test_logs_of_a_container_are_there(namespace: Namespace) -> None:
    namespace.start(busybox.pod("talks", script=f"echo good morning; {busybox.SERVE}"))
    assert namespace.kubectl("logs", "talks") == "good morning\n"


@pytest.mark.soak
def test_without_a_policy_all_pods_reach_each_other(namespace: Namespace, other: Namespace) -> None:
    namespace.start(busybox.pod("web"))
    other.start(busybox.pod("client"))
    assert other.opens("client", namespace.address("web"))


@pytest.mark.soak
def test_a_policy_lets_in_only_those_that_it_names(namespace: Namespace, other: Namespace) -> None:
    friend = busybox.pod("friend", labels={"app": "friend"})
    namespace.start(busybox.pod("web", labels={"app": "web"}), friend, busybox.pod("stranger"))
    other.start(friend)
    web = namespace.address("web")
    namespace.apply(policy("web", "web", ingress=[{"from": [from_pods("friend")]}]))
    wait_until(lambda: not namespace.opens("stranger", web), "the policy is in force")
    assert namespace.opens("friend", web)
    assert not other.opens("friend", web)
    namespace.kubectl("delete", "networkpolicy", "web")
    wait_until(lambda: namespace.opens("stranger", web), "the policy is gone")


@pytest.mark.soak
def test_a_policy_may_name_namespaces(namespace: Namespace, other: Namespace) -> None:
    namespace.start(busybox.pod("web", labels={"app": "web"}), busybox.pod("neighbour"))
    other.start(busybox.pod("guest"))
    peers = [{"namespaceSelector": {"matchLabels": {"team": "other"}}}]
    namespace.apply(policy("web", "web", ingress=[{"from": peers}]))
    wait_until(
        lambda: not namespace.opens("neighbour", namespace.address("web")),
        "the policy is in force",
    )
    assert other.opens("guest", namespace.address("web"))


@pytest.mark.soak
def test_a_policy_may_name_ports_by_their_name_in_the_pod(namespace: Namespace) -> None:
    two = "mkdir -p /tmp/www && httpd -p 9090 -h /tmp/www && exec httpd -f -p 8080 -h /tmp/www"
    namespace.start(busybox.pod("web", script=two, labels={"app": "web"}), busybox.pod("client"))
    web = namespace.address("web")
    assert namespace.opens("client", web, 9090)
    namespace.apply(policy("web", "web", ingress=[{"ports": [{"port": "http"}]}]))
    wait_until(lambda: not namespace.opens("client", web, 9090), "the policy is in force")
    assert namespace.opens("client", web, 8080)


@pytest.mark.soak
def test_a_policy_bounds_where_a_pod_may_connect_on_its_own_node_as_well(
    kube: EmbeddedKubernetes, namespace: Namespace
) -> None:
    namespace.start(
        busybox.pod("web", labels={"app": "web"}), busybox.pod("bank"), busybox.pod("worker", labels={"app": "worker"})
    )
    rules = [
        {"to": [from_pods("web")], "ports": [{"port": 8080}]},
        {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]},
    ]
    namespace.apply(service("vip"), policy("out", "worker", policyTypes=["Egress"], egress=rules))
    wait_until(
        lambda: not namespace.opens("worker", namespace.address("bank")),
        "the policy is in force",
    )
    assert namespace.opens("worker", namespace.address("web"))
    wait_until(lambda: namespace.sh("worker", "wget -qO- http://vip") == "web", "the service answers")
    kubelet = (kube.settings.address, kube.settings.ports.kubelet)
    assert (namespace.opens("bank", *kubelet), namespace.opens("worker", *kubelet)) == (True, False)


@pytest.mark.soak
def test_a_pod_that_a_policy_shuts_off_is_still_probed_and_talks_to_itself(namespace: Namespace) -> None:
    namespace.apply(policy("all", None, policyTypes=["Ingress", "Egress"]))
    probed = busybox.container(readinessProbe={"httpGet": {"port": "http"}, "periodSeconds": 1})
    namespace.start(busybox.pod("web", containers=[probed], labels={"app": "web"}))
    assert namespace.opens("web", namespace.address("web"))


@pytest.mark.soak
def test_a_connection_continues_when_a_policy_comes(namespace: Namespace) -> None:
    listens = f"mkdir -p /tmp; sleep infinity | nc -l -p 7000 > /tmp/received & {busybox.SERVE}"
    namespace.start(busybox.pod("server", script=listens, labels={"app": "web"}), busybox.pod("stranger"))
    server = namespace.address("server")
    talks = f"(while :; do echo tick; sleep 0.2; done) | nc {server} 7000"
    namespace.start(busybox.pod("client", script=talks))
    assert namespace.opens("stranger", server, 8080)
    namespace.apply(policy("web", "web", policyTypes=["Ingress"]))
    wait_until(lambda: not namespace.opens("stranger", server, 8080), "the policy is in force")

    def received() -> int:
        return int(namespace.sh("server", "wc -l < /tmp/received"))

    before = received()
    wait_until(lambda: received() > before + 5, "more arrives")


def test_policies_are_in_force_before_a_pods_first_instruction(namespace: Namespace) -> None:
    namespace.start(busybox.pod("bank"))
    namespace.apply(policy("out", "worker", policyTypes=["Egress"]))
    bank = namespace.address("bank")
    pods = [f"early-{number}" for number in range(5)]
    script = f"nc -w 1 {bank} 8080 < /dev/null 2> /dev/null && echo open || echo shut; {busybox.SERVE}"
    namespace.start(*(busybox.pod(name, script=script, labels={"app": "worker"}) for name in pods))

    def said() -> list[str]:
        return [namespace.kubectl("logs", name).strip() for name in pods]

    wait_until(lambda: all(said()), "all have tried")
    assert said() == ["shut"] * len(pods)


@pytest.fixture
def neighbour() -> Iterator[Outside]:
    with outside() as made:
        yield made


@pytest.mark.soak
def test_pods_get_out_under_the_machines_address(namespace: Namespace, neighbour: Outside) -> None:
    namespace.start(busybox.pod("client"))
    with neighbour.listens() as port:
        namespace.sh("client", f"nc -w 5 {neighbour.address} {port} < /dev/null")
        assert neighbour.caller() == neighbour.our_address


def test_a_neighbour_with_a_route_to_us_reaches_neither_servers_nor_pods_nor_services(
    kube: EmbeddedKubernetes, namespace: Namespace, neighbour: Outside
) -> None:
    namespace.start(busybox.pod("web", labels={"app": "web"}))
    namespace.apply(service("vip"))
    vip = namespace.kubectl("get", "service", "vip", "--output=jsonpath={.spec.clusterIP}")
    with socket.create_server((neighbour.our_address, 0)) as control:
        assert neighbour.reaches(neighbour.our_address, control.getsockname()[1])
    for address, port in [
        (kube.settings.address, 6443),
        (kube.settings.address, 10250),
        (kube.settings.address, 53),
        (namespace.address("web"), 8080),
        (vip, 80),
    ]:
        assert not neighbour.reaches(address, port), (address, port)


@pytest.mark.soak
def test_the_gateway_of_the_pods_keeps_its_hardware_address_as_others_come_and_go(kube: EmbeddedKubernetes) -> None:
    ip, port = tool("ip"), "lowest-port"

    def address() -> str:
        (shown,) = json.loads(ip.run("-json", "link", "show", "dev", kube.settings.bridge))
        return str(shown["address"])

    before = address()
    ip.run("link", "add", port, "address", "02:00:00:00:00:01", "type", "veth", "peer", "name", "lowest-peer")
    try:
        ip.run("link", "set", port, "master", kube.settings.bridge)
        during = address()
    finally:
        ip.run("link", "delete", port)
    assert (during, address()) == (before, before)


def test_nothing_listens_beyond_loopback_and_the_bridge(kube: EmbeddedKubernetes) -> None:
    ours = kube._cgroup.processes()
    listening = listeners.listeners()
    holders = listeners.holders([listener.inode for listener in listening])
    found = {str(listener.address) for listener in listening if holders.get(listener.inode) in ours}
    assert found == {"127.0.0.1", kube.settings.address}


def test_what_belongs_to_the_cluster_is_for_root_only(kube: EmbeddedKubernetes) -> None:
    assert kube.settings.state.stat().st_mode & 0o077 == 0
    assert kube.kubeconfig.stat().st_mode & 0o077 == 0


def servers(kube: EmbeddedKubernetes) -> dict[str, str]:
    """Return what is on record of each server's process."""
    return {record.name: record.read_text() for record in kube.settings.run.glob("*.json")}


def test_up_again_changes_nothing(kube: EmbeddedKubernetes) -> None:
    def files() -> dict[str, int]:
        folders = (kube.settings.config, kube.settings.pki, kube.settings.kubeconfigs)
        return {str(file): file.stat().st_mtime_ns for folder in folders for file in folder.iterdir()}

    def table() -> str:
        listed = tool("nft").run("--handle", "list", "table", "ip", kube.settings.table)
        return "\n".join(line.partition("counter packets")[0] for line in listed.splitlines())

    before = servers(kube), files(), table()
    EmbeddedKubernetes().up()
    assert (servers(kube), files(), table()) == before


@pytest.mark.soak
def test_two_at_a_time_do_not_disturb_each_other(kube: EmbeddedKubernetes) -> None:
    before = servers(kube)
    command = [sys.executable, "-m", "tools.kube", "up"]
    runs = [
        subprocess.Popen(command, cwd=paths.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(3)
    ]
    said = [run.communicate(timeout=300)[0].decode() for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], said
    assert servers(kube) == before
