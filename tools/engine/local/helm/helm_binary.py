"""Binary of helm, built when the first program has a release."""

from pathlib import Path

from tools.kube import binaries
from tools.kube.binaries import KUBERNETES, Binary

_CHARTUTIL = "helm.sh/helm/v3/pkg/chartutil"
_MAJOR, _MINOR, *_ = KUBERNETES.version.removeprefix("v").split(".")

BINARY = Binary(
    "helm",
    "helm.sh/helm/v3",
    package="helm.sh/helm/v3/cmd/helm",
    # Unstamped, helm renders for Kubernetes 1.20 where it has no cluster to ask, and charts refuse that.
    more_link_flags=f"-X {_CHARTUTIL}.k8sVersionMajor={_MAJOR} -X {_CHARTUTIL}.k8sVersionMinor={_MINOR}",
    module=Path(__file__).parent / "go",
)
"""The helm that pulumi-kubernetes has in it.

Dependencies that the servers have, too, are of the same versions in its go.mod: Go compiles those once.
"""


def built() -> Path:
    """Return the path of helm; build it where the cache has none."""
    binaries.build(BINARY)
    return BINARY.installed / BINARY.name
