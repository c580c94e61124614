"""Check of a platform's existing parts: it reads the live Kubernetes, and changes nothing."""

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
    """Requirements on all parts that exist already."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    where: str
    """The requirements, one per part."""
    requirements: tuple[Requirement, ...]
    """The requirements, one per part."""
    own: dict[str, bool] = {}
    """Parts that the stack installs; True for those that stay in Kubernetes when they leave the stack."""

    @property
    def wanted(self) -> set[str]:
        """Parts that must exist."""
        return {requirement.part for requirement in self.requirements}


class InstalledPartsProvider(LiveProvider):
    """Check and read: nothing is created, and nothing is removed."""

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Fail with the problems of all parts in one message. In a preview, the cluster may not be known yet."""
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
        """Compare the requirements, and the installed versions.

        Raises:
            SpecError: a part that this stack installed must now exist. Not every engine gives old inputs to a check.
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
    """Yield the parts that the stack has installed, and would remove because they now must exist."""
    for part, kept in before.items():
        if part in wanted.wanted and not kept:
            text = (
                "exists: true, but this stack installed it, and would now remove it. To hand it over, set keep: true "
                "without exists, run up, and then set exists: true. To remove it, delete it from the spec."
            )
            yield Problem(part, text)


class InstalledParts(LiveResource, module="soperator", name="InstalledParts"):
    """Existing parts of a platform, and a record of those that the stack installs."""

    versions: pulumi.Output[Mapping[str, str]]
    """Installed versions, by the parts' keys in the spec."""

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
