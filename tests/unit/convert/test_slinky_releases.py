"""Releases of Slinky's chart that a user names, for values that do not tell theirs."""

from pathlib import Path

import pytest

from soperator_pulumi.convert import Converted, convert
from soperator_pulumi.errors import ConversionError
from tests.unit.convert.conversions import written

VALUES = "clusterName: hpc\nnodesets: {plain: {}, on: {enabled: true}}\n"


def read_as(folder: Path, release: str, text: str = VALUES) -> Converted:
    return convert([written(folder, text)], release=release)


def names(conversion: Converted, key: str) -> list[str]:
    return [item["name"] for item in conversion.cluster.get(key, [])]


@pytest.mark.parametrize("release", ["0.4", "1.0.5", "v1.1"])
def test_a_named_release_with_samples_has_them(tmp_path: Path, release: str) -> None:
    conversion = read_as(tmp_path, release)

    assert names(conversion, "node_sets") == ["on", "slinky"]
    assert names(conversion, "partitions")[-1:] == ["all"]
    assert f"Read as values of the chart slurm {release.strip('v')[:3]}: --release names it." in conversion.report()


@pytest.mark.parametrize("release", ["", "1.2", "1.3.0-rc1"])
def test_later_releases_have_the_sets_of_the_values_alone(tmp_path: Path, release: str) -> None:
    conversion = read_as(tmp_path, release)

    assert names(conversion, "node_sets") == ["plain", "on"]
    assert names(conversion, "partitions") == []


def test_without_a_telling_key_the_report_names_the_option(tmp_path: Path) -> None:
    assert "--release names an earlier one" in " ".join(read_as(tmp_path, "").report().split())


def test_a_named_release_wins_over_the_keys_and_the_report_says_so(tmp_path: Path) -> None:
    conversion = read_as(tmp_path, "1.1", f"nodesetDefaults: {{}}\n{VALUES}")

    assert names(conversion, "node_sets") == ["on", "slinky"]
    assert "The input tells 1.2 or later: only it has the key nodesetDefaults." in " ".join(conversion.report().split())


@pytest.mark.parametrize("release", ["0.3", "1.4", "1.11", "1", "newest", "1.1x"])
def test_an_unknown_release_is_refused_with_those_that_are_known(tmp_path: Path, release: str) -> None:
    with pytest.raises(ConversionError) as refusal:
        read_as(tmp_path, release)

    assert f'--release: got "{release}"' in str(refusal.value)
    assert "0.4, 1.0, 1.1, 1.2, 1.3." in str(refusal.value)


def test_other_inputs_take_no_release(tmp_path: Path) -> None:
    with pytest.raises(ConversionError) as refusal:
        read_as(tmp_path, "1.1", "clusterName: hpc\nslurmNodes: {}\n")

    assert "values of soperator's Helm chart slurm-cluster" in str(refusal.value)
    assert "leave it out" in str(refusal.value)
