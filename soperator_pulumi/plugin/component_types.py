"""Components of the package for programs in other languages."""

from dataclasses import dataclass

from soperator_pulumi.lifecycle.resource import PACKAGE
from soperator_pulumi.plugin.property_types import ObjectType


@dataclass(frozen=True)
class ComponentType:
    """A component: its name, its description, and its properties."""

    name: str
    description: str
    inputs: ObjectType
    outputs: ObjectType
    needed: frozenset[str] = frozenset()
    """Inputs that a program must give, in addition to those that the type requires."""

    @property
    def token(self) -> str:
        """Type of the component in programs and states."""
        return f"{PACKAGE}:index:{self.name}"

    @property
    def required(self) -> frozenset[str]:
        """Inputs that a program must give, by their names in Python."""
        return self.needed | {property_.name for property_ in self.inputs.properties if property_.required}
