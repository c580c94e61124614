"""Images of the operator, Prometheus and kube-state-metrics for the charts of tests, built from the Go module proxy."""

from pathlib import Path

from tools.kube import archives, binaries
from tools.kube.binaries import Binary
from tools.kube.embedded_kubernetes import EmbeddedKubernetes
from tools.paths import cache_dir

REGISTRY = "localhost/tests"
"""Value of `global.imageRegistry`: all images of the chart, by their own names and tags, come from there."""

_MODULE = Path(__file__).parent / "monitoring_go"
_OPERATOR = "github.com/prometheus-operator/prometheus-operator"
_PROMETHEUS = "github.com/prometheus/prometheus"
_METRICS = "k8s.io/kube-state-metrics/v2"
# Of all that Prometheus finds targets in, the operator uses Kubernetes alone: a fifth of the packages is left out.
_TAGS = ("remove_all_sd", "enable_kubernetes_sd")

_IMAGES = {
    "prometheus-operator/prometheus-operator:v0.93.1": Binary(
        "operator", _OPERATOR, package=f"{_OPERATOR}/cmd/operator", tags=_TAGS, module=_MODULE
    ),
    "prometheus-operator/prometheus-config-reloader:v0.93.1": Binary(
        "prometheus-config-reloader",
        _OPERATOR,
        package=f"{_OPERATOR}/cmd/prometheus-config-reloader",
        tags=_TAGS,
        module=_MODULE,
    ),
    "prometheus/prometheus:v3.14.0-distroless": Binary(
        "prometheus", _PROMETHEUS, package=f"{_PROMETHEUS}/cmd/prometheus", tags=_TAGS, module=_MODULE
    ),
    "kube-state-metrics/kube-state-metrics:v2.20.0": Binary(
        "kube-state-metrics", _METRICS, package=_METRICS, tags=_TAGS, module=_MODULE
    ),
}
"""Binary of each image, by the name and tag that the chart gives it."""


def make() -> list[Path]:
    """Return the archives of the images in the cache; build what it does not have."""
    binaries.build(*_IMAGES.values())
    return [_archive(f"{REGISTRY}/{name}", binary) for name, binary in _IMAGES.items()]


def bring(embedded: EmbeddedKubernetes) -> None:
    """Bring the images to the embedded Kubernetes, where it does not have them."""
    made, there = make(), embedded.images()
    for name, archive in zip(_IMAGES, made, strict=True):
        if f"{REGISTRY}/{name}" not in there:
            embedded.import_image(archive)


def _archive(reference: str, binary: Binary) -> Path:
    path = cache_dir() / "images" / f"tests-{binary.installed.name}.tar"
    if not path.exists():
        program = f"/bin/{binary.name}"
        content = (binary.installed / binary.name).read_bytes()
        archives.write(path, archives.archive(reference, {program: content}, entrypoint=[program]))
    return path
