"""A real Kubernetes on one bare machine, for trials and tests."""

from tools.kube.embedded_kubernetes import EmbeddedKubernetes
from tools.kube.settings import Settings

__all__ = ["EmbeddedKubernetes", "Settings"]
