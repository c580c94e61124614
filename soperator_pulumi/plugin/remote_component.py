"""Components for a program in another language: the engine requests one, and its children are registered here."""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.provider import ConstructResult
from pulumi.provider import Provider as ComponentProvider

import soperator_pulumi
from soperator_pulumi.errors import Problem, SpecError
from soperator_pulumi.lifecycle.connection import AccessArgs
from soperator_pulumi.lifecycle.resource import PACKAGE, SERVED_BY, ServedBy
from soperator_pulumi.plugin.cluster_types import CLUSTER
from soperator_pulumi.plugin.platform_types import PLATFORM
from soperator_pulumi.plugin.spelling import from_other_language, in_other_languages, names_in

_TYPES = {component_type.token: component_type for component_type in (CLUSTER, PLATFORM)}
_NAMES = frozenset(name for type_ in _TYPES.values() for name in names_in(type_.inputs))
_WHERE = "The description"


class RemoteProgram:
    """A program in another language. Its clusters have distinct names."""


@dataclass(frozen=True)
class Caller:
    """Origin of the request for a component."""

    program: RemoteProgram
    provider: str = ""
    """The engine's reference to this provider; empty if the engine has given none."""


CALLER: ContextVar[Caller] = ContextVar("caller")
"""Origin of the current request."""


class RemoteComponents(ComponentProvider):
    """Creates the components of other languages."""

    def __init__(self) -> None:
        super().__init__(soperator_pulumi.__version__)
        self.access = AccessArgs()
        """Access from the provider's configuration, for components without their own."""

    def construct(
        self, name: str, resource_type: str, inputs: pulumi.Inputs, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        """Create a component. All of its children use this process as their provider.

        Raises:
            RunError: the inputs have problems; all of them are in the message.
        """
        type_ = _TYPES.get(resource_type)
        if type_ is None:
            raise pulumi.RunError(f"there is no component {resource_type}. There are: {', '.join(_TYPES)}.")
        # The module loads all Kubernetes resources, which takes seconds: schemas and destroys should not wait for that.
        from soperator_pulumi.cluster.arguments import REMOTE_PROGRAM  # noqa: PLC0415

        caller = CALLER.get()
        REMOTE_PROGRAM.set(caller.program)
        SERVED_BY.set(ServedBy.PLUGIN)
        given: dict[str, Any] = from_other_language(inputs, type_.inputs)
        args = given if given.keys() & AccessArgs.__annotations__.keys() else {**self.access, **given}
        try:
            component = getattr(soperator_pulumi, type_.name)(name, args, _with_own_provider(options, caller.provider))
        except SpecError as error:
            raise pulumi.RunError(_words(error)) from None
        return ConstructResult(component.urn, component.outputs)


def _with_own_provider(options: pulumi.ResourceOptions | None, reference: str) -> pulumi.ResourceOptions:
    """Return options that make this process, and no other version, serve the children of this package."""
    providers = {PACKAGE: pulumi.resource.DependencyProviderResource(reference)} if reference else {}
    return pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(providers=providers))


def _words(error: SpecError) -> str:
    """Return the problems of a description, with names as the user spelled them."""
    problems = [
        Problem(in_other_languages(problem.path, _NAMES), in_other_languages(problem.text, _NAMES))
        for problem in error.problems
    ]
    return str(SpecError(_WHERE, problems))
