"""The order in which Pulumi acts: same, create or update in the order of dependencies, deletions last and in reverse.

Steps come one after the other; of what Pulumi does at the same time for several node sets either may come first. State
is written after each step, so a run that is killed leaves its last step done and not recorded; a StatefulSet that was
made so is taken in by the next one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from soperator_pulumi.spec.drain import DrainSpec
from tests.fakes.kubernetes import template_of
from tests.fakes.objects import NAMESPACE, KilledError, labels_of
from tests.fakes.slurmctld import SLOTS
from tests.fakes.workers import OWNER
from tests.unit.faults.faults import Faults
from tests.unit.faults.stage import STAGE, provider

Json = dict[str, Any]


@dataclass(frozen=True)
class NodeSet:
    """A node set as a program declares it."""

    replicas: int
    policy: DrainSpec
    template: str = "a"
    identity: str = "1"
    max_unavailable: int = 1
    idle_wait: str = "0s"
    wait_until_ready: bool = True
    max_unready: int = 0
    memory_mib: int = 0
    cpus: int = SLOTS


@dataclass(frozen=True)
class Program:
    """Wish of the user."""

    node_sets: Mapping[str, NodeSet]
    other_way_round: bool = False
    """True if the last node set comes first."""


@dataclass
class Engine:
    """A stack: its state, and the runs on it."""

    faults: Faults
    state: dict[str, Json] = field(default_factory=dict)
    """Outputs by name, in the order of creation."""
    previewing: bool = False

    def preview(self, program: Program) -> None:
        """Ask for the differences; nothing is to change."""
        STAGE.begin(self.faults)
        for name, inputs in self._wanted(program):
            kind = name.partition(" ")[0]
            if kind != "StatefulSet" and name in self.state:
                provider(kind).diff(name, self.state[name], inputs)

    def up(self, program: Program, *, refresh: bool = False) -> None:
        """Bring about what the program wants; with `refresh` the state is made what is there before."""
        STAGE.begin(self.faults)
        if refresh:
            self._refresh()
        wanted = self._wanted(program)
        try:
            for name, inputs in wanted:
                self._step(name, self._with_outputs(name, inputs))
        finally:
            # What this run has come to stands before what it has not, as in a real state.
            order = [name for name, _ in wanted if name in self.state]
            self.state = {
                name: self.state[name] for name in [*order, *(text for text in self.state if text not in order)]
            }
        for name in reversed([name for name in self.state if name not in {text for text, _ in wanted}]):
            self._delete(name)

    def destroy(self) -> None:
        """Delete everything."""
        STAGE.begin(self.faults)
        for name in reversed([*self.state]):
            self._delete(name)

    def sets(self) -> list[str]:
        """Return the node sets whose StatefulSets are recorded."""
        return [name.partition(" ")[2] for name in self.state if name.startswith("StatefulSet ")]

    def recorded_size(self, node_set: str) -> int:
        """Return what the StatefulSet was made last."""
        return int(self.state.get(f"StatefulSet {node_set}", {}).get("replicas", 0))

    def recorded_policies(self) -> dict[str, list[DrainSpec]]:
        """Return what resources have recorded of each node set's policy, which counts once the program has none."""
        found: dict[str, list[DrainSpec]] = {}
        for resource, outputs in self.state.items():
            own = {resource.partition(" ")[2]: outputs["policy"]} if "policy" in outputs else {}
            for name, policy in [
                *own.items(),
                *outputs.get("policies", {}).items(),
                *outputs.get("former", {}).items(),
            ]:
                found.setdefault(name, []).append(DrainSpec.model_validate(policy))
        return found

    def _refresh(self) -> None:
        for name, outputs in [*self.state.items()]:
            kind, _, node_set = name.partition(" ")
            live = self.faults.world.kubernetes.sets.get(node_set)
            if kind != "StatefulSet":
                self.state[name] = provider(kind).read(name, outputs).outs or {}
            elif live is None:
                del self.state[name]
            else:
                found = {"replicas": float(live.replicas), "template": live.template, "identity": live.identity}
                found |= {"policy": json.loads(live.policy)}
                self.state[name] = {**outputs, **found}

    def _wanted(self, program: Program) -> list[tuple[str, Json]]:
        recorded = self.state.get("RemovedNodeSets", {}).get("namespace_uid")
        place = {"namespace": NAMESPACE, "namespace_uid": recorded or _namespace_uid(self), "owner": OWNER}
        policies = {name: node_set.policy.model_dump(mode="json") for name, node_set in program.node_sets.items()}
        every = {**place, "selector": labels_of("worker"), "policies": policies}
        sizes = {
            "memory_mib": {name: float(node_set.memory_mib) for name, node_set in program.node_sets.items()},
            "cpus": {name: float(node_set.cpus) for name, node_set in program.node_sets.items()},
        }
        chains = [_chain(place, name, node_set, policies[name], sizes) for name, node_set in program.node_sets.items()]
        steps = [step for chain in (reversed(chains) if program.other_way_round else chains) for step in chain]
        waits = [step for step in steps if step[0].startswith("NodesReady")]
        guarded = [step for step in steps if step not in waits]
        return [("RemovedNodeSets", every), *guarded, ("DrainGate", every), *waits]

    def _with_outputs(self, name: str, inputs: Json) -> Json:
        kind, _, node_set = name.partition(" ")
        if kind not in {"StatefulSet", "NodesReady"}:
            return inputs
        return {**inputs, "replicas": self.state[f"NodeDrain {node_set}"]["replicas"]}

    def _step(self, name: str, inputs: Json) -> None:
        kind, _, node_set = name.partition(" ")
        if kind == "StatefulSet":
            self._put(node_set, name, inputs)
            return
        plugin = provider(kind)
        checked = plugin.check(self.state.get(name, {}), inputs)
        assert not checked.failures
        olds = self.state.get(name)
        if olds is None:
            self._says(f"+ {name}")
            self.state[name] = plugin.create(checked.inputs).outs or {}
        elif plugin.diff(name, olds, checked.inputs).changes:
            self._says(f"~ {name}")
            self.state[name] = plugin.update(name, olds, checked.inputs).outs or {}

    def _put(self, node_set: str, name: str, inputs: Json) -> None:
        """Act as pulumi-kubernetes does: what it cannot change in place is deleted first, by its fixed name."""
        kubernetes, world = self.faults.world.kubernetes, self.faults.world
        olds = self.state.get(name)
        if olds == inputs:
            return
        if olds and olds["identity"] != inputs["identity"]:
            self._says(f"+- {name}")
            self._interruptible(lambda: kubernetes.delete_set(node_set))
            self.state[name] = {}
            while any(pod.node_set == node_set for pod in kubernetes.pods.values()):
                world.sleep(1.0)
        replicas, wanted = int(inputs["replicas"]), inputs
        policy = DrainSpec.model_validate(wanted["policy"])
        self._says(f"~ {name} {replicas}")
        try:
            self._interruptible(
                lambda: kubernetes.put_set(node_set, replicas, wanted["template"], wanted["identity"], policy)
            )
        except KilledError:
            if olds is None and node_set in kubernetes.sets:  # made, but not recorded: the next run takes it in
                self.state[name] = inputs
            raise
        self.state[name] = inputs

    def _delete(self, name: str) -> None:
        kind, _, node_set = name.partition(" ")
        self._says(f"- {name}")
        if kind == "StatefulSet":
            self._interruptible(lambda: self.faults.world.kubernetes.delete_set(node_set))
        else:
            provider(kind).delete(name, self.state[name])
        del self.state[name]

    def _interruptible(self, act: Any) -> None:
        """Do one request of Pulumi's own; the engine may be killed before and after it."""
        kind = self.faults.next()
        if kind == "killed before":
            self.faults.die()
        act()
        self.faults.world.settle()
        if kind == "killed after":
            self.faults.die()

    def _says(self, step: str) -> None:
        if "StatefulSet" not in step:  # which follows the look of the resource before it, or of its gate
            self.faults.world.watch.begin_step()
        self.faults.world.tell(step)


