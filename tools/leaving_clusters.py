"""Nodes and jobs of clusters that a deployment deletes, as Pulumi's previews do not ask providers about deletions."""

from dataclasses import replace

from soperator_pulumi.lifecycle.connection import CONTEXT, KUBECONFIG
from soperator_pulumi.lifecycle.drain_gate import DrainGateProvider
from soperator_pulumi.lifecycle.resource import acts_as
from tools.chosen_cluster import ChosenCluster
from tools.console import say
from tools.engine import Deployer, ResourceState, StackChanges, StepOp
from tools.engine.protocol import HIDDEN


def with_their_jobs(found: StackChanges, deployer: Deployer, chosen: ChosenCluster) -> StackChanges:
    """Return a preview extended by the nodes and jobs of the clusters that it deletes, and print these.

    Args:
        found: The preview.
        deployer: Deployer of the stack, whose state names the clusters.
        chosen: Kubernetes to ask if a cluster has recorded no access, or a secret one. Another cluster's namespace
            is known by its UID, and not looked at.
    """
    deleted = {change.urn for change in found.of(StepOp.DELETE) if acts_as(change.type, "DrainGate")}
    gates = [resource for resource in deployer.state() if resource.urn in deleted] if deleted else []
    # The removal of a node set shows its jobs itself.
    lines = [line for gate in gates if not gate.outputs.get("node_set") for line in _lines(gate, chosen)]
    for line in lines:
        say(line)
    return replace(found, messages=(*found.messages, *lines))


def _lines(gate: ResourceState, chosen: ChosenCluster) -> list[str]:
    recorded = dict(gate.outputs)
    if recorded.get(KUBECONFIG) in {None, HIDDEN}:
        context = None if recorded.get(KUBECONFIG) else recorded.get(CONTEXT)
        recorded |= {KUBECONFIG: str(chosen.kubeconfig), CONTEXT: context or chosen.context}
    return DrainGateProvider().preview_delete(recorded)
