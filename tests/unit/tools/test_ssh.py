"""The key pair of `make ssh`."""

import stat
from pathlib import Path

import pytest

from tools import ssh


@pytest.fixture(autouse=True)
def _a_state_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_the_key_is_made_once() -> None:
    assert ssh.public_key() == ssh.public_key()


def test_the_private_key_is_for_its_owner_alone() -> None:
    assert stat.S_IMODE(ssh.private_key_file().stat().st_mode) == 0o600


def test_the_public_key_is_a_line_of_authorized_keys() -> None:
    kind, _, comment = ssh.public_key().split(" ")

    assert (kind, comment) == ("ssh-ed25519", "make-ssh")
