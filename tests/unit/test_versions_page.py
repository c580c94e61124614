"""The page about versions of Slurm: its lists are those of the code, and its commands exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from soperator_pulumi.render.slurm_conf import MPI, slurm_conf
from soperator_pulumi.spec.slurm_parameters import (
    API_VERSIONS,
    OWNED_PARAMETERS,
    OWNED_PARTITION_OPTIONS,
    PARAMETERS,
    PARTITION_OPTIONS,
    VERSIONS,
    newer_names,
)
from tests.strategies import a_spec
from tools import images, paths
from tools.images.__main__ import main

PAGE = (paths.ROOT / "docs" / "versions.md").read_text()


def test_the_settings_that_26_05_alone_has_are_listed() -> None:
    sentence = r"Only 26\.05 has these settings of slurm\.conf: (.*?); and of partitions: (.*?)\."
    listed = re.search(sentence, PAGE, re.DOTALL)
    assert listed
    settings, options = (re.findall(r"\w+", text) for text in listed.groups())
    assert settings == sorted(name for name in newer_names(PARAMETERS, "26.05") if name.lower() not in OWNED_PARAMETERS)
    free = [name for name in newer_names(PARTITION_OPTIONS, "26.05") if name.lower() not in OWNED_PARTITION_OPTIONS]
    assert options == free


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
def test_an_example_is_a_valid_spec(example: str) -> None:
    assert a_spec(**yaml.safe_load(example)).slurm.version == "26.05"


def test_the_plugin_for_pmix_is_the_default_of_mpi_where_the_spec_says_so() -> None:
    example = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[-1]
    assert re.findall(r"(?m)^MpiDefault=.*$", slurm_conf(a_spec(**yaml.safe_load(example)))) == ["MpiDefault=pmix"]


def test_the_plugin_of_mpi_is_the_one_of_the_page() -> None:
    assert re.search(rf"\| `MpiDefault` \| `{MPI['24.11']}` \| `{MPI['26.05']}`", PAGE)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_versions_of_the_rest_api_are_those_of_both_pages(version: str) -> None:
    found = API_VERSIONS[version]
    assert f"| {version} | {', '.join(f'`{text}`' for text in found)} |" in (paths.ROOT / "docs/rest.md").read_text()
    assert re.search(rf"\| data formats of slurmrestd \|(.*\|)? {', '.join(found)} \|", PAGE)


def test_there_are_images_for_every_version() -> None:
    assert tuple(images.SUITES) == VERSIONS


def test_the_images_of_a_version_are_printed_by_the_command_behind_make() -> None:
    command = [
        sys.executable,
        "-m",
        "tools.images",
        "--slurm",
        "26.05",
        "--registry",
        "registry.example.org/hpc",
        "--print",
    ]
    printed = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=True).stdout
    assert yaml.safe_load(printed)["images"] == images.references("registry.example.org/hpc", slurm="26.05")


def test_the_images_of_a_source_archive_are_printed_by_the_command_behind_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "slurm-26.05.5.tar.bz2"
    archive.write_bytes(b"sources")
    monkeypatch.setattr(sys, "argv", ["images", "--slurm", "26.05", "--source", str(archive), "--print"])

    main()

    assert yaml.safe_load(capsys.readouterr().out)["images"] == images.references(slurm="26.05", source=archive)
