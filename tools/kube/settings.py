"""Addresses, ports, names and folders of one machine of an embedded Kubernetes."""

from dataclasses import dataclass, field, replace
from hashlib import sha256
from ipaddress import IPv4Network
from pathlib import Path

from tools import paths
from tools.console import UserError

_LONGEST_STATE_PATH = 64
"""Longest path of the state folder. A UNIX socket's path is limited to 107 bytes, containerd's longest is 40 bytes
below the state folder, and a further machine's state folder is 3 bytes longer."""


@dataclass(frozen=True)
class ServerPorts:
    """TCP ports of the servers: `api` and `kubelet` on the pod bridge (and the nameserver's 53), others on loopback."""

    api: int = 6443
    kubelet: int = 10250
    etcd: int = 12379
    etcd_peer: int = 12380
    kubelet_health: int = 10248
    proxy_metrics: int = 10249
    proxy_health: int = 10256
    controller_manager: int = 10257
    scheduler: int = 10259
    dns_health: int = 10253
    dns_ready: int = 10254
    node_agent: int = 10255


@dataclass(frozen=True)
class Settings:
    """Settings of one machine of an embedded Kubernetes. The defaults are those of `make up`, for its first machine."""

    state: Path = field(default_factory=lambda: paths.state_dir() / "kube")
    """Folder of the running cluster: data, disks, certificates, logs, sockets."""

    name: str = "soperator-pulumi"
    """Name of the nft tables, the pods' network and the kubeconfig's entries, which marks them as this cluster's."""

    number: int = 1
    """Number of the machine. The first one is this machine itself, with the control plane and all volumes."""

    bridge: str = "soperator0"
    pods: IPv4Network = field(default=IPv4Network("10.244.0.0/16"))
    services: IPv4Network = field(default=IPv4Network("10.96.0.0/16"))
    domain: str = "cluster.local"
    ports: ServerPorts = ServerPorts()

    def __post_init__(self) -> None:
        """Refuse a state folder whose path is too long for its sockets."""
        longest = _LONGEST_STATE_PATH + (0 if self.is_first else len("/n2"))
        if len(str(self.state)) > longest:
            raise UserError(
                f"the state folder {self.state} has {len(str(self.state))} characters, and sockets below it allow "
                f"{longest}. Set XDG_STATE_HOME to a shorter path"
            )

    def further(self, number: int) -> "Settings":
        """Return the settings of a further machine, seen from the first one."""
        return replace(self, state=self.state / f"n{number}", number=number)

    @property
    def is_first(self) -> bool:
        """True for the machine that has the control plane and all volumes."""
        return self.number == 1

    @property
    def node(self) -> str:
        """Name of the machine, in the cluster and as its host name."""
        return f"n{self.number}"

    @property
    def link(self) -> str:
        """Interface of the first machine to this further machine."""
        return f"{self.bridge}-{self.node}"

    @property
    def loose_end(self) -> str:
        """Interface of the first machine that stands in for the link to this machine while it is powered off."""
        return f"{self.bridge}-x{self.number}"

    @property
    def uplink(self) -> str:
        """Interface of a further machine to the first machine."""
        return f"{self.bridge}-n1"

    @property
    def node_pods(self) -> IPv4Network:
        """Addresses of the machine's pods: a block of 256, by its number, counted from 1."""
        return IPv4Network((int(self.pods.network_address) + 256 * (self.number - 1), 24))

    @property
    def address(self) -> str:
        """Address of the node: the bridge's own, so that no other interface of the machine is needed or exposed."""
        return str(self.node_pods[1])

    @property
    def first_address(self) -> str:
        """Address of the first machine."""
        return str(self.pods[1])

    @property
    def api_url(self) -> str:
        """URL of the API server, for pods and for programs on this machine."""
        return f"https://{self.first_address}:{self.ports.api}"

    @property
    def api_service(self) -> str:
        """Virtual address of `kubernetes.default`, which is the first of the services' range."""
        return str(self.services[1])

    def listens(self) -> list[tuple[str, str, int, str]]:
        """Return the listeners of all servers: protocol, address, port, server."""
        loopback, ports = "127.0.0.1", self.ports
        return [
            ("tcp", self.address, ports.api, "the API server"),
            ("tcp", self.address, ports.kubelet, "the kubelet"),
            ("tcp", self.address, 53, "the nameserver"),
            ("udp", self.address, 53, "the nameserver"),
            ("tcp", loopback, ports.etcd, "etcd"),
            ("tcp", loopback, ports.etcd_peer, "etcd"),
            ("tcp", loopback, ports.kubelet_health, "the kubelet's health check"),
            ("tcp", loopback, ports.proxy_metrics, "kube-proxy's metrics"),
            ("tcp", loopback, ports.proxy_health, "kube-proxy's health check"),
            ("tcp", loopback, ports.controller_manager, "the controller manager"),
            ("tcp", loopback, ports.scheduler, "the scheduler"),
            ("tcp", loopback, ports.dns_health, "the nameserver's health check"),
            ("tcp", loopback, ports.dns_ready, "the nameserver's readiness"),
            ("tcp", loopback, ports.node_agent, "the node agent's health check"),
        ]

    @property
    def table(self) -> str:
        """Prefix of the nft tables' names (nft allows no dash)."""
        return self.name.replace("-", "_")

    @property
    def cgroup(self) -> str:
        """Cgroup of all processes: one per state folder, so that no cluster kills another's."""
        return f"{self.name}-{sha256(str(self.state).encode()).hexdigest()[:8]}"

    @property
    def kubeconfig(self) -> Path:
        """File of the administrator's kubeconfig."""
        return self.kubeconfigs / "admin"

    @property
    def kubeconfigs(self) -> Path:
        """Folder of kubeconfigs, one per identity that calls the API server."""
        return self.state / "kubeconfigs"

    @property
    def pki(self) -> Path:
        """Folder of certificates and keys."""
        return self.state / "pki"

    @property
    def config(self) -> Path:
        """Folder of the servers' configuration files."""
        return self.state / "config"

    @property
    def logs(self) -> Path:
        """Folder of log files, one per server."""
        return self.state / "logs"

    @property
    def pod_logs(self) -> Path:
        """Folder of containers' logs."""
        return self.state / "pod-logs"

    @property
    def run(self) -> Path:
        """Folder of the servers' process records, and of sockets."""
        return self.state / "run"

    @property
    def containerd_socket(self) -> Path:
        """Socket of containerd."""
        return self.run / "containerd.sock"

    @property
    def containerd_state(self) -> Path:
        """Folder of containerd for running containers."""
        return self.run / "containerd"

    @property
    def containerd_root(self) -> Path:
        """Folder of images and snapshots."""
        return self.state / "containerd"

    @property
    def kubelet_root(self) -> Path:
        """Folder of pods' volumes."""
        return self.state / "kubelet"

    @property
    def etcd_data(self) -> Path:
        """Folder of etcd's data."""
        return self.state / "etcd"

    @property
    def volumes(self) -> Path:
        """Folder of PersistentVolumes' folders."""
        return self.state / "volumes"

    @property
    def agent_socket(self) -> Path:
        """Socket of the node agent for the pods' network plugin."""
        return self.run / "node-agent.sock"

    @property
    def cni_plugins(self) -> Path:
        """Folder of network plugins: the distribution's and this project's."""
        return self.state / "cni-plugins"

    @property
    def cni_state(self) -> Path:
        """Folder of the addresses given to pods."""
        return self.state / "cni"
