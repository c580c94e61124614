"""Servers as data: command, files read at the start, health check."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.kube.debs import Tool, tool
from tools.kube.health import Asker, socket_problem
from tools.kube.pki import Identity, KeyPair
from tools.kube.settings import Settings
from tools.kube.supervisor import Server

_LIBRARIES = "LD_LIBRARY_PATH"
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class ProgramFolders:
    """Folders of the built programs."""

    kubernetes: Path
    etcd: Path
    coredns: Path
    node: Path


def identities(settings: Settings) -> dict[str, Identity]:
    """Return the machine's identities that have a certificate, by file name."""
    loopback = "127.0.0.1"
    api_names = (
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        f"kubernetes.default.svc.{settings.domain}",
    )
    listed = (
        Identity("admin", "admin", "system:masters"),
        Identity("etcd", "etcd", names=("localhost", loopback)),
        Identity("etcd-client", "kube-apiserver"),
        Identity(
            "apiserver",
            "kube-apiserver",
            names=("localhost", *api_names, loopback, settings.api_service, settings.address),
        ),
        Identity("apiserver-kubelet", "kube-apiserver-kubelet-client"),
        Identity("controller-manager", "system:kube-controller-manager", names=(loopback,)),
        Identity("scheduler", "system:kube-scheduler", names=(loopback,)),
        Identity("kubelet", f"system:node:{settings.node}", "system:nodes", names=(settings.node, settings.address)),
        Identity("kube-proxy", "system:kube-proxy"),
        Identity("coredns", "soperator-pulumi:coredns"),
        Identity("node-agent", "soperator-pulumi:node-agent"),
    )
    here = {identity.file: identity for identity in listed}
    return here if settings.is_first else {name: here[name] for name in _ON_FURTHER_MACHINES}


_ON_FURTHER_MACHINES = ("admin", "kubelet", "kube-proxy", "coredns", "node-agent")
"""Identities of a machine without the control plane; `admin` is for its kubelet's health check."""

KUBECONFIGS = ("admin", "controller-manager", "scheduler", "kubelet", "kube-proxy", "coredns", "node-agent")
"""Identities that call the API server with a kubeconfig."""


def waves(settings: Settings, programs: ProgramFolders) -> list[list[Server]]:
    """Return groups of the machine's servers in starting order. Servers of a group do not need each other."""
    runtime, agents = [containerd(settings)], [dns(settings, programs), node_agent(settings, programs)]
    last = [kubelet(settings, programs), proxy(settings, programs)]  # no pod starts without the node agent
    if not settings.is_first:
        return [runtime, agents, last]
    return [
        [etcd(settings, programs), *runtime],
        [api_server(settings, programs)],
        [controller_manager(settings, programs), scheduler(settings, programs), *agents],
        last,
    ]


def _pair(settings: Settings, name: str) -> KeyPair:
    return KeyPair(settings.pki / f"{name}.crt", settings.pki / f"{name}.key")


def _authority(settings: Settings) -> Path:
    return settings.pki / "ca.crt"


def _kubeconfig(settings: Settings, name: str) -> Path:
    return settings.kubeconfigs / name


def _serving(settings: Settings, name: str) -> list[str]:
    pair = _pair(settings, name)
    return [f"--tls-cert-file={pair.certificate}", f"--tls-private-key-file={pair.key}"]


