"""Result of a drain run: nodes whose pods may be removed, and reasons of the others."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from soperator_pulumi.slurm.hostlist import compress


@dataclass(frozen=True)
class DrainResult:
    """Nodes after a drain run."""

    free: frozenset[str]
    """Nodes whose pods may be removed."""
    busy: Mapping[str, str] = field(default_factory=dict)
    """The others, drained, each with the reason that keeps it; only where the policy does not wait."""

    def busy_words(self) -> str:
        """Return why the others are busy, nodes of one reason together."""
        by_reason: dict[str, list[str]] = {}
        for name, why in self.busy.items():
            by_reason.setdefault(why, []).append(name)
        return "; ".join(f"{compress(names)} {why}" for why, names in by_reason.items())
