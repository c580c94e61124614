"""Context shared by all steps of a run."""

from dataclasses import dataclass, field

from tools.console import UserError
from tools.engine.display import Display
from tools.engine.local.crud import Crud
from tools.engine.local.providers import PROVIDER_TYPE, Providers
from tools.engine.local.providers.local_provider import LocalProvider
from tools.engine.local.state import Resource, State


@dataclass(kw_only=True)
class Run:
    """Run of an operation on a stack.

    Attributes:
        state: State of the stack, kept up to date.
        display: Output for a person, and the failures.
        providers: Providers that make and change resources.
        preview: True if changes are only planned.
        live: Resources that this run has reached, by URN: also in a preview, which does not change the state.
    """

    state: State
    display: Display
    providers: Providers
    preview: bool
    live: dict[str, Resource] = field(default_factory=dict)

    @property
    def crud(self) -> Crud:
        """Provider calls that keep the state up to date."""
        return Crud(self.state)

    @property
    def failed(self) -> bool:
        """True after a failure: no further step begins."""
        return bool(self.display.failures)

    def provider_of(self, resource: Resource) -> LocalProvider:
        """Return the provider of a resource."""
        explicit = self.explicit_provider(resource.provider)
        if resource.provider and explicit is None:
            raise UserError(f"provider {resource.provider} is not in the state")
        return self.providers.of(resource, explicit)

    def explicit_provider(self, reference: str) -> Resource | None:
        """Return the explicit provider of a reference, `<urn>::<id>`; None for the default provider."""
        every = [*self.state.resources, *self.live.values()]
        return next((r for r in every if is_provider(r) and f"{r.urn}::{r.id}" == reference), None)


def is_provider(resource: Resource) -> bool:
    """Return True if a resource is an explicit provider."""
    return resource.type.startswith(PROVIDER_TYPE)


def is_managed(resource: Resource) -> bool:
    """Return True if a provider manages a resource: False for components, and for providers themselves."""
    return resource.custom and not is_provider(resource)
