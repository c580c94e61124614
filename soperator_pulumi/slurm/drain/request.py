"""Request to drain nodes of a node set."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from soperator_pulumi.spec.drain import DrainSpec


@dataclass(frozen=True)
class DrainRequest:
    """Nodes of one node set that will lose their pods."""

    node_set: str
    names: tuple[str, ...]
    """The nodes, in the order of their ordinals."""
    staying: tuple[str, ...]
    """The node set's other nodes, in the same order."""
    policy: DrainSpec
    before: int
    """Current number of nodes of the node set."""
    after: int
    """Wanted number of nodes; the same if the pods are recreated."""
    never_started: frozenset[str] = frozenset()
    """Nodes of `names` without slurmd whose pods cannot start, according to their status in Kubernetes."""
    starting: frozenset[str] = frozenset()
    """Nodes of `names` whose pods are starting: slurmd may register at any moment."""

    @property
    def come_back(self) -> bool:
        """True if the same nodes come back: they are recreated, not removed."""
        return self.after >= self.before

    def only(self, names: AbstractSet[str]) -> "DrainRequest":
        """Return the request limited to these nodes."""
        return replace(
            self,
            names=tuple(name for name in self.names if name in names),
            never_started=self.never_started & names,
            starting=self.starting & names,
        )

    def as_free_as(self, before: "DrainRequest") -> bool:
        """Return True if, since `before`, the set was not scaled and no slurmd or pod has become able to run jobs."""
        same = replace(self, never_started=before.never_started, starting=before.starting) == before
        gone_on = (before.never_started | before.starting) - self.never_started - self.starting
        return same and not gone_on and before.never_started <= self.never_started
