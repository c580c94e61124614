"""New keys: what a preview reports, and what a run brings into use."""

import base64
from collections.abc import Mapping
from typing import Any

import pytest
from pulumi.runtime.rpc import UNKNOWN

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.lifecycle import KeyKind, key_fingerprint, keys_in_use
from soperator_pulumi.lifecycle.keys_in_use import KeysInUseProvider
from soperator_pulumi.lifecycle.provider import LiveProvider
from soperator_pulumi.operations.key_rotation import MOUNTED_KEY
from soperator_pulumi.render import layout
from tests.fakes.keyed_pods import HOST_SECRET, KeyedPods, a_cluster
from tests.fakes.objects import NAMESPACE, SELECTOR


def key(kind: KeyKind, secret: str, name: str, value: str | None) -> dict[str, Any]:
    """A key of the inputs; None for the value of the user's own."""
    fingerprint = value if value in {None, UNKNOWN} else key_fingerprint(str(value).encode())
    return {"kind": kind.value, "secret": secret, "key": name, "fingerprint": fingerprint}


def inputs(munge: str | None = "old", ssh_host: str | None = "old host", *more: dict[str, Any]) -> dict[str, Any]:
    place = {"namespace": NAMESPACE, "namespace_uid": "recorded", "owner": "project.dev.hpc", "selector": SELECTOR}
    keys = [
        key(KeyKind.MUNGE, "munge-key", "munge.key", munge),
        key(KeyKind.SSH_HOST, "ssh-host-key", "ssh_host_ed25519_key", ssh_host),
    ]
    return {**place, "component": "urn", "keys": [*keys, *more], "kubeconfig": None, "context": None}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> KeyedPods:
    """A cluster of four pods."""
    world = a_cluster()

    def kube(_self: LiveProvider, _props: Mapping[str, Any]) -> KeyedPods:
        return world

    monkeypatch.setattr(LiveProvider, "kube", kube)
    monkeypatch.setattr(keys_in_use, "MachineClock", lambda: world.clock)
    return world


def test_keys_in_use_change_nothing(world: KeyedPods, capsys: pytest.CaptureFixture[str]) -> None:
    assert not KeysInUseProvider().diff("", inputs(), inputs()).changes

    assert capsys.readouterr().out == ""
    assert not world.without_munged


def test_another_munge_key_is_announced_with_its_cost_and_brought_into_use(
    world: KeyedPods, capsys: pytest.CaptureFixture[str]
) -> None:
    provider = KeysInUseProvider()

    assert provider.diff("", inputs(), inputs(munge=UNKNOWN)).changes
    assert (
        "hpc: a new munge key, which 4 pods load at the same moment. Running jobs continue." in capsys.readouterr().out
    )

    world.set_key(MOUNTED_KEY, "new")
    provider.update("", inputs(), inputs(munge="new"))
    assert {*world.in_use().values()} == {"new"}
    assert world.hangups == []


def test_another_host_key_reaches_sshd_and_leaves_munged(world: KeyedPods, capsys: pytest.CaptureFixture[str]) -> None:
    world.set_key(layout.SSH_HOST_KEY, "new host")

    assert KeysInUseProvider().diff("", inputs(), inputs(ssh_host="new host")).changes
    KeysInUseProvider().update("", inputs(), inputs(ssh_host="new host"))

    assert "ssh clients refuse new ones until they know it" in capsys.readouterr().out
    assert world.hangups == ["login-0"]
    assert not world.without_munged


def test_another_key_of_tokens_is_announced(world: KeyedPods, capsys: pytest.CaptureFixture[str]) -> None:
    del world
    before, after = (key(KeyKind.JWT, "jwt-key", "jwt.key", value) for value in ("old", "new"))

    KeysInUseProvider().diff("", inputs("old", "old host", before), inputs("old", "old host", after))

    assert "every earlier token is refused" in capsys.readouterr().out


def test_a_key_in_the_users_own_secret_is_known_by_its_content(world: KeyedPods) -> None:
    provider = KeysInUseProvider()
    before = provider.check(inputs(), inputs(munge=None)).inputs
    world.set_key(MOUNTED_KEY, "new")
    after = provider.check(before, inputs(munge=None)).inputs

    assert before["keys"] == inputs("old")["keys"]
    assert after["keys"] == inputs("new")["keys"]
    assert provider.diff("", before, after).changes


def test_a_stack_of_an_earlier_release_shows_that_its_keys_are_readable(
    world: KeyedPods, capsys: pytest.CaptureFixture[str]
) -> None:
    KeysInUseProvider().check({}, inputs(munge=UNKNOWN, ssh_host=UNKNOWN))

    (exposed, *costs) = capsys.readouterr().out.splitlines()
    assert "generated ones (munge key, ssh host key) that an earlier release wrote as plain text into ids" in exposed
    assert len(costs) == 2
    assert not world.without_munged


def test_its_first_update_brings_the_new_keys_into_use(world: KeyedPods) -> None:
    world.set_key(MOUNTED_KEY, "new")
    world.set_key(layout.SSH_HOST_KEY, "new host")

    KeysInUseProvider().create(inputs("new", "new host"))

    assert {*world.in_use().values()} == {"new"}
    assert world.hangups == ["login-0"]


def test_the_users_own_keys_are_not_called_readable(world: KeyedPods, capsys: pytest.CaptureFixture[str]) -> None:
    del world
    KeysInUseProvider().check({}, inputs(munge=None, ssh_host=None))

    assert capsys.readouterr().out == ""


def test_a_new_cluster_shows_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    empty = KeyedPods()
    monkeypatch.setattr(LiveProvider, "kube", lambda _self, _props: empty)

    KeysInUseProvider().check({}, inputs(munge=UNKNOWN, ssh_host=UNKNOWN))
    created = KeysInUseProvider().create(inputs())

    assert capsys.readouterr().out == ""
    assert created.outs == inputs()


@pytest.mark.usefixtures("world")
def test_the_first_run_of_a_new_cluster_calls_no_key_readable(capsys: pytest.CaptureFixture[str]) -> None:
    KeysInUseProvider().check({}, inputs("old", "old host"))

    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("world")
def test_a_first_key_of_tokens_ends_no_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    added = key(KeyKind.JWT, "jwt-key", "jwt.key", "new")

    assert KeysInUseProvider().diff("", inputs(), inputs("old", "old host", added)).changes

    assert capsys.readouterr().out == ""


def test_a_kubernetes_that_is_not_reached_leaves_the_keys_for_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def kube(_self: LiveProvider, _props: Mapping[str, Any]) -> KeyedPods:
        raise KubernetesError("not reached")

    monkeypatch.setattr(LiveProvider, "kube", kube)

    checked = KeysInUseProvider().check({}, inputs(munge=None))
    assert checked.failures == []
    assert KeysInUseProvider().diff("", inputs(), inputs(munge="new")).changes


def test_no_message_shows_a_key(world: KeyedPods, capsys: pytest.CaptureFixture[str]) -> None:
    secret = world.objects[HOST_SECRET]["data"]["ssh_host_ed25519_key"]

    KeysInUseProvider().check({}, inputs())
    KeysInUseProvider().diff("", inputs(), inputs("new", "new host"))

    shown = capsys.readouterr().out
    assert "a new munge key" in shown
    assert secret not in shown
    assert base64.b64decode(secret).decode() not in shown
