"""Result of a drain run: nodes whose pods may be removed, and reasons why others may not."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from soperator_pulumi.slurm.hostlist import compress


@dataclass(frozen=True)
class DrainResult:
    """Nodes after a drain run."""

    free: frozenset[str]
    """Nodes whose pods may be removed."""
    busy: Mapping[str, str] = field(default_factory=dict)
    """The other nodes, which are drained, with the reasons; only if the policy does not wait."""

    def busy_words(self) -> str:
        """Return why the other nodes are busy, with nodes of the same reason together."""
        by_reason: dict[str, list[str]] = {}
        for name, why in self.busy.items():
            by_reason.setdefault(why, []).append(name)
        return "; ".join(f"{compress(names)} {why}" for why, names in by_reason.items())
