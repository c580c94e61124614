"""The page on shared storage: its tables, its examples, and the properties that a spec may accept."""

import json
import re
from typing import Any

import pytest
import yaml

from jail_tools.probing.catalogue import ACCEPTABLE, PROPERTIES
from jail_tools.probing.findings import StorageReport, read_report
from jail_tools.probing.seen import FindingLevel
from soperator_pulumi import parse_platform
from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.platform.shared_storage import SOURCES
from soperator_pulumi.spec.slurm import SlurmSpec
from soperator_pulumi.spec.storage import JailVolume, StateVolume
from soperator_pulumi.spec.storage_findings import StorageProperty
from tools.docs import storage_page

PAGE = storage_page.FILE.read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_table_of_systems_is_that_of_the_sources() -> None:
    assert storage_page.text() == PAGE, "run `make docs`"


def test_the_table_of_the_probe_is_that_of_its_catalogue() -> None:
    rows = [
        f"| `{row.name}` | {row.level} | {'yes' if row.name in ACCEPTABLE else 'no'} | {row.needed} | "
        f"{row.consequence} | {row.cure} |"
        for row in PROPERTIES
    ]
    assert re.findall(r"(?m)^\| `\w+` \| (?:refused|warning|noted) \|.*$", PAGE) == rows


def test_a_spec_accepts_what_the_probe_takes() -> None:
    assert {*StorageProperty} == ACCEPTABLE


def test_the_keys_of_the_table_are_those_of_the_spec() -> None:
    table = PAGE.partition("| key | what is created")[2].partition("\n\n")[0]
    assert re.findall(r"(?m)^\| `(\w+)` \|", table) == [*SOURCES]


@pytest.mark.parametrize("text", blocks("yaml"))
def test_an_example_is_valid(text: str) -> None:
    found: dict[str, Any] = yaml.safe_load(text)
    if "jail" in found:
        assert JailVolume.model_validate(found["jail"]["storage"]).accept
    elif "storage" in found:
        assert StateVolume.model_validate(found["storage"]["state"]).accept
        assert SlurmSpec.model_validate(found["slurm"]).extra
    else:
        assert parse_platform(found["config"]["soperator:platform"]).shared_storage


def test_the_shown_problems_are_those_of_such_a_description() -> None:
    class_ = {"system": "fsx_lustre", "parameters": {"securityGroupIds": "sg-1"}, "mount_options": ["noatime"]}
    with pytest.raises(SpecError) as refused:
        parse_platform({"shared_storage": {"storage_class": class_}})
    assert blocks("text") == [f"{refused.value}\n"]


def test_the_shown_lines_are_those_of_such_findings() -> None:
    (shown,) = blocks("console")
    headline, *lines = shown.replace("jail: storage: ", "").splitlines()
    found = {match[1]: match[2] for line in lines if (match := re.search(r"(\w+): found (.*?)(?:; needed|\. )", line))}
    assert {*found} == {"user_attributes", "capabilities"}
    assert re.match(r"nfs4: \d+ of 26 properties as needed; median .* ms, .* ms, of 100; \d+ files a second$", headline)
    for line in lines:
        name = next(item for item in found if item in line)
        (about,) = (row for row in PROPERTIES if row.name == name)
        assert about.consequence in line
        assert str(about.level) in line


def test_the_shown_json_is_a_report() -> None:
    (shown,) = blocks("json")
    report = read_report(shown)
    assert isinstance(report, StorageReport)
    assert json.loads(report.as_json({})) == json.loads(shown)
    assert report.findings[0].level is FindingLevel.OK
