"""Values that helm lays over others by name: `parameters` of Argo CD, and `set` of helmfile."""

from pathlib import Path

import pytest

from soperator_pulumi.convert import Fate
from soperator_pulumi.convert.set_values import set_keys, set_value, value_at, with_value
from soperator_pulumi.convert.yaml_tree import Section, plain, read
from soperator_pulumi.errors import ConversionError
from tests.unit.convert.conversions import converted
from tests.unit.convert.test_sources import APPLICATION, NODE_SET, fates, nodes


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("a", ("a",)),
        ("a.b[0].c", ("a", "b", 0, "c")),
        (r"annotations.prometheus\.io/scrape", ("annotations", "prometheus.io/scrape")),
        ("a[1][2]", ("a", 1, 2)),
        (r"a\[0\].b", ("a[0]", "b")),
    ],
)
def test_a_name_has_the_grammar_of_helm(name: str, keys: tuple[str | int, ...]) -> None:
    assert set_keys(name, "set[0]") == keys


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".a",
        "a.",
        "a..b",
        "[0]",
        "a[x]",
        "a[-1]",
        "a[0",
        "a[0]b",
        "a.[0]",
        "a[65537]",
        pytest.param(f"a[{'9' * 5000}]", id="digits"),
        "a\\",
    ],
)
def test_a_name_that_helm_does_not_accept_is_refused_with_its_place(name: str) -> None:
    with pytest.raises(ConversionError, match=r"^set\[0\]: got the name"):
        set_keys(name, "set[0]")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("0", 0),
        ("007", "007"),
        pytest.param("9" * 5000, "9" * 5000, id="digits"),
        ("1.5", "1.5"),
        ("TRUE", True),
        ("null", None),
        ("", ""),
        ("8Gi", "8Gi"),
    ],
)
def test_a_text_has_the_type_that_helm_gives_it_and_stays_text_if_forced(text: str, value: object) -> None:
    assert set_value(text) == value
    assert type(set_value(text)) is type(value)
    assert set_value(text, as_text=True) == text


@pytest.mark.parametrize(
    ("text", "lists", "value"),
    [
        ("'{a,2}'", True, ["a", 2]),
        (r"'{a\,b,c}'", True, ["a,b", "c"]),
        ("'{}'", True, []),
        ("'{a,2}'", False, "{a,2}"),
        ("a,b", True, "a,b"),
        ("true", True, True),
        ("4", True, 4),
    ],
)
def test_only_argo_cd_reads_braces_as_a_list(text: str, lists: bool, value: object) -> None:
    (tree,) = read(f"value: {text}", "file")
    assert value_at(Section(tree).at("value"), lists=lists) == value


def test_a_value_changes_one_item_of_a_list_and_a_list_grows_by_nulls() -> None:
    (tree,) = read("a: [{b: 1, c: 2}]", "file")
    assert plain(with_value(tree, ("a", 0, "b"), 9, "set[0]", 1)) == {"a": [{"b": 9, "c": 2}]}
    assert plain(with_value(tree, ("a", 2), 9, "set[0]", 1)) == {"a": [{"b": 1, "c": 2}, None, 9]}
    assert plain(with_value(None, ("a", "b"), ["x"], "set[0]", 1)) == {"a": {"b": ["x"]}}


def test_parameters_of_argo_cd_overrule_its_values(tmp_path: Path) -> None:
    parameters = """        parameters:
          - {name: nodesets.cpu.replicas, value: "5"}
          - {name: nodesets.cpu.slurmd.resources.limits.cpu, value: "8"}
          - {name: clusterName, value: "true", forceString: true}
"""
    found = converted(tmp_path, APPLICATION + parameters)
    assert nodes(found) == [("cpu", 5, 8)]
    assert found.cluster["name"] == "true"
    fate = fates(found)
    own = "Application/slurm, spec.sources[1].helm"
    assert fate[f"{own}.parameters[0]: nodesets.cpu.replicas"] is Fate.TAKEN
    assert fate[f"{own}.valuesObject: clusterName"] is Fate.NOT_NEEDED
    assert fate["Application/slurm: spec.sources[1].helm.parameters[2].forceString"] is Fate.NOT_NEEDED


def test_values_that_helmfile_sets_by_name_overrule_its_others(tmp_path: Path) -> None:
    helmfile = f"""
releases:
  - name: slurm
    chart: oci://ghcr.io/slinkyproject/charts/slurm
    version: 1.2.1
    values:
      - {{clusterName: hpc, nodesets: {{cpu: {NODE_SET}}}}}
    set:
      - {{name: nodesets.cpu.replicas, value: 3}}
      - {{name: controller.extraConf, file: extra.conf}}
    setString:
      - {{name: clusterName, value: research}}
"""
    found = converted(tmp_path, helmfile)
    assert nodes(found) == [("cpu", 3, 4)]
    assert found.cluster["name"] == "research"
    assert fates(found)["releases[0].set[1].file"] is Fate.NOT_POSSIBLE
