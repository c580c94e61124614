"""Access to a Kubernetes cluster: a kubeconfig and a context in it."""

from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Access:
    """A kubeconfig, as content or path, and a context. If both are missing, the ambient KUBECONFIG applies."""

    kubeconfig: str | None = None
    context: str | None = None

    def __repr__(self) -> str:
        return f"Access(context={self.context!r})"  # a kubeconfig holds credentials

    def server(self) -> str:
        """Return the address of the API server in the kubeconfig; empty if none can be read."""
        if self.kubeconfig is None:
            return ""
        try:
            path = Path(self.kubeconfig).expanduser()
            content = yaml.safe_load(self.kubeconfig if is_content(self.kubeconfig) else path.read_text())
            contexts = {context["name"]: context["context"]["cluster"] for context in content["contexts"]}
            clusters = {cluster["name"]: cluster["cluster"]["server"] for cluster in content["clusters"]}
            return str(clusters[contexts[self.context or content["current-context"]]]).rstrip("/")
        except (yaml.YAMLError, OSError, LookupError, TypeError, ValueError, RuntimeError):
            return ""


def is_content(kubeconfig: str) -> bool:
    """Return True if the text is the content of a kubeconfig, False if it is a path. JSON may be on a single line."""
    return "\n" in kubeconfig or kubeconfig.lstrip().startswith("{")