def etcd(settings: Settings, programs: ProgramFolders) -> Server:
    """Return the database. It listens on loopback, which other users can reach, so it requires a client certificate."""
    url = f"https://127.0.0.1:{settings.ports.etcd}"
    peer = f"https://127.0.0.1:{settings.ports.etcd_peer}"
    pair, authority = _pair(settings, "etcd"), _authority(settings)
    return Server(
        "etcd",
        [
            programs.etcd / "etcd",
            f"--name={settings.node}",
            f"--data-dir={settings.etcd_data}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster={settings.node}={peer}",
            *(f"--{side}cert-file={pair.certificate}" for side in ("", "peer-")),
            *(f"--{side}key-file={pair.key}" for side in ("", "peer-")),
            *(f"--{side}trusted-ca-file={authority}" for side in ("", "peer-")),
            "--client-cert-auth",
            "--peer-client-cert-auth",
            # The cluster is for trials and tests: a loss of power may destroy it, and each write is faster.
            "--unsafe-no-fsync",
            "--auto-compaction-mode=periodic",
            "--auto-compaction-retention=15m",
        ],
        well=lambda: Asker(authority, _pair(settings, "etcd-client")).problem(f"{url}/health"),
        reads=[authority, pair.certificate],
        environment=_environment(),
    )


def api_server(settings: Settings, programs: ProgramFolders) -> Server:
    """Return the API server, on the pod bridge, which pods can reach and other machines cannot."""
    authority, admin = _authority(settings), _pair(settings, "admin")
    etcd_client, kubelet_client = _pair(settings, "etcd-client"), _pair(settings, "apiserver-kubelet")
    return Server(
        "kube-apiserver",
        [
            programs.kubernetes / "kube-apiserver",
            f"--bind-address={settings.address}",
            f"--secure-port={settings.ports.api}",
            *_serving(settings, "apiserver"),
            f"--client-ca-file={authority}",
            f"--etcd-servers=https://127.0.0.1:{settings.ports.etcd}",
            f"--etcd-cafile={authority}",
            f"--etcd-certfile={etcd_client.certificate}",
            f"--etcd-keyfile={etcd_client.key}",
            f"--service-cluster-ip-range={settings.services}",
            f"--service-account-issuer=https://kubernetes.default.svc.{settings.domain}",
            f"--service-account-signing-key-file={settings.pki / 'service-accounts.key'}",
            f"--service-account-key-file={settings.pki / 'service-accounts.pub'}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            f"--kubelet-certificate-authority={authority}",
            f"--kubelet-client-certificate={kubelet_client.certificate}",
            f"--kubelet-client-key={kubelet_client.key}",
            "--kubelet-preferred-address-types=InternalIP",
            "--allow-privileged=true",
            "--profiling=false",
        ],
        well=lambda: Asker(authority, admin).problem(f"{settings.api_url}/readyz"),
        reads=[authority, settings.pki / "service-accounts.pub"],
        environment=_environment(),
    )


def controller_manager(settings: Settings, programs: ProgramFolders) -> Server:
    """Return the controllers, on loopback."""
    return Server(
        "kube-controller-manager",
        [
            programs.kubernetes / "kube-controller-manager",
            f"--kubeconfig={_kubeconfig(settings, 'controller-manager')}",
            "--bind-address=127.0.0.1",
            f"--secure-port={settings.ports.controller_manager}",
            *_serving(settings, "controller-manager"),
            f"--root-ca-file={_authority(settings)}",
            f"--service-account-private-key-file={settings.pki / 'service-accounts.key'}",
            "--use-service-account-credentials=true",
            "--allocate-node-cidrs=true",
            f"--cluster-cidr={settings.pods}",
            f"--service-cluster-ip-range={settings.services}",
            "--leader-elect=false",
            "--profiling=false",
        ],
        well=_well_on_loopback(settings, settings.ports.controller_manager),
        reads=[
            _kubeconfig(settings, "controller-manager"),
            _authority(settings),
            settings.pki / "service-accounts.pub",
        ],
        environment=_environment(),
    )


def scheduler(settings: Settings, programs: ProgramFolders) -> Server:
    """Return the scheduler, on loopback."""
    return Server(
        "kube-scheduler",
        [
            programs.kubernetes / "kube-scheduler",
            f"--kubeconfig={_kubeconfig(settings, 'scheduler')}",
            "--bind-address=127.0.0.1",
            f"--secure-port={settings.ports.scheduler}",
            *_serving(settings, "scheduler"),
            "--leader-elect=false",
            "--profiling=false",
        ],
        well=_well_on_loopback(settings, settings.ports.scheduler),
        reads=[_kubeconfig(settings, "scheduler")],
        environment=_environment(),
    )


