"""Values in files."""

from pathlib import Path

import pulumi
import pytest
from pulumi.provider.experimental.property_value import PropertyValue

from tools.console import UserError
from tools.engine.local.helm.value_files import read_value_files


def test_files_are_merged_map_by_map_and_later_ones_win(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("a: {c: 2}\nlist: [3]\n")
    assets = [pulumi.StringAsset("a: {b: 1, c: 1}\nlist: [1, 2]"), pulumi.FileAsset("b.yaml"), pulumi.StringAsset("")]
    given = PropertyValue([PropertyValue(asset) for asset in assets])
    assert read_value_files(given, tmp_path) == {"a": {"b": 1, "c": 2}, "list": [3]}
    assert read_value_files(None, tmp_path) == {}


@pytest.mark.parametrize(
    ("asset", "message"),
    [
        (pulumi.FileAsset("none.yaml"), "none.yaml: No such file"),
        (pulumi.StringAsset("a: ["), "not YAML, line 1"),
        (pulumi.StringAsset("[secret]"), "got a list, must be a map"),
        (pulumi.RemoteAsset("https://x.test"), "not supported"),
    ],
)
def test_a_wrong_file_is_named_without_its_content(tmp_path: Path, asset: pulumi.Asset, message: str) -> None:
    with pytest.raises(UserError, match="valueYamlFiles") as caught:
        read_value_files(PropertyValue([PropertyValue(asset)]), tmp_path)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)
