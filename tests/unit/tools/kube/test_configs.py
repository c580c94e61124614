"""Configuration of the servers."""

import json
import tomllib

import pytest

from tools.kube import configs
from tools.kube.settings import Settings

SETTINGS = Settings()


def test_containerd_keeps_everything_below_the_state_folder() -> None:
    config = tomllib.loads(configs.containerd(SETTINGS))
    cri = config["plugins"]["io.containerd.grpc.v1.cri"]
    runc = cri["containerd"]["runtimes"]["runc"]["options"]["Root"]
    for path in (config["root"], config["state"], config["grpc"]["address"], cri["cni"]["conf_dir"], runc):
        assert path.startswith(f"{SETTINGS.state}/")
    assert cri["netns_mounts_under_state_dir"] is True


def test_containerd_needs_no_registry_for_the_pause_image() -> None:
    cri = tomllib.loads(configs.containerd(SETTINGS))["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["sandbox_image"].startswith("localhost/")


def test_the_last_network_plugin_waits_for_policies() -> None:
    plugins = json.loads(configs.cni(SETTINGS, mtu=1400))["plugins"]
    assert [plugin["type"] for plugin in plugins] == ["bridge", "soperator-policy"]
    assert plugins[0]["mtu"] == 1400
    assert plugins[0]["ipMasq"] is False  # NAT is in our own table


def test_the_kubelet_listens_on_the_bridge_and_asks_the_api_server_who_may() -> None:
    kubelet = json.loads(configs.kubelet(SETTINGS))
    assert kubelet["address"] == SETTINGS.address
    assert kubelet["healthzBindAddress"] == "127.0.0.1"
    assert kubelet["authentication"]["anonymous"]["enabled"] is False
    assert kubelet["authorization"]["mode"] == "Webhook"


def test_pods_are_below_our_own_cgroup() -> None:
    assert json.loads(configs.kubelet(SETTINGS))["cgroupRoot"] == f"/{SETTINGS.cgroup}"


def test_the_proxy_listens_on_loopback_and_serves_node_ports_on_the_bridge_only() -> None:
    proxy = json.loads(configs.kube_proxy(SETTINGS))
    assert proxy["healthzBindAddress"].startswith("127.0.0.1:")
    assert proxy["metricsBindAddress"].startswith("127.0.0.1:")
    assert proxy["nodePortAddresses"] == [f"{SETTINGS.address}/32"]


def test_other_names_are_asked_of_the_nameservers_that_answer() -> None:
    assert "forward . 192.0.2.53 2001:db8::53 {" in configs.corefile(
        SETTINGS, nameservers=["192.0.2.53", "2001:db8::53"]
    )


def test_without_nameservers_other_names_do_not_exist_instead_of_taking_seconds() -> None:
    corefile = configs.corefile(SETTINGS, nameservers=[])
    assert "rcode NXDOMAIN" in corefile
    assert "forward" not in corefile


@pytest.mark.parametrize("nameservers", [[], ["192.0.2.53"]])
def test_addresses_are_looked_up_in_the_cluster_only(nameservers: list[str]) -> None:
    first_block = configs.corefile(SETTINGS, nameservers=nameservers).partition("\n}")[0]
    assert first_block.startswith("cluster.local in-addr.arpa ip6.arpa {")
    assert "fallthrough" not in first_block


@pytest.mark.parametrize("nameservers", [[], ["192.0.2.53"]])
def test_the_nameserver_binds_the_bridge_in_every_block(nameservers: list[str]) -> None:
    corefile = configs.corefile(SETTINGS, nameservers=nameservers)
    assert corefile.count(f"bind {SETTINGS.address}") == 2


def test_a_kubeconfig_has_one_cluster_one_user_and_one_context() -> None:
    config = json.loads(configs.kubeconfig(SETTINGS, "admin", authority="Y2E=", certificate="Y3J0", key="a2V5"))
    (context,) = config["contexts"]
    assert context["name"] == config["current-context"] == "soperator-pulumi"
    assert config["clusters"][0]["cluster"]["server"] == "https://10.244.0.1:6443"
    assert config["users"][0]["user"] == {"client-certificate-data": "Y3J0", "client-key-data": "a2V5"}
