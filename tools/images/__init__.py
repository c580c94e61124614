"""Container images: tags, building, loading into the Kubernetes on this machine, pushing."""

from tools.images.builder import are_built, build
from tools.images.delivery import ImageImporter, load, push
from tools.images.recipe import references

__all__ = ["ImageImporter", "are_built", "build", "load", "push", "references"]
