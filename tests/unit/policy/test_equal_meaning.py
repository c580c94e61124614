"""Inputs of equal meaning have the same verdict, however they are split, merged, renamed, or ordered."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.policy.accounting_records import ACCOUNTING_DUMPS
from soperator_pulumi.policy.charts import DRIVER_UPGRADES
from soperator_pulumi.policy.cluster_settings import SLURM_SETTINGS
from soperator_pulumi.policy.credentials import SECRETS_IN_SECRETS
from soperator_pulumi.policy.exposure import JOINT_INGRESS, OPEN_EGRESS, PUBLIC_LOGINS
from soperator_pulumi.policy.kept_data import KEPT_DATA, KEPT_VOLUMES
from soperator_pulumi.policy.nodes_in_service import NODES_IN_SERVICE
from soperator_pulumi.policy.pod_rights import HOST_PATHS, PRIVILEGED_PODS
from soperator_pulumi.policy.value_tree import UNKNOWN
from soperator_pulumi.policy.view import ResourceView
from soperator_pulumi.render.egress import LINK_LOCAL, PRIVATE, holes
from tests.unit.policy.views import a_pod, a_resource_of_ours, an_object, below, paths

VARIABLES = {"WANDB_API_KEY": "0123abcd", "HF_TOKEN": "abc", "PAD_TOKEN": "PAD", "MAX_TOKEN": "4096", "MODE": "train"}
NETWORKS = ("0.0.0.0/1", "128.0.0.0/1", "10.0.0.0/8", "198.51.100.0/24", "2000::/3", "fc00::/7")
SELECTORS: tuple[dict[str, Any], ...] = (
    {"matchLabels": {"app": "a"}},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["b", "a"]}]},
    {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["b"]}]},
    {"matchExpressions": [{"key": "other", "operator": "DoesNotExist"}]},
    {
        "matchExpressions": [
            {"key": "app", "operator": "Exists"},
            {"key": "app", "operator": "In", "values": ["a"]},
        ]
    },
    {"matchLabels": {"app": "a"}, "matchExpressions": UNKNOWN},
    {},
)
"""Selectors that pods with only the label `app: a` have in common."""
OPEN_CIDRS = (
    "0.0.0.0/0",
    " 0.0.0.0/0 ",
    "000.0.0.0/0",
    "0.0.0.0/00",
    "::ffff:0.0.0.0/96",
    "::ffff:0:0/96",
    "7.0.0.0/0",
)
LINES = (
    "SlurmdTimeout=5",
    "SlurmdTimeout=300",
    "PartitionName=a State=DOWN",
    "PartitionName=b State=UP",
    "KillWait=30",
)


@given(st.integers(1, 200), st.integers(0, 100))
def test_a_percentage_is_the_number_of_nodes_that_it_stands_for(nodes: int, percent: int) -> None:
    def found(share: int | str) -> list[str]:
        update = {"max_unavailable": share}
        ready = {"replicas": float(nodes), "max_unready": share, "wait_until_ready": True, "rolling_update": update}
        return paths(NODES_IN_SERVICE, a_resource_of_ours("NodesReady", **ready))

    assert found(f"{percent}%") == found(percent * nodes // 100)


@given(st.lists(st.sampled_from(sorted(VARIABLES)), unique=True, min_size=1), st.data())
def test_a_credential_is_one_in_every_place_and_order_of_variables(names: list[str], data: st.DataObject) -> None:
    def refused(given_names: Sequence[str]) -> list[bool]:
        env = [{"name": name, "value": VARIABLES[name]} for name in given_names]
        pairs = [f"{name}={VARIABLES[name]}" for name in given_names]
        files = {"settings": "\n".join(pairs)}
        manifest = "\n".join(f"- name: {name}\n  value: {VARIABLES[name]}" for name in given_names)
        values = {name.lower(): VARIABLES[name] for name in given_names}
        options = [f"--{name.lower().replace('_', '-')} {VARIABLES[name]}" for name in given_names]
        return [
            bool(paths(SECRETS_IN_SECRETS, resource))
            for resource in (
                a_pod({"name": "a", "env": env}),
                a_pod(*({"name": "a", "env": [variable]} for variable in env)),
                a_pod({"name": "a", "args": [f"environment={pair}" for pair in pairs]}),
                a_pod({"name": "a", "command": ["sh", "-c", " ".join([*pairs, "train"])]}),
                a_pod({"name": "a", "command": ["sh", "-c", " ".join(["train", *options])]}),
                a_pod({"name": "a", "args": [json.dumps({"job": {"env": values}})]}),
                an_object("core/v1:ConfigMap", {"data": files}),
                an_object("core/v1:ConfigMap", {"metadata": {"annotations": {"a.example/env": "\n".join(pairs)}}}),
                an_object("core/v1:ConfigMap", {"metadata": {"annotations": values}}),
                an_object("core/v1:ConfigMap", {"data": {"pod.yaml": f"env:\n{manifest}"}}),
                an_object("core/v1:ConfigMap", {"data": {"job.json": json.dumps({"job": {"env": values}})}}),
                an_object("core/v1:ConfigMap", {"data": {"jobs.yaml": yaml.safe_dump([{"env": [values]}])}}),
                an_object("helm.sh/v3:Release", {"chart": "a", "values": {"env": values}}),
                an_object("helm.sh/v3:Release", {"chart": "a", "values": {"config": "\n".join(["[env]", *pairs])}}),
            )
        ]

    verdicts = [*refused(names), *refused(data.draw(st.permutations(names)))]
    assert set(verdicts) == {bool({"WANDB_API_KEY", "HF_TOKEN"} & {*names})}


@given(st.lists(st.sampled_from(NETWORKS), min_size=1, max_size=6), st.data())
def test_egress_is_as_open_in_one_rule_as_in_several_rules_and_policies(cidrs: list[str], data: st.DataObject) -> None:
    def policy(*rules: Sequence[str]) -> Any:
        egress = [{"to": [{"ipBlock": {"cidr": cidr}} for cidr in rule]} for rule in rules if rule]
        spec = {"podSelector": {"matchLabels": {"app": "a"}}, "egress": egress}
        return an_object("networking.k8s.io/v1:NetworkPolicy", {"metadata": {"namespace": "hpc"}, "spec": spec})

    order = data.draw(st.permutations(cidrs))
    cut = data.draw(st.integers(0, len(order)))
    first, second = order[:cut], order[cut:]
    whole = bool(paths(OPEN_EGRESS, policy(cidrs)))
    assert bool(paths(OPEN_EGRESS, policy(first, second))) is whole
    assert bool(paths(OPEN_EGRESS, policy(first), policy(second))) is whole


@given(st.sets(st.sampled_from(LINES)).map(sorted).flatmap(st.permutations))
def test_the_order_and_the_case_of_slurm_s_settings_change_no_verdict(lines: list[str]) -> None:
    def refused(text: str) -> bool:
        return bool(paths(SLURM_SETTINGS, a_resource_of_ours("ConfigFiles", files={"slurm.conf": text})))

    parameters = [line.replace("SlurmdTimeout", "slurmdtimeout").replace("State=", "state=") for line in lines]
    if not {"SlurmdTimeout=5", "SlurmdTimeout=300"} <= {*lines}:  # the last of two counts
        assert refused("\n".join(lines)) is refused("\n".join(reversed(parameters)))


@given(st.sampled_from(OPEN_CIDRS), st.lists(st.sampled_from(NETWORKS[2:4]), unique=True), st.data())
def test_a_range_is_as_open_as_kubernetes_reads_it(cidr: str, others: list[str], data: st.DataObject) -> None:
    cidrs = data.draw(st.permutations([cidr, *others]))
    peers = [{"ipBlock": {"cidr": item}} for item in cidrs]
    balancer = {"spec": {"type": "LoadBalancer", "loadBalancerSourceRanges": cidrs}}
    assert paths(PUBLIC_LOGINS, an_object("core/v1:Service", balancer))
    assert paths(
        PUBLIC_LOGINS, an_object("networking.k8s.io/v1:NetworkPolicy", {"spec": {"ingress": [{"from": peers}]}})
    )
    both = [{"to": [*peers, {"ipBlock": {"cidr": "10.0.0.0/8"}}]}]
    assert paths(OPEN_EGRESS, an_object("networking.k8s.io/v1:NetworkPolicy", {"spec": {"egress": both}}))


def network_policy(selector: object, namespace: str = "hpc", **spec: object) -> ResourceView:
    props = {"metadata": {"namespace": namespace}, "spec": {"podSelector": selector, **spec}}
    return an_object("networking.k8s.io/v1:NetworkPolicy", props)


def opening(egress: str, ingress: str) -> dict[str, Any]:
    """Return rules that open one range of addresses, without private ones, and admit another."""
    block = {"cidr": egress, "except": [*holes(egress, [*PRIVATE, *LINK_LOCAL])]}
    return {"egress": [{"to": [{"ipBlock": block}]}], "ingress": [{"from": [{"ipBlock": {"cidr": ingress}}]}]}


LOW, HIGH = opening("128.0.0.0/1", "0.0.0.0/2"), opening("10.0.0.0/8", "64.0.0.0/2")


@given(st.sampled_from(SELECTORS), st.sampled_from(SELECTORS))
def test_networkpolicies_add_up_however_they_select_the_same_pods(first: object, second: object) -> None:
    both = [network_policy(first, **LOW), network_policy(second, **HIGH)]
    elsewhere = [both[0], network_policy(second, "other", **HIGH)]
    for policy in (OPEN_EGRESS, JOINT_INGRESS):
        assert paths(policy, *both)
        assert not paths(policy, *elsewhere)


def test_networkpolicies_of_different_pods_do_not_add_up() -> None:
    any_app = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    low, high = ({"matchLabels": {"app": app}} for app in "ab")
    apart = [network_policy(low, **LOW), network_policy(high, **HIGH), network_policy(any_app)]
    assert not paths(OPEN_EGRESS, *apart)
    assert not paths(JOINT_INGRESS, *apart)


@given(st.sampled_from([None, "0.0.0.0/0", "169.254.20.10/32", "::/0"]), st.sampled_from([53, 5353]), st.booleans())
def test_name_servers_may_be_everywhere_however_a_rule_says_so(cidr: str | None, port: int, as_range: bool) -> None:
    ports = [{"port": port, "protocol": kind, **({"endPort": port} if as_range else {})} for kind in ("UDP", "TCP")]
    peers = {"to": [{"ipBlock": {"cidr": cidr}}]} if cidr else {}
    rules = [{**peers, "ports": ports}, {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]
    assert not paths(OPEN_EGRESS, network_policy({}, egress=rules))
    assert paths(OPEN_EGRESS, network_policy({}, egress=[{**peers, "ports": [*ports, {"port": 443}]}]))


def volume(**spec: object) -> ResourceView:
    return an_object("core/v1:PersistentVolume", {"metadata": {"name": "v"}, "spec": spec})


def storage_class(**annotations: str) -> ResourceView:
    return an_object("storage.k8s.io/v1:StorageClass", {"metadata": {"name": "s", "annotations": annotations}})


def claim(annotations: object = None, **spec: object) -> ResourceView:
    metadata = {"name": "c", "namespace": "hpc", "annotations": annotations or {}}
    return an_object("core/v1:PersistentVolumeClaim", {"metadata": metadata, "spec": spec}, protect=True)


OLD_CLASS = {"volume.beta.kubernetes.io/storage-class": "s"}
DELETE = {"persistentVolumeReclaimPolicy": "Delete"}


@pytest.mark.parametrize(
    "resources",
    [
        [volume(**DELETE, claimRef={"name": "c"}), claim()],
        [volume(persistentVolumeReclaimPolicy="Recycle", claimRef={"name": "c"}), claim()],
        [volume(**DELETE), claim(volumeName="v")],
        [volume(**DELETE, storageClassName="s"), claim(storageClassName="s")],
        [volume(**DELETE, storageClassName="s"), claim(OLD_CLASS)],
        [volume(**DELETE), claim(storageClassName="")],
        [volume(**DELETE), claim(storageClassName="", volumeName=UNKNOWN)],
        [storage_class(), claim(storageClassName="s")],
        [storage_class(), claim(OLD_CLASS)],
        [storage_class(**{"storageclass.kubernetes.io/is-default-class": "true"}), claim()],
        [storage_class(**{"storageclass.beta.kubernetes.io/is-default-class": "true"}), claim()],
        [
            an_object(
                "storage.k8s.io/v1:StorageClass",
                {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}},
            ),
            claim(),
        ],
    ],
)
def test_data_that_goes_with_its_claim_is_refused_however_the_two_are_tied(resources: list[ResourceView]) -> None:
    assert len([*paths(KEPT_DATA, *resources), *paths(KEPT_VOLUMES, *resources)]) == 1


@pytest.mark.parametrize(
    "resources",
    [
        [volume(**DELETE), claim(volumeName="another")],
        [volume(**DELETE, storageClassName="s"), claim(volumeName="another", storageClassName="s")],
        [volume(**DELETE), claim()],
        [
            volume(**DELETE, storageClassName="s"),
            claim({**OLD_CLASS, **dict.fromkeys(OLD_CLASS, "t")}, storageClassName="s"),
        ],
        [volume(), claim(volumeName="v")],
        [volume(persistentVolumeReclaimPolicy="Retain"), claim(volumeName="v")],
        [storage_class(), claim()],
    ],
)
def test_volumes_that_no_claim_gets_or_that_keep_their_data_pass(resources: list[ResourceView]) -> None:
    assert not paths(KEPT_DATA, *resources)
    assert not paths(KEPT_VOLUMES, *resources)


@given(st.permutations(["a", "b", "c"]), st.sampled_from(["initContainers", "containers", "ephemeralContainers"]))
def test_a_right_is_refused_in_a_container_of_any_kind_and_place(names: list[str], kind: str) -> None:
    contexts: dict[str, dict[str, Any]] = {
        "a": {"privileged": True},
        "b": {"capabilities": {"add": ["cap_sys_admin"]}},
        "c": {"seccompProfile": {"type": "Unconfined"}},
    }
    for name, context in contexts.items():
        found = [{"name": other, **({"securityContext": context} if other == name else {})} for other in names]
        assert len(paths(PRIVILEGED_PODS, a_pod(**{"containers": [], kind: found}))) == 1
    assert len(paths(PRIVILEGED_PODS, a_pod(*({"name": name} for name in names), securityContext=contexts["c"]))) == 1


@pytest.mark.parametrize("value", [True, "true", "True"])
def test_a_chart_s_values_are_true_as_a_boolean_and_as_text(value: object) -> None:
    values = {"securityContext": {"privileged": value}, "driver": {"upgradePolicy": {"autoUpgrade": value}}}
    release = an_object("helm.sh/v3:Release", {"chart": "a", "values": values})
    assert paths(PRIVILEGED_PODS, release) == ["values.securityContext.privileged"]
    assert paths(DRIVER_UPGRADES, release) == ["values.driver.upgradePolicy.autoUpgrade"]


@pytest.mark.parametrize("allowed", ["/mnt/scratch", "/mnt/scratch/"])
@pytest.mark.parametrize("path", ["/mnt/scratch", "/mnt/scratch/", "/mnt//scratch/."])
def test_an_allowed_path_is_that_directory_in_every_spelling(allowed: str, path: str) -> None:
    def found(path: str) -> list[str]:
        volumes = [{"name": "v", "hostPath": {"path": path}}]
        return paths(HOST_PATHS, a_pod({"name": "a"}, volumes=volumes), allowed={allowed: "The disks are local."})

    assert not found(path)
    assert found("/mnt")
    assert found("/mnt/scratch/other")


@pytest.mark.parametrize(
    "text", ["SlurmdTimeout=5", "Slurmd\\\nTimeout=5", "SlurmdTimeout = \\  \n 5", "slurmdtimeout=005"]
)
def test_a_line_that_continues_is_one_setting(text: str) -> None:
    def refused(text: str) -> bool:
        return bool(paths(SLURM_SETTINGS, a_resource_of_ours("ConfigFiles", files={"slurm.conf": text})))

    assert refused(text)
    assert refused(f"# a comment does not continue \\\n{text}")
    assert not refused(f"# {text.splitlines()[0]}\nKillWait=30")


SCHEDULES = {
    7: ("@weekly", "0 0 * * 0", "0 0 * * 7", "0 0 ? * SUN", "10 4 * JAN-DEC sun"),
    31: ("@monthly", "0 0 1 * *", "0 0 1 */1 *"),
}


@pytest.mark.parametrize(("days", "schedule"), [(days, text) for days, texts in SCHEDULES.items() for text in texts])
@pytest.mark.parametrize("kept", [3, 3.0, "3"])
def test_dumps_are_as_rare_as_their_days_and_as_few_as_their_number(days: int, schedule: str, kept: object) -> None:
    env = [{"name": "A", "value": "1"}, {"name": "KEEP", "value": kept}]
    containers = [{"name": "a"}, {"name": "b", "env": env}]
    template = {"spec": {"template": {"spec": {"containers": containers}}}}
    job = {"metadata": {"namespace": "hpc"}, "spec": {"schedule": schedule, "jobTemplate": template}}
    dumps = below("AccountingDumps", an_object("batch/v1:CronJob", job))
    assert bool(paths(ACCOUNTING_DUMPS, dumps)) is (days > 7)
    assert paths(ACCOUNTING_DUMPS, dumps, longest_days=days, minimum_kept=3) == []
    assert len(paths(ACCOUNTING_DUMPS, dumps, longest_days=days, minimum_kept=4)) == 1
