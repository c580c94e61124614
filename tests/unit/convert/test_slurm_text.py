"""Text of slurm.conf in the input is read as Slurm reads it."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from soperator_pulumi.convert import Converted, Fate
from soperator_pulumi.convert.slurm_text import lines, settings
from tests.unit.convert.conversions import converted

WORDS = st.from_regex(r"[A-Za-z]{1,6}=[a-z0-9,]{1,6}", fullmatch=True)


def of_text(folder: Path, conf: str, **values: Any) -> Converted:
    size = {"limits": {"cpu": 4, "memory": "8Gi"}}
    sets = {name: {"slurmd": {"resources": size}} for name in ("cpu", "gpu")}
    return converted(folder, yaml.safe_dump({"controller": {"extraConf": conf}, "nodesets": sets, **values}))


def fates(conversion: Converted) -> dict[str, Fate]:
    return {
        match[1]: entry.fate
        for entry in conversion.entries
        if (match := re.search(r"extraConf \((.*)\)", entry.leaf.path))
    }


@given(st.lists(st.lists(WORDS, min_size=1), max_size=4), st.data())
def test_lines_continued_at_any_place_are_the_same_settings(text: list[list[str]], data: st.DataObject) -> None:
    whole = "\n".join(" ".join(line) for line in text)
    cuts = data.draw(st.sets(st.integers(0, max(len(whole) - 1, 0)), max_size=6))
    continued = "".join(f"\\\n{letter}" if index in cuts else letter for index, letter in enumerate(whole))

    assert [settings(line) for line in lines(continued)] == [settings(line) for line in lines(whole)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A=1 \\  \n B=2\nC=3", ["A=1  B=2", "C=3"]),
        ("A=1 # not continued \\\nB=2", ["A=1", "B=2"]),
        ("A=1\\\\\nB=2", ["A=1\\\\", "B=2"]),
        ("A=1 \\", ["A=1"]),
    ],
)
def test_only_an_odd_backslash_at_the_end_continues_a_line(text: str, found: list[str]) -> None:
    assert list(lines(text)) == found


def test_partitions_have_the_defaults_of_the_lines_before_them(tmp_path: Path) -> None:
    conf = """
PartitionName=early Nodes=cpu
PartitionName=DEFAULT Nodes=ALL MaxTime=60 State=UP
PartitionName=late Default=YES MaxTime=90
PartitionName=default State=DRAIN OverSubscribe=NO
PartitionName=last Nodes=gpu
PartitionName=DEFAULT LLN=YES
"""
    conversion = of_text(tmp_path, conf)

    assert conversion.cluster["partitions"] == [
        {"name": "early"},
        {"name": "late", "default": True, "options": {"MaxTime": "90", "State": "UP"}},
        {"name": "last", "options": {"MaxTime": "60", "State": "DRAIN", "OverSubscribe": "NO"}},
    ]
    assert [item["partitions"] for item in conversion.cluster["node_sets"]] == [["early", "late"], ["late", "last"]]
    found = fates(conversion)
    assert Fate.UNKNOWN not in found.values()
    assert found["PartitionName=DEFAULT LLN"] is Fate.NOT_NEEDED


def test_the_last_default_partition_is_the_default(tmp_path: Path) -> None:
    conversion = of_text(tmp_path, "PartitionName=a Nodes=ALL Default=YES\nPartitionName=b Nodes=ALL Default=YES\n")

    assert conversion.cluster["partitions"] == [{"name": "a"}, {"name": "b", "default": True}]
    assert fates(conversion)["PartitionName=a Default"] is Fate.NOT_NEEDED


def test_a_stack_says_that_it_has_a_default_partition_and_the_input_none(tmp_path: Path) -> None:
    assert "Here, a is the default" in of_text(tmp_path, "PartitionName=a Nodes=ALL").report()
    assert "Here, " not in of_text(tmp_path, "PartitionName=a Nodes=ALL Default=NO").report()


def test_a_line_of_nodes_is_no_list_of_parameters(tmp_path: Path) -> None:
    conversion = of_text(tmp_path, "NodeName=n[1-4] CPUs=4 Features=a\nInclude other.conf\nMinJobAge=2\n")

    assert conversion.cluster["slurm"]["extra"] == {"MinJobAge": "2"}
    texts = [entry.text for entry in conversion.entries if entry.fate is Fate.NOT_POSSIBLE]
    assert len(texts) == 5
    assert {text.partition(" ")[0] for text in texts} == {"NodeName", "Include"}


def test_rules_and_records_of_accounting_are_keys_of_accounting(tmp_path: Path) -> None:
    conf = "AccountingStorageEnforce=limits,QOS,nosteps\nAccountingStoreFlags=job_script\nMaxNodeCount=64\n"
    conversion = of_text(tmp_path, conf, accounting={"enabled": True})

    accounting = conversion.cluster["accounting"]
    assert (accounting["enforce"], accounting["store"]) == (["limits", "qos"], ["job_script"])
    assert conversion.cluster["slurm"]["max_nodes"] == 64
    assert fates(conversion)["AccountingStorageEnforce nosteps"] is Fate.NOT_POSSIBLE
    assert fates(of_text(tmp_path, conf))["AccountingStoreFlags"] is Fate.NOT_NEEDED


def test_a_list_loses_only_the_entry_that_it_may_not_have(tmp_path: Path) -> None:
    conversion = of_text(tmp_path, "PrologFlags=Contain,X11\nGresTypes=gpu\nSelectType=select/linear\n")

    assert conversion.cluster["slurm"]["extra"] == {"PrologFlags": "Contain"}
    assert fates(conversion) == {
        "PrologFlags Contain": Fate.TAKEN,
        "PrologFlags X11": Fate.NOT_POSSIBLE,
        "GresTypes": Fate.NOT_NEEDED,
        "SelectType": Fate.NOT_POSSIBLE,
    }
