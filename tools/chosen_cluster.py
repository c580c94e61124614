"""Kubernetes cluster for the commands: the embedded one, or one that the user has chosen."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tools import paths
from tools.console import UserError
from tools.kube import EmbeddedKubernetes

CONTEXT_VARIABLE = "CONTEXT"


@dataclass(frozen=True)
class ChosenCluster:
    """A Kubernetes cluster to deploy to, and the folder of its state."""

    kubeconfig: Path
    context: str | None
    """Context of the kubeconfig; None for its current one."""
    embedded: EmbeddedKubernetes | None
    """Embedded Kubernetes; None if the user has chosen a cluster."""
    state_dir: Path
    """Folder of the engine's state for this cluster."""

    def environment(self) -> dict[str, str]:
        """Return the environment variables that make every Kubernetes tool use this cluster."""
        return {"KUBECONFIG": str(self.kubeconfig)}


def choose() -> ChosenCluster:
    """Return the cluster of `KUBECONFIG` or `CONTEXT`, or the embedded Kubernetes if neither is set.

    The embedded cluster's own kubeconfig counts as not set, so that the commands still work in a shell after
    `eval "$(make -s env)"`.

    Raises:
        UserError: The kubeconfig is missing, can't be read, or has no such context.

    """
    embedded = EmbeddedKubernetes()
    chosen = os.environ.get("KUBECONFIG") or None
    context = os.environ.get(CONTEXT_VARIABLE) or None
    if (chosen is None and context is None) or chosen == str(embedded.kubeconfig):
        return ChosenCluster(embedded.kubeconfig, None, embedded, paths.state_dir() / "engine" / "embedded")
    kubeconfig = Path(chosen) if chosen else Path.home() / ".kube" / "config"
    name = context or _current_context(kubeconfig)
    _require_context(kubeconfig, name)
    folder = "context-" + re.sub(r"[^A-Za-z0-9._-]", "_", name)
    return ChosenCluster(kubeconfig, context, None, paths.state_dir() / "engine" / folder)


def _current_context(kubeconfig: Path) -> str:
    name = _read(kubeconfig).get("current-context")
    if not isinstance(name, str) or not name:
        raise UserError(
            f"{kubeconfig} has no current context. Choose one with `kubectl config use-context`, "
            f"or give {CONTEXT_VARIABLE}=NAME."
        )
    return name


def _require_context(kubeconfig: Path, name: str) -> None:
    known = [str(entry.get("name")) for entry in _read(kubeconfig).get("contexts") or []]
    if name not in known:
        raise UserError(f'{kubeconfig} has no context "{name}". It has: {", ".join(known) or "none"}.')


def _read(kubeconfig: Path) -> dict[str, Any]:
    advice = "Set KUBECONFIG to the file of your cluster, or unset it to use the embedded Kubernetes."
    if os.pathsep in str(kubeconfig):
        raise UserError(
            f"KUBECONFIG names several files ({kubeconfig}). Give one: merge them with `kubectl config view --flatten`."
        )
    try:
        content = yaml.safe_load(kubeconfig.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"The kubeconfig {kubeconfig} can't be read: {error}. {advice}") from error
    except yaml.YAMLError as error:
        raise UserError(f"The kubeconfig {kubeconfig} is not YAML. {advice}") from error
    if not isinstance(content, dict):
        raise UserError(f"The kubeconfig {kubeconfig} holds no cluster. {advice}")
    return content
