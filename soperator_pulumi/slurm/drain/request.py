"""Request to drain nodes of a node set."""

from dataclasses import dataclass

from soperator_pulumi.spec.drain import DrainSpec


@dataclass(frozen=True)
class DrainRequest:
    """Nodes of one node set that are to lose their pods."""

    node_set: str
    names: tuple[str, ...]
    """The nodes, in the order of their ordinals."""
    staying: tuple[str, ...]
    """The node set's other nodes, in the same order."""
    policy: DrainSpec
    before: int
    """Number of nodes of the node set."""
    after: int
    """Number that it is to have; the same where the pods are recreated."""
    never_started: frozenset[str] = frozenset()
    """Nodes of `names` in whose pods slurmd has never run, by the pods' status in Kubernetes."""

    @property
    def come_back(self) -> bool:
        """True where the same nodes are there again afterwards: recreated, not removed."""
        return self.after >= self.before
