"""No value of a secret file appears in a line, an error or a plain part of the state, whatever happens."""

import base64
import contextlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from soperator_pulumi.errors import ConfigRefusedError, KubernetesError, SoperatorError
from soperator_pulumi.kube.verbs import FIELD_MANAGER, Json
from soperator_pulumi.lifecycle.config_files import ConfigFilesProvider
from soperator_pulumi.lifecycle.secret_files import SecretFilesProvider
from soperator_pulumi.lifecycle.superseded import CREATED
from soperator_pulumi.operations.progress import shown_by
from tests.fakes.accounting import DENIED, POD_PATH, SECRET, SECRET_PATH, AccountingWorld
from tests.fakes.objects import NAMESPACE, NAMESPACE_PATH, SELECTOR, KilledError
from tests.fakes.pods import status_of

ID = f"{NAMESPACE}/{SECRET}/0"
PROPS = {
    "kind": "Secret",
    "namespace": NAMESPACE,
    "namespace_uid": "recorded",
    "owner": "project.dev.hpc",
    "name": SECRET,
    "labels": {"team": "hpc"},
    "annotations": {},
    "selector": SELECTOR,
    "readers": [{"component": "accounting", "container": "slurmdbd"}],
    "after_sync": "slurmdbd",
}
SECRET_OUTPUTS = {"files", "known_good"}

WORD_OF_SLURM = st.characters(codec="ascii", categories=("L", "N", "P", "S"), exclude_characters="\"'#\\=")
# Between marks that no line has: "accounti" would be found in "accounting".
passwords = st.text(WORD_OF_SLURM, min_size=8).map("~{}~".format)
texts = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=8).map("~{}~".format)


def files(password: str, key: str = "a key of 32 bytes") -> dict[str, str]:
    return {"slurmdbd.conf": f"DbdHost=accounting\nStoragePass={password}\n", "other.key": key}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> AccountingWorld:
    return a_world(monkeypatch)


def a_world(monkeypatch: pytest.MonkeyPatch) -> AccountingWorld:
    world = AccountingWorld()
    world.objects[NAMESPACE_PATH] = {"metadata": {"uid": "recorded", "labels": {}}}
    world.connect(monkeypatch)
    CREATED.clear()
    return world


def props(content: Mapping[str, str]) -> dict[str, Any]:
    return {**PROPS, "files": {**content}}


def plain(outputs: Mapping[str, Any] | None) -> str:
    """Return all outputs that Pulumi does not encrypt."""
    return str({key: value for key, value in (outputs or {}).items() if key not in SECRET_OUTPUTS})


