"""To which Kubernetes cluster a resource of ours belongs, and how its provider finds it again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.dynamic import Config

KUBECONFIG = "kubeconfig"
CONTEXT = "context"


@dataclass(frozen=True)
class Connection:
    """What the program says about the cluster: nothing, to use the ambient KUBECONFIG."""

    kubeconfig: pulumi.Input[str] | None = None
    """Content of a kubeconfig file, or the path of one."""
    context: pulumi.Input[str] | None = None
    """A context in it."""

    def __bool__(self) -> bool:
        """Whether anything is said."""
        return self.kubeconfig is not None or self.context is not None

    def inputs(self) -> dict[str, pulumi.Input[str] | None]:
        """Return the inputs of a dynamic resource."""
        return {KUBECONFIG: self.secret_kubeconfig(), CONTEXT: self.context}

    def secret_kubeconfig(self) -> pulumi.Output[str] | None:
        """Return the kubeconfig as what Pulumi encrypts in its state, whichever resource it is given to."""
        return None if self.kubeconfig is None else pulumi.Output.secret(self.kubeconfig)


@dataclass(frozen=True)
class Access:
    """The same, known: what a provider connects with. None of both is the ambient KUBECONFIG."""

    kubeconfig: str | None = None
    context: str | None = None

    def __repr__(self) -> str:
        return f"Access(context={self.context!r})"  # a kubeconfig holds credentials


def access(props: Mapping[str, Any], config: Config | None) -> Access:
    """Return how to reach the cluster of a resource with these inputs or outputs.

    Where they say nothing, the stack's `soperator:kubeconfig` and `soperator:context` hold; then
    `kubernetes:kubeconfig` and `kubernetes:context`, which choose the cluster of Pulumi's own Kubernetes resources as
    well; and else the ambient KUBECONFIG.
    """
    order = [_said(props), _configured(config, "soperator"), _configured(config, "kubernetes")]
    return next((each for each in order if each != Access()), Access())


def with_newest_access(recorded: Mapping[str, Any], config: Config | None) -> dict[str, Any]:
    """Return outputs as they were recorded, with the newest access to the same cluster that is known.

    What was recorded may have expired, and only the stack's configuration is there when no program has run: its
    `soperator:kubeconfig` comes first. A context alone chooses one in the kubeconfig that was recorded.
    """
    configured, known = _configured(config, "soperator"), _said(recorded)
    newest = Access(configured.kubeconfig or known.kubeconfig, configured.context or known.context)
    if configured.kubeconfig:
        newest = configured
    return {**recorded, KUBECONFIG: newest.kubeconfig, CONTEXT: newest.context}


def _said(values: Mapping[str, Any]) -> Access:
    return Access(_text(values, KUBECONFIG), _text(values, CONTEXT))


def _configured(config: Config | None, namespace: str) -> Access:
    if config is None:
        return Access()
    return _said({key: config.get(f"{namespace}:{key}") for key in (KUBECONFIG, CONTEXT)})


def _text(values: Mapping[str, Any], key: str) -> str | None:
    value = values.get(key)
    return value if isinstance(value, str) and value else None
