"""`SlurmCluster` for a program in another language: the engine asks for it, and its children are registered here."""

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
from soperator_pulumi.plugin.cluster_types import INPUTS, TOKEN
from soperator_pulumi.plugin.spelling import from_other_language, in_other_languages, names_in

_NAMES = frozenset(names_in(INPUTS))
_WHERE = "The description"


class RemoteProgram:
    """A program in another language. Its clusters have distinct names."""


@dataclass(frozen=True)
class Caller:
    """Origin of the request for a component."""

    program: RemoteProgram
    provider: str = ""
    """Reference of the provider that this process is; empty where the engine has told none."""


CALLER: ContextVar[Caller] = ContextVar("caller")
"""Origin of the request that is being answered."""


class RemoteComponents(ComponentProvider):
    """Creates the components of other languages."""

    def __init__(self) -> None:
        super().__init__(soperator_pulumi.__version__)
        self.access = AccessArgs()
        """Access in the configuration of the provider, for components that are given none."""

    def construct(
        self, name: str, resource_type: str, inputs: pulumi.Inputs, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        """Create a component. All of its children belong to the provider that this process is.

        Raises:
            RunError: the inputs have problems; all of them are in the message.
        """
        if resource_type != TOKEN:
            raise pulumi.RunError(f"there is no component {resource_type}. There is: {TOKEN}.")
        # These load all resources of Kubernetes: seconds, for which neither a schema nor a destroy should wait.
        from soperator_pulumi.cluster import SlurmCluster  # noqa: PLC0415
        from soperator_pulumi.cluster.arguments import REMOTE_PROGRAM  # noqa: PLC0415

        caller = CALLER.get()
        REMOTE_PROGRAM.set(caller.program)
        SERVED_BY.set(ServedBy.PLUGIN)
        given: dict[str, Any] = from_other_language(inputs, INPUTS)
        args = given if given.keys() & AccessArgs.__annotations__.keys() else {**self.access, **given}
        try:
            cluster = SlurmCluster(name, args, _with_own_provider(options, caller.provider))
        except SpecError as error:
            raise pulumi.RunError(_words(error)) from None
        return ConstructResult(cluster.urn, cluster.outputs)


def _with_own_provider(options: pulumi.ResourceOptions | None, reference: str) -> pulumi.ResourceOptions:
    """Return options that have children of our package served by this process, and by no other version of it."""
    providers = {PACKAGE: pulumi.resource.DependencyProviderResource(reference)} if reference else {}
    return pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(providers=providers))


def _words(error: SpecError) -> str:
    """Return the problems of a description with the names that the user wrote."""
    problems = [
        Problem(in_other_languages(each.path, _NAMES), in_other_languages(each.text, _NAMES)) for each in error.problems
    ]
    return str(SpecError(_WHERE, problems))
