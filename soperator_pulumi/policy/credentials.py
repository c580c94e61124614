"""Policies on credentials: in Kubernetes in Secrets alone, and everywhere marked as secret for Pulumi's state."""

import re
from collections.abc import Iterator

from soperator_pulumi.policy.definition import (
    MARK_AS_SECRET,
    Circumstances,
    Edit,
    Finding,
    PolicySettings,
    ResourcePolicy,
)
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.view import Path, ResourceView, listed, look, mapped, pods_of, texts_in

_CONTENTS = {
    "a private key": re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----"),
    "credentials of a kubeconfig": re.compile(
        r"""\bclient-key-data["']?\s*:|kind["']?:\s*["']?Config\b[\s\S]*\btoken:"""
    ),
    "a signed token": re.compile(r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    "a token of a forge": re.compile(r"\b(gh[pousr]_\w{36,}|github_pat_\w{22,}|glpat-[\w-]{20,}|hf_\w{30,})"),
    "an access key of a cloud": re.compile(r"\b((AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{35})\b"),
    "a hash of a password": re.compile(r"\$(1|5|6|7|y|2[aby])\$[./\w$=,]{20,}"),
    "a password of Slurm's": re.compile(r"(?im)^\s*(AccountingStoragePass|StoragePass|JobCompPass)\s*=\s*[^\s#/]"),
}
"""Contents that are credentials, by their kinds."""

_NAME = re.compile(
    r"(?i)(^|[._-])(password|secret|token|api[._-]?key|access[._-]?key|private[._-]?key|munge[._-]?key)$|[._-]passwd$"
)
"""Names of values that are credentials. A file `passwd` is none: it has the names of users."""

_ARGUMENT = re.compile(r"^--?([\w-]+)=(?=\S)")


def kind_of(text: str) -> str | None:
    """Return the kind of the credential in a text, without its value; None where there is none."""
    return next((kind for kind, pattern in _CONTENTS.items() if pattern.search(text)), None)


def _named(name: str, value: str) -> str | None:
    """Return the kind of a credential by its name. Paths and references to variables are none."""
    literal = bool(value.strip()) and not value.startswith(("/", "$"))
    return "a value whose name is that of a credential" if literal and _NAME.search(name) else None


def _leaked(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    for path, kind in [*_in_files(resource), *_in_pods(resource), *_in_annotations(resource)]:
        yield Finding(resource, path, f"holds {kind}, for everybody who may read the object")


def _in_files(resource: ResourceView) -> Iterator[tuple[Path, str]]:
    groups = ("data", "binaryData") if resource.is_kubernetes and resource.kind == "ConfigMap" else ()
    for group in groups or (("files",) if resource.acts_as("ConfigFiles") else ()):
        for path, text in texts_in(look(resource.props, group), (group,)):
            if kind := kind_of(text) or _named(str(path[-1]), text):
                yield path, kind


def _in_pods(resource: ResourceView) -> Iterator[tuple[Path, str]]:
    for pod in pods_of(resource):
        for path, container in pod.containers():
            for index, variable in enumerate(listed(look(container, "env"))):
                name, value = look(variable, "name"), look(variable, "value")
                if isinstance(value, str) and (kind := kind_of(value) or _named(str(name), value)):
                    yield (*path, "env", index, "value"), kind
            for group in ("command", "args"):
                for where, text in texts_in(look(container, group), (*path, group)):
                    option = _ARGUMENT.match(text)
                    if kind := kind_of(text) or (option and _named(option[1], text[option.end() :])):
                        yield where, kind


def _in_annotations(resource: ResourceView) -> Iterator[tuple[Path, str]]:
    where = ("metadata", "annotations")
    for path, text in texts_in(mapped(look(resource.props, *where)), where):
        if kind := kind_of(text):
            yield path, kind


SECRETS_IN_SECRETS = ResourcePolicy(
    name="secrets-in-secrets",
    description="Credentials stand in Secrets: in no ConfigMap, environment, command line or annotation.",
    violated_by="a munge key, private key, kubeconfig, token or password in a ConfigMap, in a container's `env`, "
    "`command` or `args`, or in an annotation",
    cure="Put it into a Secret, and mount that, or refer to it with valueFrom.secretKeyRef.",
    levels=levels("mandatory", "mandatory", "mandatory", "mandatory"),
    severity=PolicySeverity.CRITICAL,
    tags=("secrets", "security"),
    check=_leaked,
)


def _unmarked(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    for path, kind in _plain(resource):
        yield Finding(resource, path, f"holds {kind} as a plain value, which Pulumi's state shows")


def _marks(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Edit]:
    for path, _ in _plain(resource):
        yield Edit(path, MARK_AS_SECRET)


def _plain(resource: ResourceView) -> Iterator[tuple[Path, str]]:
    """Yield the credentials without a mark. In other objects of Kubernetes they violate `secrets-in-secrets`."""
    is_secret = resource.is_kubernetes and resource.kind == "Secret"
    is_other_object = (resource.is_kubernetes and not is_secret) or resource.acts_as("ConfigFiles")
    if resource.secrets is None or is_other_object:
        return
    for path, text in texts_in({key: each for key, each in resource.props.items() if not key.startswith("__")}):
        if is_secret and path[0] not in {"data", "stringData"}:
            continue
        kind = "a value of a Secret" if is_secret else kind_of(text) or _named(_underscored(path[-1]), text)
        if kind and not resource.is_secret(path):
            yield path, kind


def _underscored(key: str | int) -> str:
    """Return a key with '_' between its words, as in `accessKey`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(key))


MARKED_SECRETS = ResourcePolicy(
    name="marked-secrets",
    description="Credentials in inputs are marked as secret, so that Pulumi encrypts them in its state.",
    violated_by="a password, key, token or kubeconfig in an input without `pulumi.Output.secret`; a plain value in "
    "the `data` of a Secret",
    cure="Mark it: pulumi.Output.secret(...) in the program, or `pulumi config set --secret`.",
    levels=levels("remediate", "remediate", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("secrets", "state"),
    check=_unmarked,
    remediate=_marks,
    needs_marks=True,
)
