"""The state on disk, and the secrets in it."""

import json
import stat
from pathlib import Path

import pytest
from pulumi.provider.experimental.property_value import PropertyValue

from tools.console import UserError
from tools.engine import encryption
from tools.engine.local.state import Resource, State, Timeouts
from tools.engine.values import properties_of


def a_resource(name: str = "r", **fields: object) -> Resource:
    return Resource(urn=f"urn:pulumi:s::p::t::{name}", type="t", custom=True, **fields)  # type: ignore[arg-type] # fields of the dataclass


SECRETIVE = a_resource(
    inputs={**properties_of({"n": 1, "l": ["x", {}]}), "s": PropertyValue("hush-hush").with_secret(True)},
    outputs={"nested": PropertyValue({"s": PropertyValue([PropertyValue("hush-hush")]).with_secret(True)})},
    id="id",
    parent="urn:pulumi:s::p::g::g",
    dependencies=("a", "b"),
    property_dependencies={"n": ("a",)},
    protect=True,
    timeouts=Timeouts(create=1.5),
    init_errors=("not ready",),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "stack.json"


def test_what_was_saved_is_loaded_again(file: Path) -> None:
    state = State.load(file, "phrase")
    state.put(SECRETIVE)
    state.begin("creating", SECRETIVE)
    again = State.load(file, "phrase")
    assert again.resources == [SECRETIVE]
    assert [(p.operation, p.resource) for p in again.pending] == [("creating", SECRETIVE)]
    assert again.identity == state.identity


def test_no_secret_is_in_it_in_plain_text_and_no_one_else_may_read_it(file: Path) -> None:
    state = State.load(file, "phrase")
    state.put(SECRETIVE)
    state.save()
    assert "hush" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_another_passphrase_is_refused_without_the_right_one_in_the_message(file: Path) -> None:
    state = State.load(file, "right-phrase")
    state.save()
    with pytest.raises(UserError, match="encrypted with another passphrase") as caught:
        State.load(file, "wrong-phrase")
    assert "phrase-" not in str(caught.value)
    assert "right" not in str(caught.value)


def test_a_state_of_another_version_is_refused(file: Path) -> None:
    file.parent.mkdir()
    file.write_text(json.dumps({"version": 99}))
    with pytest.raises(UserError, match="another version"):
        State.load(file, "phrase")


def test_saving_again_changes_only_what_has_changed(file: Path) -> None:
    state = State.load(file, "phrase")
    state.put(SECRETIVE)
    state.save()
    before = file.read_text().splitlines()
    again = State.load(file, "phrase")
    again.put(a_resource("new"))
    again.save()
    assert [line.rstrip(",") for line in before[3:4]] == [file.read_text().splitlines()[4].rstrip(",")]


def test_a_broken_write_leaves_the_state_of_before(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State.load(file, "phrase")
    state.put(SECRETIVE)
    state.save()

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    state.put(a_resource("new"))
    with pytest.raises(OSError, match="No space"):
        state.save()
    assert State.load(file, "phrase").resources == [SECRETIVE]


def test_what_is_done_comes_before_what_is_not_yet(file: Path) -> None:
    state = State.load(file, "phrase")
    a, b, c = (a_resource(name) for name in "abc")
    state.resources = [a, b, c]
    new_c = a_resource("c", id="new")
    state.put(new_c, c)
    assert state.resources == [new_c, a, b]
    state.put(a, a)
    assert state.resources == [new_c, a, b]
    state.remove(new_c)
    state.put(a_resource("d"))
    assert [r.name for r in state.resources] == ["a", "d", "b"]


def test_what_waits_for_its_deletion_is_not_found_by_its_name(file: Path) -> None:
    state = State.load(file, "phrase")
    old, new = a_resource(delete=True), a_resource(id="new")
    state.resources = [old]
    assert state.find(old.urn) is None
    state.put(new)
    assert state.find(old.urn) is new


def test_an_ended_operation_is_no_longer_pending(file: Path) -> None:
    state = State.load(file, "phrase")
    first, second = state.begin("creating", a_resource()), state.begin("creating", a_resource())
    state.end(first)
    assert state.pending == [second]


def test_the_folders_own_passphrase_is_made_once_and_for_its_owner_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"):
        monkeypatch.delenv(name, raising=False)
    first = encryption.passphrase(tmp_path / "state")
    assert len(first) >= 32
    assert encryption.passphrase(tmp_path / "state") == first
    assert stat.S_IMODE((tmp_path / "state" / "passphrase").stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["passphrase"]
    assert encryption.passphrase(tmp_path / "other") != first


def test_the_users_passphrase_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
    own = tmp_path / "own"
    own.write_text("from a file\n")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", str(own))
    assert encryption.passphrase(tmp_path) == "from a file"
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "from the environment")
    assert encryption.passphrase(tmp_path) == "from the environment"


def test_a_passphrase_file_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", str(tmp_path / "none"))
    with pytest.raises(UserError, match=r"PULUMI_CONFIG_PASSPHRASE_FILE: .*none is not a file"):
        encryption.passphrase(tmp_path)


def test_what_an_earlier_run_has_made_is_behind_all_that_it_needs(file: Path) -> None:
    state = State.load(file, "phrase")
    state.resources = [a_resource("a"), a_resource("b")]
    state.append(a_resource("found"))
    assert [resource.name for resource in state.resources] == ["a", "b", "found"]


def test_a_successor_that_an_earlier_run_has_made_is_before_what_needs_it(file: Path) -> None:
    state = State.load(file, "phrase")
    replaced = a_resource("r", delete=True)
    state.resources = [a_resource("a"), replaced, a_resource("dependent")]
    state.append(a_resource("r"), replaced)
    assert [(resource.name, resource.delete) for resource in state.resources] == [
        ("a", False), ("r", True), ("r", False), ("dependent", False),
    ]  # fmt: skip
