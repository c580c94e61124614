"""The distribution: its version, and its public names."""

import re

from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

import soperator_pulumi
from tests.other_pythons import RELEASES
from tools import paths


def test_the_distribution_has_the_version_of_the_package() -> None:
    metadata = ProjectMetadata(str(paths.ROOT), PluginManager())
    assert metadata.version == soperator_pulumi.__version__


def test_the_pythons_that_are_named_are_those_that_tests_run_on() -> None:
    project = ProjectMetadata(str(paths.ROOT), PluginManager()).core
    named = re.findall(r"(?m)^Programming Language :: Python :: (3\.\d+)$", "\n".join(project.classifiers))
    assert named == [project.requires_python.removeprefix(">="), *RELEASES]
    row = f"| Python | {', '.join(named[:-1])} and {named[-1]} were run."
    assert row in (paths.ROOT / "docs" / "embedded-kubernetes.md").read_text()


def test_the_changelog_begins_with_what_is_unreleased() -> None:
    headings = re.findall(r"(?m)^## \[(.+?)\]", (paths.ROOT / "CHANGELOG.md").read_text())
    assert headings[0] == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", heading) for heading in headings[1:])


def test_every_public_name_is_there() -> None:
    assert sorted(soperator_pulumi.__all__) == soperator_pulumi.__all__
    assert all(getattr(soperator_pulumi, name) for name in soperator_pulumi.__all__)
