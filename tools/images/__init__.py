"""The container images: their tags, building, loading into the Kubernetes on this machine, pushing to a registry."""

from tools.images.builder import Kube, build, load
from tools.images.recipe import references

__all__ = ["Kube", "build", "load", "references"]
