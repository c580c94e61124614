"""docs/rest.md: its description is valid, its limits and addresses are those of the code."""

import re

import yaml

from soperator_pulumi.render import layout
from soperator_pulumi.spec.cluster import parse_cluster
from soperator_pulumi.spec.rest import RestLimitsSpec
from tests.strategies import IMAGES, a_cluster
from tools import images, paths

PAGE = (paths.ROOT / "docs" / "rest.md").read_text()
_TABLE = re.findall(r"^\| ([0-9.]+) \| (.*) \|$", PAGE, re.MULTILINE)
VERSIONS = {slurm: re.findall(r"v0\.0\.\d+", versions) for slurm, versions in _TABLE}
"""Versions of the API on the page, by the version of Slurm."""


def test_the_description_of_the_page_is_valid() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    described = yaml.safe_load(block)["config"]["soperator:cluster"]
    with_image = {**IMAGES, "rest": "registry.example/soperator/rest:1"}

    rest = parse_cluster(a_cluster(images=with_image, **described)).rest

    assert rest is not None
    assert rest.tls is not None
    assert rest.allowed_namespaces == ("portal",)


def test_the_limits_of_the_page_are_the_defaults() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d+)", PAGE, re.MULTILINE)

    assert {name: int(value) for name, value in rows} == RestLimitsSpec().model_dump()


def test_requests_go_to_the_service_of_a_cluster_by_its_port() -> None:
    addresses = re.findall(r"http://([\w.-]+):(\d+)", PAGE)

    assert {*addresses} == {("rest.hpc.svc", str(layout.REST_PORT))}


def test_each_version_of_slurm_has_its_versions_of_the_api() -> None:
    assert VERSIONS.keys() == {*images.SUITES}
    used = {*re.findall(r"/slurm(?:db)?/(v0\.0\.\d+)/", PAGE)}
    assert all(used <= {*versions} for versions in VERSIONS.values())
