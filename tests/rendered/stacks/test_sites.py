"""Stacks of whole sites: rendered, judged, and preflighted on a fake Kubernetes with their kinds of machines.

What machines can allocate, and what DaemonSets request, is made up in the size of real ones.
"""

import functools
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from soperator_pulumi.kube.verbs import Json, Kube
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, Severity
from soperator_pulumi.operations.preflight.preflight_run import Preflight
from soperator_pulumi.policy.recorded import judge
from soperator_pulumi.stack import program
from soperator_pulumi.stack.preflight_plan import planned_clusters
from soperator_pulumi.testing import Deployment, deploy
from tests.fakes.small_world import SmallWorld
from tests.rendered.cluster.clusters import provided
from tools import paths
from tools.engine import Target, project

FOLDER = paths.ROOT / "stacks" / "sites"
GPU, EFA, ROCE = "nvidia.com/gpu", "vpc.amazonaws.com/efa", "rdma/roce"
PAGES = "hugepages-2Mi"


@dataclass(frozen=True)
class Machines:
    """Machines of one kind."""

    number: int
    label: str
    cpus: int
    """CPUs of a machine. The kubelet has half of one."""
    gib: int
    """Memory that a machine can allocate."""
    devices: Mapping[str, str]


@dataclass(frozen=True)
class Site:
    """A Kubernetes of the kind that a stack is for."""

    machines: Sequence[Machines]
    classes: Sequence[str]
    drivers: Sequence[str] = ()
    made: bool = False
    """True if the namespace is there beforehand."""
    secrets: Sequence[str] = ()
    daemon_cpus: str = "900m"
    """CPUs that DaemonSets request on every machine."""


SITES = {
    "eks-h100": Site(
        [
            Machines(
                128,
                "eks.amazonaws.com/nodegroup=slurm-h100",
                192,
                1990,
                {GPU: "8", EFA: "32", PAGES: "10256Mi"},
            ),
            Machines(12, "eks.amazonaws.com/nodegroup=slurm-cpu", 32, 59, {}),
        ],
        classes=["gp3"],
        drivers=["fsx.csi.aws.com"],
        made=True,
        secrets=["slurmdbd-password"],
    ),
    "metal-b200": Site(
        [Machines(64, "pool=b200", 224, 1950, {GPU: "8", ROCE: "63"}), Machines(4, "pool=services", 64, 500, {})],
        classes=["longhorn", "weka-slurm"],
        daemon_cpus="8500m",  # WEKA's client has 8
    ),
    "gke-trial": Site(
        [
            Machines(2, "cloud.google.com/gke-nodepool=slurm-h100", 208, 1800, {GPU: "8"}),
            Machines(4, "cloud.google.com/gke-nodepool=slurm-cpu", 32, 120, {}),
        ],
        classes=["premium-rwo"],
        drivers=["filestore.csi.storage.gke.io"],
    ),
}


@functools.cache
def deployed(*config: tuple[str, str]) -> Deployment:
    return deploy(program.run, config=dict(config), outputs=provided)


def config_of(site: str, folder: Path) -> dict[str, str]:
    """Return the configuration of a site's stack in a project like ours."""
    (folder / "stacks").mkdir()
    shutil.copy(paths.ROOT / "Pulumi.yaml", folder)
    shutil.copy(FOLDER / f"{site}.yaml", folder / "stacks" / "Pulumi.mine.yaml")
    return dict(project.load(Target(project=folder, stack="mine", state=folder)).config)


def machines_of(site: Site) -> Iterator[Json]:
    for kind in site.machines:
        key, _, value = kind.label.partition("=")
        for number in range(kind.number):
            name = f"{value}-{number}"
            yield {
                "metadata": {"name": name, "labels": {key: value, "kubernetes.io/hostname": name}},
                "status": {
                    "capacity": {"cpu": str(kind.cpus)},
                    "allocatable": {
                        "cpu": f"{kind.cpus * 1000 - 500}m",
                        "memory": f"{kind.gib}Gi",
                        "pods": "110",
                        **kind.devices,
                    },
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "nodeInfo": {"kubeletVersion": "v1.33.2"},
                },
            }