def containerd(settings: Settings) -> Server:
    """Return the container runtime, with its own root, state and socket, separate from Docker's."""
    program, config = tool("containerd"), settings.config / "containerd.toml"
    return Server(
        "containerd",
        [program.path, "--config", config],
        well=lambda: socket_problem(settings.containerd_socket),
        reads=[config],
        environment=_environment(program, tool("containerd-shim-runc-v2"), tool("runc")),
    )


def kubelet(settings: Settings, programs: ProgramFolders) -> Server:
    """Return the kubelet. It is healthy if the API server reports the node as ready."""
    node = f"{settings.api_url}/api/v1/nodes/{settings.node}"
    config, kubeconfig = settings.config / "kubelet.json", _kubeconfig(settings, "kubelet")
    return Server(
        "kubelet",
        [
            programs.kubernetes / "kubelet",
            f"--config={config}",
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={settings.node}",
            f"--node-ip={settings.address}",
            f"--root-dir={settings.kubelet_root}",
        ],
        well=lambda: Asker(_authority(settings), _pair(settings, "admin")).node_problem(node),
        reads=[config, kubeconfig, settings.pki / "kubelet.crt", settings.config / "resolv.conf"],
        environment=_environment(),
    )


def proxy(settings: Settings, programs: ProgramFolders) -> Server:
    """Return the proxy for services, which uses nftables."""
    config = settings.config / "kube-proxy.json"
    return Server(
        "kube-proxy",
        [programs.kubernetes / "kube-proxy", f"--config={config}"],
        well=lambda: Asker().problem(f"http://127.0.0.1:{settings.ports.proxy_health}/livez"),
        reads=[config, _kubeconfig(settings, "kube-proxy")],
        environment=_environment(tool("nft"), tool("conntrack")),
    )


def dns(settings: Settings, programs: ProgramFolders) -> Server:
    """Return the nameserver, on the pod bridge."""
    config = settings.config / "Corefile"
    return Server(
        "coredns",
        [programs.coredns / "coredns", "-conf", config],
        well=lambda: Asker().problem(f"http://127.0.0.1:{settings.ports.dns_ready}/ready"),
        reads=[config, _kubeconfig(settings, "coredns")],
        environment=_environment(),
    )


def node_agent(settings: Settings, programs: ProgramFolders) -> Server:
    """Return the node agent, which enforces NetworkPolicies and, on the first machine, makes volumes for claims."""
    nft = tool("nft")
    return Server(
        "node-agent",
        [
            programs.node / "node",
            f"--kubeconfig={_kubeconfig(settings, 'node-agent')}",
            f"--health=127.0.0.1:{settings.ports.node_agent}",
            f"--nft={nft.path}",
            f"--table={settings.table}_policy",
            f"--socket={settings.agent_socket}",
            *([f"--volumes={settings.volumes}"] if settings.is_first else []),
        ],
        well=lambda: Asker().problem(f"http://127.0.0.1:{settings.ports.node_agent}/healthz"),
        reads=[_kubeconfig(settings, "node-agent")],
        environment=_environment(nft),
    )


def _well_on_loopback(settings: Settings, port: int) -> Callable[[], str | None]:
    return lambda: Asker(_authority(settings)).problem(f"https://127.0.0.1:{port}/healthz")


def _environment(*tools: Tool) -> dict[str, str]:
    """Return a server's whole environment, without variables of the user's shell, which may hold secrets."""
    folders = dict.fromkeys(str(program.path.parent) for program in tools)
    environment = {"PATH": ":".join([*folders, _SYSTEM_PATH]), "HOME": "/root"}
    for program in tools:
        if _LIBRARIES in program.environment:  # all unpacked tools have the same
            environment[_LIBRARIES] = program.environment[_LIBRARIES]
    return environment
