"""Environments, and the level of a policy in every one of them."""

from dataclasses import dataclass
from enum import StrEnum


class Environment(StrEnum):
    """Environment of a stack."""

    LOCAL = "local"
    """A trial on the developer's own machine."""
    DEV = "dev"
    """Changes are tried here."""
    STAGING = "staging"
    """Changes have their last test here."""
    PROD = "prod"
    """Users work here."""

    @property
    def strictness(self) -> int:
        """Rank among the environments, starting with 0 for `local`."""
        return [*Environment].index(self)


class PolicyLevel(StrEnum):
    """Consequence of a violation."""

    DISABLED = "disabled"
    """None: the policy does not run."""
    ADVISORY = "advisory"
    """A warning."""
    REMEDIATE = "remediate"
    """The policy corrects the resource. A violation that it cannot correct fails as at `mandatory`."""
    MANDATORY = "mandatory"
    """Failure of the preview, before anything is applied."""

    @property
    def strictness(self) -> int:
        """Rank among the levels. `remediate` and `mandatory` are equally strict: both stop every violation."""
        return {PolicyLevel.DISABLED: 0, PolicyLevel.ADVISORY: 1}.get(self, 2)

    @property
    def fails(self) -> bool:
        """True if a remaining violation fails the preview."""
        return self.strictness == PolicyLevel.MANDATORY.strictness


class PolicySeverity(StrEnum):
    """Damage that a violation does, for sorting and for reports."""

    LOW = "low"
    """Work for the next person."""
    MEDIUM = "medium"
    """An outage, or a cost."""
    HIGH = "high"
    """Lost jobs, or an open door."""
    CRITICAL = "critical"
    """Lost data, leaked credentials, or a machine under an intruder's control."""


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Level of a policy in every environment."""

    local: PolicyLevel
    """Level on the developer's own machine."""
    dev: PolicyLevel
    """Level where changes are tried."""
    staging: PolicyLevel
    """Level where changes have their last test."""
    prod: PolicyLevel
    """Level where users work."""

    def in_(self, environment: Environment) -> PolicyLevel:
        """Return the level in an environment."""
        level: PolicyLevel = getattr(self, environment.value)
        return level


def levels(local: str, dev: str, staging: str, prod: str) -> Levels:
    """Return levels given by name, in the order of the environments."""
    return Levels(local=PolicyLevel(local), dev=PolicyLevel(dev), staging=PolicyLevel(staging), prod=PolicyLevel(prod))
