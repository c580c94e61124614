"""Helm binary, built when the first program has a release."""

from pathlib import Path

from tools.kube import binaries
from tools.kube.binaries import KUBERNETES, Binary

_CHARTUTIL = "helm.sh/helm/v3/pkg/chartutil"
_MAJOR, _MINOR, *_ = KUBERNETES.version.removeprefix("v").split(".")

BINARY = Binary(
    "helm",
    "helm.sh/helm/v3",
    package="helm.sh/helm/v3/cmd/helm",
    # Unstamped, helm renders for Kubernetes 1.20 if it has no cluster to ask, and charts refuse that.
    more_link_flags=f"-X {_CHARTUTIL}.k8sVersionMajor={_MAJOR} -X {_CHARTUTIL}.k8sVersionMinor={_MINOR}",
    module=Path(__file__).parent / "go",
)
"""The helm version that pulumi-kubernetes contains.

Dependencies that the servers also have are at the same versions in its go.mod, so that Go compiles them once.
"""


def built() -> Path:
    """Return the path of helm; build it if the cache lacks it."""
    binaries.build(BINARY)
    return BINARY.installed / BINARY.name