def test_a_secret_is_created_changed_compared_read_and_deleted(
    world: AccountingWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    provider, old, new = SecretFilesProvider(), props(files("old-hunter2")), props(files("new-hunter3"))
    made = provider.create(old)
    world.add_slurmdbd()
    outs = made.outs or {}
    assert provider.diff(made.id, outs, old).changes is False
    capsys.readouterr()
    assert provider.diff(made.id, outs, new).changes
    assert capsys.readouterr().out == "slurmdbd-config/slurmdbd.conf: StoragePass changed\n"

    outs = provider.update(made.id, outs, new).outs or {}
    assert world.slurmdbd_runs_on == new["files"] == outs["known_good"]
    world.objects[SECRET_PATH]["data"] = {"other.key": base64.b64encode(b"by hand").decode()}
    assert provider.read(made.id, outs).outs == {**outs, "files": {"other.key": "by hand"}}

    CREATED.clear()
    provider.delete(made.id, outs)
    assert SECRET_PATH not in world.objects


@pytest.mark.parametrize("setting", ["StorageHost=db.example.com", "StoragePort=3307", "StorageLoc=another"])
def test_a_preview_says_what_another_database_keeps_and_loses(
    world: AccountingWorld, capsys: pytest.CaptureFixture[str], setting: str
) -> None:
    rows = "StorageHost=database\nStoragePort=3306\nStorageLoc=slurm_acct_db\nStoragePass={}\n"
    name = setting.partition("=")[0]
    elsewhere = re.sub(rf"(?m)^{name}=.*$", setting, rows)
    provider, old = SecretFilesProvider(), props({"slurmdbd.conf": rows.format("old-hunter2")})
    made = provider.create(old)
    world.add_slurmdbd()
    capsys.readouterr()

    provider.diff(made.id, made.outs or {}, props({"slurmdbd.conf": rows.format("new-hunter3")}))
    same = capsys.readouterr().out
    provider.diff(made.id, made.outs or {}, props({"slurmdbd.conf": elsewhere.format("old-hunter2")}))
    other = capsys.readouterr().out

    assert "another database" not in same
    assert f"{name} changed" in other
    for words in ("Kept: running and pending jobs", "Lost to sacct", "CLUSTER ID MISMATCH", "accounting.cluster_id"):
        assert words in other
    assert "hunter" not in other


def test_a_config_map_of_the_same_name_is_another_object(world: AccountingWorld) -> None:
    SecretFilesProvider().create(props(files("old-hunter2")))
    ConfigFilesProvider().create({**props({"a": "b"}), "kind": "ConfigMap"})
    assert world.objects[SECRET_PATH]["kind"] == "Secret"
    assert world.objects[SECRET_PATH.replace("/secrets/", "/configmaps/")]["data"] == {"a": "b"}


def test_recorded_properties_of_a_wrong_type_are_named_without_their_values() -> None:
    with pytest.raises(ValueError, match=r"files\.`slurmdbd\.conf`\n  Input should be a valid string") as raised:
        SecretFilesProvider().update(ID, {}, {**props({}), "files": {"slurmdbd.conf": ["hunter2"]}})
    assert "hunter2" not in str(raised.value)


def echoing(words: str, other: Mapping[str, str]) -> Callable[[Mapping[str, str]], str]:
    """Return a slurmdbd that repeats its file, and others that it had, as at a high debug level."""
    return lambda content: f"error: {words}: {[*content.values(), *other.values()]}"


@given(old=passwords, new=passwords, by_hand=passwords, key=texts, survived_calls=st.integers(0, 40))
def test_no_value_shows_in_any_line_error_or_plain_state(
    old: str, new: str, by_hand: str, key: str, survived_calls: int
) -> None:
    assume(len({old, new, by_hand, key}) == 4)
    with pytest.MonkeyPatch.context() as patch:
        world = a_world(patch)
        shown: list[str] = []
        with shown_by(shown.append):
            _run(world, shown, [files(old), files(by_hand), files(new, key)], survived_calls)
    found = "\n".join(shown)
    assert "StoragePass changed" in found
    for value in (old, new, by_hand, key, *files(old).values(), *files(new, key).values()):
        assert value not in found
        assert base64.b64encode(value.encode()).decode() not in found


def _passwords(content: Mapping[str, str]) -> str:
    return content["slurmdbd.conf"].partition("StoragePass=")[2]


def _run(world: AccountingWorld, shown: list[str], versions: list[dict[str, str]], survived_calls: int) -> None:
    """Create, change by hand, be refused in words that repeat all files, be killed, and find pod and API broken."""
    provider, (old, by_hand, new) = SecretFilesProvider(), versions
    made = provider.create(props(old))
    outs = made.outs or {}
    shown.append(plain(outs))
    world.add_slurmdbd()
    _change_by_hand(world, by_hand)
    provider.diff(made.id, outs, props(new))
    world.complains = echoing(DENIED, {"former": _password(by_hand), "key": by_hand["other.key"]})
    with pytest.raises(ConfigRefusedError) as refused:
        provider.update(made.id, outs, props(new))
    shown.append(str(refused.value))

    world.complains = lambda _files: ""
    world.calls_left = survived_calls
    with contextlib.suppress(KilledError):
        shown.append(plain(provider.update(made.id, outs, props(new)).outs))
    world.calls_left = None
    provider.diff(made.id, outs, props(new))
    _change_by_hand(world, by_hand)
    _break_pod(world, f"StoragePass {_password(new)}")
    provider.update(made.id, outs, props(new))
    assert any("It reads the files when it starts" in line for line in shown)

    def broken(path: str, body: Json, *, manager: str = FIELD_MANAGER) -> Json:
        raise KubernetesError(f"PATCH {path} by {manager}: cannot unmarshal {body}")

    world.apply = broken  # type: ignore[method-assign]
    with pytest.raises(SoperatorError) as failed:
        provider.update(made.id, outs, props(old))
    shown.append(str(failed.value))
    shown.append(plain(provider.read(made.id, outs).outs))


def _change_by_hand(world: AccountingWorld, content: Mapping[str, str]) -> None:
    world.objects[SECRET_PATH]["data"] = {
        name: base64.b64encode(text.encode()).decode() for name, text in content.items()
    }


def _password(content: Mapping[str, str]) -> str:
    return content["slurmdbd.conf"].strip().partition("StoragePass=")[2]


def _break_pod(world: AccountingWorld, words: str) -> None:
    """Have a container before slurmdbd end again and again, with such words."""
    world.add_slurmdbd("creating")
    status = status_of("prepare", "crashed", ready=False)["containerStatuses"]
    world.objects[POD_PATH]["status"]["initContainerStatuses"] = status
    world.init_words = words
