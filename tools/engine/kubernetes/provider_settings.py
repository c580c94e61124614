"""Inputs of a `kubernetes` provider, and its kubeconfig."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tools.console import UserError
from tools.engine.protocol import unsupported

_NAMES = {"kubeconfig", "context", "namespace", "clusterIdentifier"}
_SWITCHES = {
    "enableConfigMapMutable": "PULUMI_K8S_ENABLE_CONFIGMAP_MUTABLE",
    "enableSecretMutable": "PULUMI_K8S_ENABLE_SECRET_MUTABLE",
    "enablePatchForce": "PULUMI_K8S_ENABLE_PATCH_FORCE",
}
"""Inputs that are on or off, and the variables that replace missing inputs."""
_ALWAYS = {"enableServerSideApply": True}
_WITHOUT_EFFECT = {"suppressDeprecationWarnings", "suppressHelmHookWarnings"}  # there are no such warnings here


@dataclass(frozen=True, kw_only=True)
class KubernetesSettings:
    """Inputs of a provider.

    Attributes:
        kubeconfig: Path or content; empty for the ambient one.
        context: The kubeconfig's context; empty for its current one.
        namespace: Namespace of objects that name none; empty for the context's.
        config_map_mutable: Changed data of a ConfigMap is an update, not a replacement.
        secret_mutable: The same for Secrets.
        patch_force: Take over fields of other managers.
    """

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    config_map_mutable: bool = False
    secret_mutable: bool = False
    patch_force: bool = False


def settings_of(given: Mapping[str, object]) -> KubernetesSettings:
    """Read the inputs of an explicit provider, or `kubernetes:*` of the configuration for the default one.

    Raises:
        UserError: An input is not supported; the message names it.
    """
    given = {key: value for key, value in given.items() if value not in {None, ""} and key != "version"}
    known = _NAMES | _SWITCHES.keys() | _ALWAYS.keys() | _WITHOUT_EFFECT
    refused = sorted(given.keys() - known)
    refused += [key for key, only in _ALWAYS.items() if _is_on(given.get(key, only)) != only]
    if refused:
        raise UserError(unsupported(f"{', '.join(refused)} on the kubernetes provider: not supported"))

    def switch(name: str) -> bool:
        return _is_on(given.get(name, os.environ.get(_SWITCHES[name], "")))

    kubeconfig = given.get("kubeconfig", "")
    return KubernetesSettings(
        kubeconfig=kubeconfig if isinstance(kubeconfig, str) else json.dumps(kubeconfig),
        context=str(given.get("context", "")),
        namespace=str(given.get("namespace", "")),
        config_map_mutable=switch("enableConfigMapMutable"),
        secret_mutable=switch("enableSecretMutable"),
        patch_force=switch("enablePatchForce"),
    )


def _is_on(value: object) -> bool:
    return value is True or value == "true"


@dataclass(frozen=True, kw_only=True)
class Kubeconfig:
    """A kubeconfig and the context chosen in it.

    Attributes:
        source: Origin, for messages.
        path: File; None for a kubeconfig given as text.
        content: Parsed content.
        context: Name of the chosen context.
        namespace: Namespace of that context.
        cluster: Entry of that context's cluster, the identity of a cluster.
    """

    source: str
    path: Path | None
    content: dict[str, Any]
    context: str
    namespace: str
    cluster: Mapping[str, object]


def load(settings: KubernetesSettings, environment: Mapping[str, str]) -> Kubeconfig:
    """Find and read the kubeconfig.

    Raises:
        UserError: The kubeconfig is missing, is broken, or has no such context.
    """
    given = settings.kubeconfig
    ambient = environment.get("KUBECONFIG") or os.environ.get("KUBECONFIG") or ""
    path: Path | None = None
    if given and "\n" not in given and not given.lstrip().startswith("{"):
        path = Path(given).expanduser()
    elif not given:
        path = Path(ambient or "~/.kube/config").expanduser()
    source = str(path) if path else "the provider's kubeconfig"
    advice = "Set KUBECONFIG to the file of your cluster."
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8") if path else given)
    except OSError as error:
        raise UserError(f"kubeconfig {source}: {error.strerror}. {advice}") from None
    except yaml.YAMLError:
        raise UserError(f"kubeconfig {source} is not YAML. {advice}") from None
    if not isinstance(content, dict):
        raise UserError(f"kubeconfig {source} has no clusters. {advice}")
    name = settings.context or str(content.get("current-context") or "")
    context = _entry(content, "contexts", name, "context")
    if context is None:
        known = ", ".join(str(entry.get("name")) for entry in content.get("contexts") or []) or "none"
        raise UserError(f"kubeconfig {source} has no context {name!r}; it has: {known}. {advice}")
    return Kubeconfig(
        source=source,
        path=path,
        content=content,
        context=name,
        namespace=str(context.get("namespace") or "default"),
        cluster=_entry(content, "clusters", str(context.get("cluster")), "cluster") or {},
    )


def _entry(content: Mapping[str, Any], section: str, name: str, key: str) -> dict[str, object] | None:
    found = next((entry for entry in content.get(section) or [] if entry.get("name") == name), None)
    return None if found is None else dict(found.get(key) or {})


def other_cluster(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    """Return True if new inputs point a provider to another cluster, so that its objects must be replaced.

    The rule of pulumi-kubernetes: `clusterIdentifier` decides if both have one, else the cluster's entry in the given
    kubeconfigs; an ambient kubeconfig is not compared.
    """
    before, after = old.get("clusterIdentifier"), new.get("clusterIdentifier")
    if before and after:
        return before != after
    if not old.get("kubeconfig") or not new.get("kubeconfig"):
        return False
    try:
        olds, news = (load(settings_of(inputs), {}) for inputs in (old, new))
    except UserError:
        return False  # a missing file decides nothing
    return olds.cluster != news.cluster
