"""Metrics of a test cluster, as its exporter serves them."""

from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.slurm import Slurm

_SCRAPE = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:9341/metrics', timeout=10).read().decode())"


def exposition(slurm: Slurm) -> str:
    """Return what the exporter serves."""
    return slurm.exec("metrics-0", "exporter", "python3", "-c", _SCRAPE)


def scraped(slurm: Slurm) -> dict[str, float]:
    """Return the metrics that the exporter serves, by their names and labels in alphabetical order."""
    return {
        f"{sample.name}{{{labels}}}" if labels else sample.name: sample.value
        for family in text_string_to_metric_families(exposition(slurm))
        for sample in family.samples
        for labels in [",".join(f'{key}="{value}"' for key, value in sorted(sample.labels.items()))]
    }
