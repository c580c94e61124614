"""Inputs that are split, renamed, merged, or written in odd YAML have the same cluster, or are refused in words."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from soperator_pulumi.convert import Fate, convert, documents
from soperator_pulumi.errors import ConversionError
from tests.unit.convert.conversions import converted, written
from tests.unit.convert.test_sources import NODE_SET, VALUES, fates, nodes
from tests.unit.convert.test_value_files import flux, release

WHOLE = f"clusterName: hpc\nimagePullPolicy: Always\nnodesets: {{cpu: {{replicas: 2, {NODE_SET[1:]}}}\n"


@pytest.mark.parametrize("parts", [WHOLE.splitlines(keepends=True), [WHOLE], WHOLE.splitlines(keepends=True)[::-1]])
def test_values_in_one_file_or_in_a_file_for_every_key_are_the_same_cluster(tmp_path: Path, parts: list[str]) -> None:
    files = [written(tmp_path, text, f"{index}.yaml") for index, text in enumerate(parts)]

    assert convert(files).cluster == converted(tmp_path, WHOLE).cluster


@pytest.mark.parametrize(
    "change", [("\n", "\r\n"), ("clusterName", "\ufeffclusterName"), ("clusterName", "---\nclusterName")]
)
def test_line_ends_marks_and_documents_change_nothing(tmp_path: Path, change: tuple[str, str]) -> None:
    file = tmp_path / "input.yaml"
    file.write_bytes(WHOLE.replace(*change).encode())

    assert convert([file]).cluster["name"] == "hpc"
    assert nodes(convert([file])) == [("cpu", 2, 4)]


@pytest.mark.parametrize("count", ['"3"', "3.0", "3e0", "0x3", "3"])
def test_a_number_of_pods_is_whole_however_it_is_written(tmp_path: Path, count: str) -> None:
    (item,) = converted(tmp_path, WHOLE.replace("replicas: 2", f"replicas: {count}")).cluster["node_sets"]

    assert (item["replicas"], type(item["replicas"])) == (3, int)


@pytest.mark.parametrize("count", ["three", ".inf", "2.5", "-1", "[]"])
def test_what_is_no_number_of_pods_is_not_possible(tmp_path: Path, count: str) -> None:
    found = converted(tmp_path, WHOLE.replace("replicas: 2", f"replicas: {count}"))

    assert "replicas" not in found.cluster["node_sets"][0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (WHOLE.replace("replicas: 2", f"replicas: {'9' * 6000}"), "input.yaml: not valid YAML: Exceeds the limit"),
        (WHOLE.replace("clusterName: hpc", "clusterName: ENC[AES256_GCM,data:a]"), "clusterName is encrypted by sops"),
        (f"{WHOLE}sops: {{mac: 'ENC[AES256_GCM,data:a]'}}\n", "line 4: sops.mac is encrypted by sops"),
        ("apiVersion: 3\nkind: [a]\n", "among these objects: an object without a kind"),
        ("clusterName: hpc\nimages: {}\n", "unrecognized file; found keys: clusterName, images"),
    ],
)
def test_odd_input_is_refused_in_words(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConversionError) as refusal:
        converted(tmp_path, text)
    assert words in str(refusal.value)
    assert "AES256" not in str(refusal.value)


def test_a_file_of_more_than_a_release_can_hold_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_MAX_SIZE", 3 << 20)
    with pytest.raises(ConversionError, match=r"^input\.yaml: larger than 3 MiB\."):
        converted(tmp_path, WHOLE + "# a comment\n" * (3 << 17))


PATCHED: dict[str, tuple[Any, str]] = {
    "Flux": (
        flux(chart={}, values=VALUES, postRenderers=[{"kustomize": {"a": 1}}]),
        "HelmRelease/slurm: spec.postRenderers[0].kustomize.a",
    ),
    "helmfile": (release("releases", values=[VALUES], jsonPatches=[{"a": 1}]), "releases[0].jsonPatches[0].a"),
    "kustomize": ({**release("helmCharts", valuesInline=VALUES), "patches": [{"path": "a.yaml"}]}, "patches[0].path"),
}  # fmt: skip


@pytest.mark.parametrize("form", PATCHED)
def test_patches_of_what_the_chart_renders_are_lost(tmp_path: Path, form: str) -> None:
    tree, path = PATCHED[form]

    assert fates(converted(tmp_path, yaml.safe_dump(tree)))[path] is Fate.NOT_POSSIBLE
