"""The resource after the Job that fills a tree of the jail: it is up to date when the tree is whole and verified."""

from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult
from pydantic import BaseModel, ConfigDict

from soperator_pulumi.errors import JailError
from soperator_pulumi.lifecycle.connection import Connection
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.lifecycle.unknown import has_unknown
from soperator_pulumi.operations.jail.jobs import JobFollower
from soperator_pulumi.operations.jail.trees import how_much, result_of
from soperator_pulumi.operations.progress import MachineClock, say

CONTAINER = "populate"
"""The container of the Job that fills the tree."""


class Filled(BaseModel):
    """What is waited for."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    namespace: str
    job: str
    tree: str
    source: str
    """Image or tarball from which the tree is filled, as the user named it."""
    claim: str
    """Claim that holds the tree."""


class TreePopulatedProvider(LiveProvider):
    """Wait on create and update. Deleting removes nothing: trees are data."""

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare what was filled with what is to be filled. A tree that was whole once is not looked at again."""
        return DiffResult(changes=has_unknown(news) or Filled.model_validate(olds) != Filled.model_validate(news))

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Wait for the tree."""
        self._wait(props)
        return CreateResult(f"{props['namespace']}/{props['tree']}", {**props})

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Wait for the tree."""
        self._wait(news)
        return UpdateResult({**news})

    def _wait(self, props: dict[str, Any]) -> None:
        """Follow the Job to its end. One that had failed before is started again: the user has mended something."""
        wanted = Filled.model_validate(props)
        job = JobFollower(
            self.kube(props),
            namespace=wanted.namespace,
            name=wanted.job,
            container=CONTAINER,
            prefix="jail",
            say=say,
            clock=MachineClock(),
        )
        found = job.look()
        if found.failure:
            say(f"jail: the Job {wanted.job} has failed before: it is started again")
            job.make_anew(found)
        outcome = job.end()
        if outcome.failure:
            raise JailError(
                f"jail: the tree {wanted.tree} was not filled from {wanted.source}: {outcome.failure}\n"
                "No job and no login has entered it. Mend what is named, in the spec or at the source, and run again: "
                "it goes on where it stopped."
            )
        say(f"jail: {wanted.source} is tree {wanted.tree}{how_much(result_of(outcome.log))}")


class TreePopulated(LiveResource, module="soperator", name="TreePopulated"):
    """A tree of the jail that is whole and verified."""

    tree: pulumi.Output[str]
    """The tree's name."""

    def __init__(
        self,
        resource_name: str,
        *,
        namespace: str,
        job: str,
        tree: str,
        source: str,
        claim: pulumi.Input[str],
        connection: Connection,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {
            "namespace": namespace,
            "job": job,
            "tree": tree,
            "source": source,
            "claim": claim,
            **connection.inputs(),
        }
        super().__init__(TreePopulatedProvider(), resource_name, inputs, opts)
