"""Check of the parts of a platform that somebody else installed: reads the live Kubernetes, and touches nothing."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pulumi
from pulumi.dynamic import CheckFailure, CheckResult, CreateResult, DiffResult, UpdateResult
from pydantic import BaseModel, ConfigDict

from soperator_pulumi.errors import KubernetesError, Problem, SpecError
from soperator_pulumi.lifecycle.connection import CONTEXT, KUBECONFIG, KubernetesAccess
from soperator_pulumi.lifecycle.provider import LiveProvider, has_unknown
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.operations.installed import Requirement, installed_problems, installed_versions

_VERSIONS = "versions"


class InstalledPartsInputs(BaseModel):
    """Requirements of all parts that exist."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    where: str
    """Name of the spec in messages."""
    requirements: tuple[Requirement, ...]
    """Needs of ours, one for each part."""
    own: dict[str, bool] = {}
    """Parts that the stack installs itself; True for those that it keeps in Kubernetes when they leave it."""

    @property
    def wanted(self) -> set[str]:
        """Parts that have to exist."""
        return {each.part for each in self.requirements}


class InstalledPartsProvider(LiveProvider):
    """Check and read: nothing is created, and nothing is removed."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Fail with the problems of all parts in one message. A preview may not know the cluster yet."""
        inputs = InstalledPartsInputs.model_validate(news)
        found = [*_removed_unnoticed(inputs, (olds or {}).get("own") or {})]
        known = not has_unknown([news.get(KUBECONFIG), news.get(CONTEXT)])
        try:
            if known and inputs.requirements:
                found += installed_problems(self.kube(news), inputs.requirements)
        except KubernetesError as error:
            return CheckResult(news, [CheckFailure("", str(error))])
        return CheckResult(news, [CheckFailure("", str(SpecError(inputs.where, found)))] if found else [])

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        """Compare the requirements, and the versions that are installed.

        Raises:
            SpecError: a part that the stack installed has to exist. Not every engine gives a check what was before.
        """
        if found := [*_removed_unnoticed(InstalledPartsInputs.model_validate(news), olds.get("own") or {})]:
            raise SpecError(str(news["where"]), found)
        if has_unknown(news) or InstalledPartsInputs.model_validate(olds) != InstalledPartsInputs.model_validate(news):
            return DiffResult(changes=True)
        return DiffResult(changes=olds.get(_VERSIONS) != self._versions(news))

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Record the versions."""
        return CreateResult("installed", {**props, _VERSIONS: self._versions(props)})

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        """Record the versions."""
        return UpdateResult({**news, _VERSIONS: self._versions(news)})

    def _versions(self, props: Mapping[str, Any]) -> dict[str, str]:
        asked = InstalledPartsInputs.model_validate(props).requirements
        return installed_versions(self.kube(props), asked) if asked else {}


def _removed_unnoticed(wanted: InstalledPartsInputs, before: Mapping[str, bool]) -> Iterator[Problem]:
    """Yield the parts that the stack has installed, and would remove because they have to exist."""
    for part, kept in before.items():
        if part in wanted.wanted and not kept:
            text = (
                "exists: true, but this stack installed it, and would remove it now. To hand it over, set keep: true "
                "without exists, run up, and then set exists: true. To have it removed, remove it from the spec."
            )
            yield Problem(part, text)


class InstalledParts(LiveResource, module="soperator", name="InstalledParts"):
    """Parts of a platform that somebody else installed, beside a record of our own."""

    versions: pulumi.Output[Mapping[str, str]]
    """Installed version of each part, by its key in the spec."""

    def __init__(
        self,
        resource_name: str,
        *,
        access: KubernetesAccess,
        where: str,
        requirements: Sequence[Mapping[str, Any]],
        own: Mapping[str, bool],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {"where": where, "requirements": [*requirements], "own": {**own}, _VERSIONS: None}
        super().__init__(InstalledPartsProvider(), resource_name, access, inputs, opts)
