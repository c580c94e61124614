"""Which nodes of a node set are to leave, and how."""

from dataclasses import dataclass

from soperator_pulumi.spec.drain import DrainSpec


@dataclass(frozen=True)
class DrainRequest:
    """The nodes of one node set that are to lose their pods."""

    node_set: str
    names: tuple[str, ...]
    """The nodes, in the order of their ordinals."""
    staying: tuple[str, ...]
    """The node set's other nodes, in the same order."""
    policy: DrainSpec
    before: int
    """How many nodes the node set has."""
    after: int
    """How many it is to have; as many as before when the pods come back under the same names."""
    never_started: frozenset[str] = frozenset()
    """Those of `names` in whose pods slurmd has never run, by what Kubernetes says."""

    @property
    def come_back(self) -> bool:
        """Whether the same nodes are there again afterwards: they are renewed, not removed."""
        return self.after >= self.before
