"""The nft table of the pods' network, as text."""

from pathlib import Path

from tools.kube import nftables, pod_network
from tools.kube.settings import Settings

SETTINGS = Settings()


def test_the_table_is_replaced_in_one_step() -> None:
    script = pod_network.table(SETTINGS)
    assert script.startswith("table ip soperator_pulumi {}\ndelete table ip soperator_pulumi\n")


def test_pods_leave_under_the_machines_address_and_talk_to_each_other_under_their_own() -> None:
    assert 'ip saddr 10.244.0.0/16 ip daddr != 10.244.0.0/16 oifname != "soperator0" masquerade' in pod_network.table(
        SETTINGS
    )


def test_pods_and_services_are_not_reached_from_outside() -> None:
    rule = 'iifname != "lo" iifname != "soperator0*" ip daddr { 10.244.0.0/16, 10.96.0.0/16 } counter drop'
    assert rule in pod_network.table(SETTINGS)


def test_a_machine_that_did_not_forward_does_not_become_a_router() -> None:
    script = pod_network.table(SETTINGS, not_routed=["eth0", "eth1"])
    assert 'iifname { "eth0", "eth1" } oifname { "eth0", "eth1" } counter drop' in script
    assert "chain forward" not in pod_network.table(SETTINGS)


def test_every_table_of_ours_and_of_kube_proxy_is_removed() -> None:
    assert {name for _, name in nftables.own_tables(SETTINGS)} == {
        "soperator_pulumi",
        "soperator_pulumi_policy",
        "kube-proxy",
    }


def test_only_hardware_counts_as_the_machines_own_interface(tmp_path: Path) -> None:
    for name in ("eth0/device", "docker0", "veth1", "lo"):
        (tmp_path / name).mkdir(parents=True)
    assert pod_network.hardware(SETTINGS, tmp_path) == ["eth0"]


def test_links_between_machines_of_the_lab_are_routed_though_they_are_hardware(tmp_path: Path) -> None:
    for further in (SETTINGS.further(2), SETTINGS.further(3)):
        (tmp_path / further.link / "device").mkdir(parents=True)
    assert pod_network.hardware(SETTINGS, tmp_path) == []