def _chain(
    place: Json, name: str, node_set: NodeSet, policy: Json, sizes: Mapping[str, Mapping[str, float]]
) -> list[tuple[str, Json]]:
    own = {**place, "node_set": name, "selector": labels_of("worker", name)}
    judged = {**own, "policy": policy}
    replicas = float(node_set.replicas)  # numbers arrive so
    return [
        (f"NodeDrain {name}", {**judged, "replicas": replicas, "identity": node_set.identity}),
        (
            f"StatefulSet {name}",
            {
                "replicas": replicas,
                "template": node_set.template,
                "identity": node_set.identity,
                "policy": policy,
            },
        ),
        (f"DrainGate {name}", {**own, "policies": {name: policy}, "guards": f"{NAMESPACE}/{name}"}),
        (
            f"NodesReady {name}",
            {
                **judged,
                "replicas": replicas,
                "template": json.dumps(template_of(node_set.template)),
                "timeout_seconds": 60.0,
                "max_unready": node_set.max_unready,
                "wait_until_ready": node_set.wait_until_ready,
                "rolling_update": {"max_unavailable": node_set.max_unavailable, "idle_wait": node_set.idle_wait},
                **sizes,
            },
        ),
    ]


def _namespace_uid(engine: Engine) -> str | None:
    return engine.faults.world.kubernetes.namespace_uid
