"""What the parts of a run share."""

from dataclasses import dataclass, field

from tools.console import UserError
from tools.engine.display import Display
from tools.engine.local.crud import Crud
from tools.engine.local.providers import PROVIDER_TYPE, Providers
from tools.engine.local.providers.local_provider import LocalProvider
from tools.engine.local.state import Resource, State


@dataclass(kw_only=True)
class Run:
    """A run of an operation on a stack.

    Attributes:
        state: What is known of the stack, kept up to date.
        display: What a person sees, and what failed.
        providers: Make and change resources.
        preview: Nothing is changed, only foreseen.
        live: What this run has come to, by URN: also in a preview, which leaves the state as it is.
    """

    state: State
    display: Display
    providers: Providers
    preview: bool
    live: dict[str, Resource] = field(default_factory=dict)

    @property
    def crud(self) -> Crud:
        """Calls to providers that keep the state in step."""
        return Crud(self.state)

    @property
    def failed(self) -> bool:
        """Whether anything has failed: then nothing more is begun."""
        return bool(self.display.failures)

    def provider_of(self, resource: Resource) -> LocalProvider:
        """Return the provider of a resource."""
        explicit = self.explicit_provider(resource.provider)
        if resource.provider and explicit is None:
            raise UserError(f"its provider {resource.provider} is not in the state")
        return self.providers.of(resource, explicit)

    def explicit_provider(self, reference: str) -> Resource | None:
        """Return the explicit provider of a reference, `<urn>::<id>`; None for the default one."""
        every = [*self.state.resources, *self.live.values()]
        return next((r for r in every if is_provider(r) and f"{r.urn}::{r.id}" == reference), None)


def is_provider(resource: Resource) -> bool:
    """Say whether a resource is an explicit provider."""
    return resource.type.startswith(PROVIDER_TYPE)


def is_managed(resource: Resource) -> bool:
    """Say whether a provider makes a resource: not so for components, and for providers themselves."""
    return resource.custom and not is_provider(resource)
