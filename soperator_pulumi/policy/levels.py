"""Environments, and the level of a policy in each."""

from dataclasses import dataclass
from enum import StrEnum


class Environment(StrEnum):
    """Environment of a stack."""

    LOCAL = "local"
    DEV = "dev"
    STAGING = "staging"
    PROD = "prod"


class PolicyLevel(StrEnum):
    """Consequence of a violation."""

    DISABLED = "disabled"
    """None: the policy does not run."""
    ADVISORY = "advisory"
    """A warning."""
    REMEDIATE = "remediate"
    """The policy corrects the resource. What it cannot correct fails as at `mandatory`."""
    MANDATORY = "mandatory"
    """Failure of the preview, before anything is applied."""

    @property
    def strictness(self) -> int:
        """Rank among the levels. Neither of `remediate` and `mandatory` lets a violation pass."""
        return {PolicyLevel.DISABLED: 0, PolicyLevel.ADVISORY: 1}.get(self, 2)

    @property
    def fails(self) -> bool:
        """True where a violation that is left fails the preview."""
        return self.strictness == PolicyLevel.MANDATORY.strictness


class PolicySeverity(StrEnum):
    """Damage by a violation: for sorting and for reports."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Level of a policy in each environment."""

    local: PolicyLevel
    dev: PolicyLevel
    staging: PolicyLevel
    prod: PolicyLevel

    def in_(self, environment: Environment) -> PolicyLevel:
        """Return the level in an environment."""
        level: PolicyLevel = getattr(self, environment.value)
        return level


def levels(local: str, dev: str, staging: str, prod: str) -> Levels:
    """Return levels by their names, in the order of the environments."""
    return Levels(local=PolicyLevel(local), dev=PolicyLevel(dev), staging=PolicyLevel(staging), prod=PolicyLevel(prod))