class SiteWorld(SmallWorld):
    """The Kubernetes of a site, without a cluster of Slurm."""

    def __init__(self, site: Site, planned: Sequence[Json]) -> None:
        super().__init__()
        self.planned = planned
        container = {"name": "agent", "resources": {"requests": {"cpu": site.daemon_cpus}}}
        agents = {"metadata": {"name": "agents"}, "spec": {"template": {"spec": {"containers": [container]}}}}
        balanced = {
            "metadata": {"name": "web"},
            "spec": {"type": "LoadBalancer"},
            "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.9"}]}},
        }
        levels = {"pod-security.kubernetes.io/enforce": "privileged"}
        namespaces = {"/api/v1/namespaces/hpc": {"metadata": {"name": "hpc", "labels": levels}}} if site.made else {}
        secret = {"metadata": {"name": "x"}, "data": {"password": "cGFzc3dvcmQ="}}
        self.objects |= {
            "/apis/apps/v1/daemonsets/agents": agents,
            "/api/v1/services/web": balanced,
            **namespaces,
            **{f"/api/v1/nodes/{machine['metadata']['name']}": machine for machine in machines_of(site)},
            **{f"/apis/storage.k8s.io/v1/storageclasses/{name}": {"metadata": {"name": name}} for name in site.classes},
            **{f"/apis/storage.k8s.io/v1/csidrivers/{name}": {"metadata": {"name": name}} for name in site.drivers},
            **{f"/api/v1/namespaces/hpc/secrets/{name}": secret for name in site.secrets},
        }

    def get(self, path: str) -> Json | None:
        """Return an object, or the answer of discovery: all planned kinds are served."""
        if path == "/version":
            return {"gitVersion": "v1.33.2"}
        version = path.removeprefix("/apis/").removeprefix("/api/")
        served = sorted({str(body["kind"]) for body in self.planned if body["apiVersion"] == version})
        if served:
            return {"resources": [{"kind": kind, "name": f"{kind.lower()}s", "namespaced": True} for kind in served]}
        return super().get(path)


@pytest.fixture(params=sorted(SITES))
def site(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def found(name: str, folder: Path, site: Site | None = None) -> list[Diagnosis]:
    """Return the findings of a preflight that starts no pods."""
    (planned,) = planned_clusters(deployed(*config_of(name, folder).items()))
    world = SiteWorld(site or SITES[name], planned.objects)
    return Preflight(cast("Kube", world), planned, lambda _: None, probes=()).findings()


def refusals(findings: Sequence[Diagnosis]) -> list[str]:
    return [f"{item.path}: {item.found}" for item in findings if item.severity is Severity.REFUSED]


def test_every_site_has_a_stack() -> None:
    assert sorted(file.stem for file in FOLDER.glob("*.yaml")) == sorted(SITES)


def test_a_sites_stack_violates_no_policy_of_its_environment(site: str, tmp_path: Path) -> None:
    config = config_of(site, tmp_path)
    given = json.loads(config["soperator:policy"])

    judged = judge(deployed(*config.items()), policy=given, stack="mine", variables={})

    assert judged.failures == ()
    assert judged.remediations == ()
    assert given["environment"] == ("dev" if site == "gke-trial" else "prod")


def test_a_sites_stack_is_refused_for_nothing_in_its_kubernetes(site: str, tmp_path: Path) -> None:
    assert refusals(found(site, tmp_path)) == []


def test_a_preflight_says_for_every_node_set_what_its_machines_have_room_for(tmp_path: Path) -> None:
    sizes = {item.path: item.found for item in found("eks-h100", tmp_path) if item.path.startswith("node_sets")}
    assert sizes == {
        "node_sets[0]": "128 of 140 machines fit, with room for 190 CPUs and 1989 GiB",
        "node_sets[1]": "12 of 140 machines fit, with room for 30 CPUs and 58 GiB",
    }


def changed(name: str, kind: int, **changes: Any) -> Site:
    """Return a site with another kind of machines."""
    site = SITES[name]
    machines = [replace(item, **changes) if number == kind else item for number, item in enumerate(site.machines)]
    return replace(site, machines=machines)


@pytest.mark.parametrize(
    ("name", "other", "words"),
    [
        ("eks-h100", changed("eks-h100", 0, devices={GPU: "8", PAGES: "10256Mi"}), f"0 of 32 {EFA}"),
        ("eks-h100", changed("eks-h100", 0, devices={GPU: "8", EFA: "32"}), f"0 GiB of 5 GiB {PAGES}"),
        ("eks-h100", replace(SITES["eks-h100"], secrets=[]), 'no Secret of that name in the namespace "hpc"'),
        ("eks-h100", replace(SITES["eks-h100"], classes=["gp2"]), 'got "gp3", but there is no StorageClass'),
        ("metal-b200", replace(SITES["metal-b200"], classes=["weka-slurm"]), 'got "longhorn", but there is no'),
        ("metal-b200", replace(SITES["metal-b200"], daemon_cpus="20"), "203.5 of 212"),
        ("gke-trial", changed("gke-trial", 0, devices={}), f"0 of 8 {GPU}"),
        ("gke-trial", changed("gke-trial", 0, label="cloud.google.com/gke-nodepool=h100"), "gke-nodepool=slurm-h100"),
    ],
)
def test_what_a_sites_kubernetes_lacks_is_refused_before_anything_is_applied(
    name: str, other: Site, words: str, tmp_path: Path
) -> None:
    assert words in "\n".join(refusals(found(name, tmp_path, other)))
