"""Types, names and parents of everything: what users' states refer to.

A change here makes Pulumi replace resources in every cluster that exists: it needs an alias, and a word to users.
"""

from soperator_pulumi.testing import Recorded
from tests.rendered.cluster.clusters import a_deployment

EXPECTED = """\
hpc                                   soperator-pulumi:index:SlurmCluster
  hpc-active-tree                     pulumi-python:dynamic/soperator:ActiveTree
  hpc-admin                           soperator-pulumi:index:AdminShell
    hpc-admin                         kubernetes:apps/v1:StatefulSet
  hpc-controller                      soperator-pulumi:index:Controller
    hpc-controller                    kubernetes:apps/v1:StatefulSet
    hpc-controller-disruption         kubernetes:policy/v1:PodDisruptionBudget
    hpc-controller-ready              pulumi-python:dynamic/soperator:PodsReady
    hpc-controller-state-in-use       kubernetes:core/v1:ConfigMap
  hpc-cpu                             soperator-pulumi:index:NodeSet
    hpc-cpu                           kubernetes:apps/v1:StatefulSet
    hpc-cpu-disruption                kubernetes:policy/v1:PodDisruptionBudget
    hpc-cpu-drain                     pulumi-python:dynamic/soperator:NodeDrain
    hpc-cpu-drain-gate                pulumi-python:dynamic/soperator:DrainGate
    hpc-cpu-ready                     pulumi-python:dynamic/soperator:NodesReady
  hpc-drain-gate                      pulumi-python:dynamic/soperator:DrainGate
  hpc-health                          pulumi-python:dynamic/soperator:ConfigFiles
  hpc-jail                            soperator-pulumi:index:Jail
    hpc-jail                          kubernetes:core/v1:PersistentVolumeClaim protect retain
    hpc-jail-populate-21c39bb3a094    kubernetes:batch/v1:Job
    hpc-jail-populated                pulumi-python:dynamic/soperator:TreePopulated
  hpc-keys-in-use                     pulumi-python:dynamic/soperator:KeysInUse
  hpc-login                           soperator-pulumi:index:LoginNodes
    hpc-login                         kubernetes:apps/v1:StatefulSet
    hpc-login-ready                   pulumi-python:dynamic/soperator:PodsReady
    hpc-login-service                 kubernetes:core/v1:Service
  hpc-munge-key                       random:index/randomPassword:RandomPassword
  hpc-munge-key-secret                kubernetes:core/v1:Secret
  hpc-namespace                       kubernetes:core/v1:Namespace protect retain
  hpc-network-admin                   kubernetes:networking.k8s.io/v1:NetworkPolicy
  hpc-network-controller              kubernetes:networking.k8s.io/v1:NetworkPolicy
  hpc-network-default-deny-ingress    kubernetes:networking.k8s.io/v1:NetworkPolicy
  hpc-network-jail-populate           kubernetes:networking.k8s.io/v1:NetworkPolicy
  hpc-network-jail-switch             kubernetes:networking.k8s.io/v1:NetworkPolicy
  hpc-network-login                   kubernetes:networking.k8s.io/v1:NetworkPolicy
  hpc-network-sessions                kubernetes:networking.k8s.io/v1:NetworkPolicy
  hpc-network-worker                  kubernetes:networking.k8s.io/v1:NetworkPolicy
  hpc-nodes                           kubernetes:core/v1:Service
  hpc-prerequisites                   pulumi-python:dynamic/soperator:Prerequisites
  hpc-removed-node-sets               pulumi-python:dynamic/soperator:RemovedNodeSets
  hpc-slurm-config                    pulumi-python:dynamic/soperator:ConfigFiles
  hpc-slurm-version                   pulumi-python:dynamic/soperator:SlurmVersion
  hpc-slurmctld-state                 kubernetes:core/v1:PersistentVolumeClaim protect retain
  hpc-ssh-host-key                    random:index/randomPassword:RandomPassword
  hpc-ssh-host-key-secret             kubernetes:core/v1:Secret
  hpc-ssh-keys                        pulumi-python:dynamic/soperator:ConfigFiles
  hpc-sshd-config                     pulumi-python:dynamic/soperator:ConfigFiles
  hpc-users                           pulumi-python:dynamic/soperator:ConfigFiles
"""


def test_a_cluster_consists_of_exactly_these_resources() -> None:
    assert tree(a_deployment().recorded) == EXPECTED.splitlines()


def test_the_physical_names_are_those_on_which_tools_and_people_rely() -> None:
    names = {
        f"{resource.type.rpartition(':')[2]}/{resource.inputs['metadata']['name']}"
        for resource in a_deployment().recorded
        if resource.type.startswith("kubernetes:")
    }
    names |= {f"ConfigMap/{resource.inputs['name']}" for resource in a_deployment().resources(":ConfigFiles")}
    assert names == {
        "Namespace/hpc",
        "StatefulSet/controller",
        "StatefulSet/login",
        "StatefulSet/cpu",
        "Service/nodes",
        "Service/login",
        "Secret/munge-key",
        "Secret/ssh-host-key",
        "Job/jail-populate-21c39bb3a094",
        "StatefulSet/admin",
        "PersistentVolumeClaim/jail",
        "PersistentVolumeClaim/slurmctld-state",
        "ConfigMap/slurm-config",
        "ConfigMap/users",
        "ConfigMap/health",
        "ConfigMap/ssh-keys",
        "ConfigMap/state-in-use",
        "ConfigMap/sshd-config",
        "NetworkPolicy/admin",
        "NetworkPolicy/controller",
        "NetworkPolicy/default-deny-ingress",
        "NetworkPolicy/jail-populate",
        "NetworkPolicy/jail-switch",
        "NetworkPolicy/login",
        "NetworkPolicy/sessions",
        "NetworkPolicy/worker",
        "PodDisruptionBudget/controller",
        "PodDisruptionBudget/cpu",
    }


def tree(recorded: tuple[Recorded, ...], width: int = 38) -> list[str]:
    """One line a resource, below its parent. The types stand in a column of their own."""
    children: dict[str, list[Recorded]] = {}
    for resource in recorded:
        children.setdefault(resource.parent, []).append(resource)

    def lines(parent: str, depth: int) -> list[str]:
        found = []
        for resource in sorted(children.get(parent, []), key=lambda child: (child.name, child.type)):
            options = " protect" * resource.request.protect + " retain" * resource.request.retainOnDelete
            found.append(f"{'  ' * depth}{resource.name}".ljust(width) + resource.type + options)
            if resource.type.startswith("soperator-pulumi:"):
                found += lines(resource.name, depth + 1)
        return found

    return lines("", 0)
