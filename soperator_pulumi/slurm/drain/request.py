"""Request to drain nodes of a node set."""

from dataclasses import dataclass, replace

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
    """Nodes of `names` without slurmd whose pods cannot start by themselves, by the pods' status in Kubernetes."""
    starting: frozenset[str] = frozenset()
    """Nodes of `names` whose pods are starting: slurmd may register at any moment."""

    @property
    def come_back(self) -> bool:
        """True where the same nodes are there again afterwards: recreated, not removed."""
        return self.after >= self.before

    def as_free_as(self, before: "DrainRequest") -> bool:
        """Return True where nobody has scaled the set since, no slurmd has started, and no pod that could not."""
        same = replace(self, never_started=before.never_started, starting=before.starting) == before
        gone_on = (before.never_started | before.starting) - self.never_started - self.starting
        return same and not gone_on and before.never_started <= self.never_started
