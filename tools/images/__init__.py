"""Container images: tags, building, loading into the Kubernetes on this machine, and pushing."""

from tools.images.builder import are_built, build
from tools.images.delivery import ImageImporter, load, push
from tools.images.recipe import DEFAULT_SLURM, SUITES, references, version_of

__all__ = ["DEFAULT_SLURM", "SUITES", "ImageImporter", "are_built", "build", "load", "push", "references", "version_of"]
