"""Policies on credentials: Kubernetes holds them only in Secrets, and Pulumi's state holds them encrypted."""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from soperator_pulumi.policy.definition import (
    MARK_AS_SECRET,
    Circumstances,
    Edit,
    Finding,
    PolicySettings,
    ResourcePolicy,
)
from soperator_pulumi.policy.levels import PolicySeverity, levels
from soperator_pulumi.policy.manifests import objects_in, readable, values_of_secret
from soperator_pulumi.policy.named_values import (
    kind_by_name,
    kind_in_text,
    kind_of_pair,
    kinds_in_words,
    names_credential,
)
from soperator_pulumi.policy.pod_view import pods_of
from soperator_pulumi.policy.value_tree import Path, listed, look, mapped, texts_in
from soperator_pulumi.policy.view import ResourceView

_CONTENTS = (
    ("a private key", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----"),
    ("credentials of a kubeconfig", r"""\bclient-key-data["']?\s*:"""),
    ("credentials of a kubeconfig", r"""kind["']?:\s*["']?Config\b""", r"\btoken:"),
    ("credentials of a registry", r"""["']?auths["']?\s*:""", r"""["']?(auth|password)["']?\s*:\s*["']?[^\s"'{}]"""),
    ("a signed token", r"(?<![\w-])eyJ[\w-]{8,2000}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    ("a token of a forge", r"\b(gh[pousr]_\w{36,}|github_pat_\w{22,}|glpat-[\w-]{20,}|hf_\w{30,})"),
    (
        "a token of a service",
        r"\b(xox[abeoprs]-[\w-]{20,}|sk-(ant|proj|svcacct)-[\w-]{20,}|npm_\w{36}|dckr_pat_[\w-]{20,}|hvs\.[\w-]{20,})",
    ),
    ("a token of a service", r"https://hooks\.slack\.com/(services|workflows)/\w+/\w+/\w{16,}"),
    (
        "a password in a command",
        r"\bcurl\b[^\n;|&]{0,300}?\s(-u|--user)[\s=]{0,3}[\"']?[\w.@-]{1,64}:(?!\W|(?i:pass(word)?|secret|token)\b)[^\s\"']",
    ),
    (
        "a password in a command",
        r"\b(mysql|mysqldump|mysqladmin|mariadb|mariadb-dump|mariadb-admin)\b[^\n;|&]{0,300}?\s-p(?![\"']?[$\s=<{\\`]|$)\S",
    ),
    ("a password in a command", r"\bsshpass\s+-p\s*[\"']?(?![\"'$\s])\S"),
    ("an access key of a cloud", r"\b((AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{35})\b"),
    ("a hash of a password", r"\$(1|5|6|7|y|2[aby])\$[./\w$=,]{20,}"),
    ("a password of Slurm", r"(?im)^[^\S\n]*(AccountingStoragePass|StoragePass|JobCompPass)[^\S\n]*=[^\S\n]*[^\s#/]"),
    ("a header with a credential", r"(?i)\bauthorization[\"']?\s{0,9}[:=]\s{0,9}[\"']?(basic|bearer) [\w+/=.~-]{8,}"),
    ("a password in an address", r"\b[\w.-]{1,64}:(?!\$[({])[^\s:@/]{1,200}@(tcp|unix)\("),
    ("a password of a login", r"\bmachine\s{1,9}\S{1,253}\s{1,9}login\s{1,9}\S{1,64}\s{1,9}password\s{1,9}[^\s$<{]"),
    ("a password of a login", r"(?m)^[^:\s#]{1,253}:(5432|6432):[^:\s]{1,64}:[^:\s]{1,64}:[^\s:$<{*]+$"),
    ("a password in an address", r"\b[a-z][a-z0-9+]{1,20}://[^\s:@/]{0,100}:(?!\$[({])[^\s:@/]{1,200}@\w"),
)
"""Kinds of credentials, with patterns that must all match. Every pattern takes linear time."""

_PATTERNS = [(kind, [*map(re.compile, patterns)]) for kind, *patterns in _CONTENTS]

_LOCATION = re.compile(r"[\w.-]+(/[\w.-]+)+|see\s.*")
"""Place of a credential in a store, such as `database/creds/app` after Vault's annotations, or a hint at one."""

_SHORTEST_COPY = 8
"""Shortest marked value whose copies count: shorter texts are elsewhere by chance. In characters."""

_RANDOM_BYTES = "random:index/randomBytes:RandomBytes"
"""Type whose id is the base64 form of the bytes:
https://www.pulumi.com/registry/packages/random/api-docs/randombytes/"""

_VALUE_IS_ID = re.compile(r"random:index/random(Id|Pet|String|Uuid|Uuid4|Uuid7):")
"""Types whose id is also the generated value. They are meant for names, and their outputs are not secret."""

_DATA = "a value of a Secret"

_MOST_LEVELS = 4
"""Levels of texts with objects that are judged: JSON within JSON within a manifest."""

_MARKED = "a value that the program marks as secret"

_NOT_SPECIFIED = ("apiVersion", "kind", "metadata", "status")
"""Parts of an object that are not specifications."""

_STORAGE = ("PersistentVolume", "StorageClass")
"""Kinds with settings of a driver: `volumeAttributes`, `parameters`, `mountOptions`."""

_CALLS = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle")
"""Parts of a container with commands and headers."""


def kind_of(text: str) -> str | None:
    """Return the kind of credential that a text holds, never its value; None if it holds none."""
    return next((kind for kind, patterns in _PATTERNS if all(pattern.search(text) for pattern in patterns)), None)


def _kind_in(text: str, levels: int = _MOST_LEVELS) -> str | None:
    """Return the kind of credential in a file, script, or program, or in the objects that it holds."""
    objects = objects_in(text) if levels else []
    found = _kinds_in(readable(objects), levels - 1) if objects else iter(filter(None, [kind_in_text(text)]))
    return kind_of(text) or next(found, None)


def _kinds_in(objects: object, levels: int) -> Iterator[str]:
    """Yield the kinds of credential in objects: in their texts, by name, in commands, and in manifests of Secrets."""
    for path, text in texts_in(objects):
        name = next((key for key in reversed(path) if isinstance(key, str)), "")
        yield from filter(None, (kind_of_pair(name, text), _kind_in(text, levels)))
    for path, part in _parts(objects, ()):
        yield from (_DATA for _ in values_of_secret(part))
        if isinstance(part, list):
            yield from filter(None, kinds_in_words(part))
        elif isinstance(text := look(part, "value"), str):
            name = str(look(part, "name"))
            yield from filter(None, (kind_of(f"{name}: {text}"), kind_of_pair(name, text)))
        else:
            yield from (kind for _, kind in _in_command(path, mapped(part)))


def _leaked(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    found = [*_in_files(resource), *_in_pods(resource), *_in_metadata(resource), *_in_others(resource)]
    for path, kind in dict(found).items():
        yield Finding(resource, path, f"holds {kind}, readable for everyone who may read the object")


def _in_files(resource: ResourceView) -> Iterator[tuple[Path, str]]:
    groups = ("data", "binaryData") if resource.is_kubernetes and resource.kind == "ConfigMap" else ()
    for group in groups or (("files",) if resource.acts_as("ConfigFiles") else ()):
        for path, text in texts_in(look(resource.props, group), (group,)):
            plain = _decoded(text) if group == "binaryData" else text
            if kind := _kind_in(plain) or kind_by_name(str(path[-1]), plain):
                yield path, kind
            elif resource.is_secret(path):
                yield path, _MARKED


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text).decode(errors="replace")
    except ValueError:
        return text


def _in_pods(resource: ResourceView) -> Iterator[tuple[Path, str]]:
    for pod in pods_of(resource):
        for path, container in pod.containers():
            for index, variable in enumerate(listed(look(container, "env"))):
                name, value = look(variable, "name"), look(variable, "value")
                where = (*path, "env", index, "value")
                if isinstance(value, str) and (kind := _kind_in(value) or kind_by_name(str(name), value)):
                    yield where, kind
                elif value is not None and resource.is_secret(where):
                    yield where, _MARKED
            for group in ("command", "args"):
                yield from _in_words((*path, group), listed(look(container, group)))
            yield from _in_command(path, container)
            for group in _CALLS:
                yield from _in_tree(look(container, group), (*path, group))


def _in_words(path: Path, words: Sequence[object]) -> Iterator[tuple[Path, str]]:
    """Yield the credentials of a command line: `--token=abc`, `--token abc`, and those in a script for a shell."""
    for index, (word, named) in enumerate(zip(words, kinds_in_words(words), strict=True)):
        if kind := (kind_of(word) if isinstance(word, str) else None) or named:
            yield (*path, index), kind


def _in_command(path: Path, container: Mapping[str, object]) -> Iterator[tuple[Path, str]]:
    """Yield the last list of a command's words if only all of them together hold a credential: `mysql`, `-pabc`."""
    groups = {group: listed(look(container, group)) for group in ("command", "args")}
    words = [word for group in groups.values() for word in group if isinstance(word, str)]
    if not any(map(kind_of, words)) and (kind := kind_of(" ".join(words))):
        yield (*path, "args" if groups["args"] else "command"), kind


def _in_metadata(resource: ResourceView) -> Iterator[tuple[Path, str]]:
    """Yield the credentials in labels and annotations of an object, and of the pods, claims, and Jobs that it makes."""
    if resource.is_group:  # its objects are separate resources
        return
    for path, part in _parts(resource.props, ()):
        for group in ("annotations", "labels") if path[-1:] == ("metadata",) else ():
            yield from _in_named(look(part, group), (*path, group))


def _in_named(texts: object, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the credentials in labels or annotations, by content, by name, and in texts of settings or objects."""
    for where, text in texts_in(mapped(texts), path):
        name = str(where[-1]).rpartition("/")[2]
        named = None if _LOCATION.fullmatch(text) else kind_of_pair(name, text)
        if kind := named or _kind_in(text):
            yield where, kind


def _in_others(resource: ResourceView) -> Iterator[tuple[Path, str]]:
    """Yield the credentials in custom resources, charts and storage, which Kubernetes also keeps in plain text."""
    if not resource.is_custom and not (resource.is_kubernetes and resource.kind in _STORAGE):
        return
    for part, value in readable(resource.props).items():
        found = [] if part in _NOT_SPECIFIED or part.startswith("__") else _in_tree(value, (part,))
        for path, kind in found:
            if not resource.is_secret(path):
                yield path, kind


def _in_tree(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield credentials found by content, by key, as `{name: ..., value: ...}`, and in lists of words."""
    for where, text in texts_in(value, path):
        if kind := kind_of(text) or kind_by_name(str(where[-1]), text) or ("\n" in text and _kind_in(text)):
            yield where, kind
    for where, part in _parts(value, path):
        yield from (((*where, *inner), _DATA) for inner in values_of_secret(part))
        if isinstance(part, list):
            yield from _in_words(where, part)
        elif isinstance(text := look(part, "value"), str):
            name = str(look(part, "name"))
            if kind := kind_of(f"{name}: {text}") or kind_by_name(name, text):
                yield (*where, "value"), kind


def _parts(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    """Yield all mappings and lists in a tree."""
    inner: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, Mapping):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    else:
        return
    yield path, value
    for key, item in inner:
        yield from _parts(item, (*path, key))


SECRETS_IN_SECRETS = ResourcePolicy(
    name="secrets-in-secrets",
    description="Credentials are kept in Secrets: in no ConfigMap, environment, command line, annotation or label.",
    violated_by="a munge key, private key, kubeconfig, token or password in a ConfigMap, in a container's `env`, "
    "`command` or `args`, in an annotation or label, in a custom resource or in the values of a chart; "
    "`WANDB_API_KEY` in `node_sets[].environment`",
    cure="Put it into a Secret, and mount that, or refer to it with valueFrom.secretKeyRef. A key for jobs belongs "
    "into a file in its user's home.",
    levels=levels("mandatory", "mandatory", "mandatory", "mandatory"),
    severity=PolicySeverity.CRITICAL,
    tags=("secrets", "security"),
    check=_leaked,
)


def _unmarked(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Finding]:
    for path, kind in _plain(resource):
        yield Finding(resource, path, f"holds {kind} as a plain value, so Pulumi's state shows it")
    named = _VALUE_IS_ID.match(resource.type) and names_credential(resource.name)
    if resource.type == _RANDOM_BYTES or named:
        text = (
            "generates a credential that is the id of its resource, and Pulumi does not encrypt ids. Use RandomPassword"
        )
        yield Finding(resource, ("id",), text)


def _marks(resource: ResourceView, _run: Circumstances, _settings: PolicySettings) -> Iterator[Edit]:
    for path, _ in _plain(resource):
        yield Edit(path, MARK_AS_SECRET)


def _plain(resource: ResourceView) -> Iterator[tuple[Path, str]]:
    """Yield credentials that are not marked as secret.

    Kubernetes objects other than Secrets, and ConfigFiles, violate `secrets-in-secrets` with them.
    """
    yield from _copies(resource)
    is_secret = resource.is_kubernetes and resource.kind == "Secret"
    is_other_object = (resource.is_kubernetes and not is_secret) or resource.acts_as("ConfigFiles")
    if resource.secrets is None or is_other_object:
        return
    for path, text in texts_in({key: value for key, value in resource.props.items() if not key.startswith("__")}):
        if is_secret and path[0] not in {"data", "stringData"}:
            continue
        kind = _DATA if is_secret else kind_of(text) or kind_by_name(str(path[-1]), text)
        if kind and not resource.is_secret(path):
            yield path, kind


def _copies(resource: ResourceView) -> Iterator[tuple[Path, str]]:
    """Yield plain copies of texts that are marked as secret elsewhere in the same resource."""
    texts = [*texts_in(resource.props)]
    marks = resource.secrets or frozenset()
    marked = {text for path, text in texts if (*resource.place, *path) in marks and len(text) >= _SHORTEST_COPY}
    for path, text in texts:
        if text in marked and not resource.is_secret(path):
            yield path, "a copy of a value that is marked as secret"


MARKED_SECRETS = ResourcePolicy(
    name="marked-secrets",
    description="Credentials in inputs are marked as secret, so that Pulumi encrypts them in its state; no id is a "
    "credential.",
    violated_by="a password, key, token or kubeconfig in an input without `pulumi.Output.secret`; a plain value in "
    "the `data` of a Secret; a `RandomBytes`, or a `RandomString` with the name of a password",
    cure="Mark it: pulumi.Output.secret(...) in the program, or `pulumi config set --secret`. Generate it with "
    "RandomPassword.",
    levels=levels("remediate", "remediate", "mandatory", "mandatory"),
    severity=PolicySeverity.HIGH,
    tags=("secrets", "state"),
    check=_unmarked,
    remediate=_marks,
    needs_marks=True,
)
