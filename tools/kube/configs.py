"""Configuration files of the servers, rendered from the settings."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tools.kube.settings import Settings

POLICY_PLUGIN = "soperator-policy"
"""Name of the node agent's program as a network plugin."""

PAUSE_IMAGE = "localhost/soperator/pause:1"


def containerd(settings: Settings) -> str:
    """Return containerd's configuration (version 2: read by containerd 1.6 to 2.x)."""
    cri = "io.containerd.grpc.v1.cri"
    runc = f'plugins."{cri}".containerd.runtimes.runc'
    return f"""\
version = 2
root = "{settings.containerd_root}"
state = "{settings.containerd_state}"

[grpc]
  address = "{settings.containerd_socket}"

[plugins."{cri}"]
  sandbox_image = "{PAUSE_IMAGE}"
  # This machine may lack CAP_SYS_RESOURCE, without which no score can be lowered.
  restrict_oom_score_adj = true
  # Exec and logs are streamed through the kubelet: on loopback only.
  stream_server_address = "127.0.0.1"
  # In place of /run/netns, so that all mounts are below one folder.
  netns_mounts_under_state_dir = true
  # As containerd 2 has it by default: a pod that wants ports below 1024 closed to its users closes them.
  enable_unprivileged_ports = true

[plugins."{cri}".cni]
  bin_dir = "{settings.cni_plugins}"
  conf_dir = "{settings.config / "cni"}"

[plugins."{cri}".containerd]
  snapshotter = "overlayfs"

[{runc}]
  runtime_type = "io.containerd.runc.v2"

[{runc}.options]
  Root = "{settings.run / "runc"}"
"""


def cni(settings: Settings, *, mtu: int) -> str:
    """Return the pods' network: a bridge with the node's address, and the plugin that waits for policies.

    This project's nft table does NAT.
    """
    bridge = {
        "type": "bridge",
        "bridge": settings.bridge,
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "mtu": mtu,
        "ipam": {
            "type": "host-local",
            "dataDir": str(settings.cni_state),
            "ranges": [[{"subnet": str(settings.node_pods)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    policy = {"type": POLICY_PLUGIN, "socket": str(settings.agent_socket)}
    return _json({"cniVersion": "1.0.0", "name": settings.name, "plugins": [bridge, policy]})


def kubelet(settings: Settings) -> str:
    """Return the kubelet's configuration."""
    return _json(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": settings.address,
            "port": settings.ports.kubelet,
            "healthzBindAddress": "127.0.0.1",
            "healthzPort": settings.ports.kubelet_health,
            "authentication": {
                "anonymous": {"enabled": False},
                "x509": {"clientCAFile": str(settings.pki / "ca.crt")},
                "webhook": {"enabled": True},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(settings.pki / "kubelet.crt"),
            "tlsPrivateKeyFile": str(settings.pki / "kubelet.key"),
            "containerRuntimeEndpoint": f"unix://{settings.containerd_socket}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{settings.cgroup}",
            "failCgroupV1": False,
            "oomScoreAdj": 0,  # lowering it needs CAP_SYS_RESOURCE
            "failSwapOn": False,
            "clusterDNS": [settings.address],
            "clusterDomain": settings.domain,
            "resolvConf": str(settings.config / "resolv.conf"),
            "podLogsDir": str(settings.pod_logs),
            "volumePluginDir": str(settings.state / "volume-plugins"),
            "maxPods": 200,  # of the 253 addresses of a /24
            "evictionHard": {
                "nodefs.available": "1%",
                "imagefs.available": "1%",
                "memory.available": "100Mi",
            },
            # Images come from archives, not from a registry: a collected one would not come back by itself.
            # Nor by age: containerd before 1.7 does not report to the kubelet that the pause image is in use.
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "syncFrequency": "10s",
            "serializeImagePulls": False,
            "shutdownGracePeriod": "0s",
            "makeIPTablesUtilChains": False,  # kube-proxy speaks nftables
        }
    )


def kube_proxy(settings: Settings) -> str:
    """Return kube-proxy's configuration: nftables, and no sysctl touched (they may be read-only)."""
    return _json(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "clientConnection": {"kubeconfig": str(settings.kubeconfigs / "kube-proxy")},
            "clusterCIDR": str(settings.pods),
            "hostnameOverride": settings.node,
            "healthzBindAddress": f"127.0.0.1:{settings.ports.proxy_health}",
            "metricsBindAddress": f"127.0.0.1:{settings.ports.proxy_metrics}",
            "nodePortAddresses": [f"{settings.address}/32"],
            "conntrack": {
                "maxPerCore": 0,
                "min": 0,
                "tcpEstablishedTimeout": "0s",
                "tcpCloseWaitTimeout": "0s",
            },
        }
    )


def corefile(settings: Settings, *, nameservers: Sequence[str]) -> str:
    """Return CoreDNS' configuration: it answers for the cluster, and asks the machine's nameservers for other names.

    CoreDNS answers every name at once, because Slurm resolves the address 0.0.0.0 at each start, and a silent
    nameserver would stop it for 10 s: addresses are looked up in the cluster alone, and without a nameserver that
    answers, other names do not exist.
    """
    if nameservers:
        others = f"""\
    cache 30
    forward . {" ".join(nameservers)} {{
        max_concurrent 1000
        policy sequential
        failfast_all_unhealthy_upstreams
    }}"""
    else:
        others = """\
    template ANY ANY {
        rcode NXDOMAIN
    }"""
    return f"""\
{settings.domain} in-addr.arpa ip6.arpa {{
    bind {settings.address}
    errors
    kubernetes {settings.domain} in-addr.arpa ip6.arpa {{
        kubeconfig {settings.kubeconfigs / "coredns"}
        ttl 5
    }}
    loadbalance
}}
. {{
    bind {settings.address}
    errors
    health 127.0.0.1:{settings.ports.dns_health}
    ready 127.0.0.1:{settings.ports.dns_ready}
{others}
}}
"""


def kubeconfig(settings: Settings, user: str, *, authority: str, certificate: str, key: str) -> str:
    """Return a kubeconfig; `authority`, `certificate` and `key` are base64 of their PEM texts."""
    cluster = {"server": settings.api_url, "certificate-authority-data": authority}
    credentials = {"client-certificate-data": certificate, "client-key-data": key}
    return _json(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": settings.name, "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": settings.name, "context": {"cluster": settings.name, "user": user}}],
            "current-context": settings.name,
        }
    )


def _json(value: Mapping[str, Any]) -> str:
    """Return JSON, which is also YAML, and needs no library and no quoting rules."""
    return json.dumps(value, indent=2) + "\n"
