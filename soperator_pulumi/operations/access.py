"""Access to a Kubernetes cluster: a kubeconfig and a context in it."""

from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Access:
    """A kubeconfig, as content or as a path, and a context. Without both, the ambient KUBECONFIG counts."""

    kubeconfig: str | None = None
    context: str | None = None

    def __repr__(self) -> str:
        return f"Access(context={self.context!r})"  # a kubeconfig holds credentials

    def server(self) -> str:
        """Return the address of the API server in the kubeconfig; empty where none can be read."""
        if self.kubeconfig is None:
            return ""
        try:
            path = Path(self.kubeconfig).expanduser()
            content = yaml.safe_load(self.kubeconfig if is_content(self.kubeconfig) else path.read_text())
            contexts = {each["name"]: each["context"]["cluster"] for each in content["contexts"]}
            clusters = {each["name"]: each["cluster"]["server"] for each in content["clusters"]}
            return str(clusters[contexts[self.context or content["current-context"]]]).rstrip("/")
        except (yaml.YAMLError, OSError, LookupError, TypeError, ValueError, RuntimeError):
            return ""


def is_content(kubeconfig: str) -> bool:
    """Return True for the content of a file, False for a path: JSON may stand in one line."""
    return "\n" in kubeconfig or kubeconfig.lstrip().startswith("{")
