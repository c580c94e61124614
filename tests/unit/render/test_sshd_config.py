"""sshd_config of the login nodes."""

import pytest

from soperator_pulumi.render import layout, sshd_config
from tests.strategies import a_spec

SETTINGS = dict(line.split(" ", 1) for line in sshd_config(a_spec()).splitlines() if line and line[0] != "#")


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("PasswordAuthentication", "no"),
        ("KbdInteractiveAuthentication", "no"),
        ("PermitRootLogin", "no"),
        ("AuthenticationMethods", "publickey"),
        ("PermitUserEnvironment", "no"),
        ("PermitTunnel", "no"),
    ],
)
def test_only_public_keys_of_people_open_the_door(keyword: str, value: str) -> None:
    assert SETTINGS[keyword] == value


def test_keys_are_read_at_each_login_from_the_mounted_directory() -> None:
    assert SETTINGS["AuthorizedKeysFile"] == "none"
    assert SETTINGS["AuthorizedKeysCommand"] == "/usr/bin/cat /etc/ssh-keys/%u"
    assert SETTINGS["AuthorizedKeysCommandUser"] == "nobody"


def test_sessions_know_where_slurmctld_is() -> None:
    assert SETTINGS["SetEnv"] == f"SLURM_CONF_SERVER={layout.CONTROLLER_HOST}:{layout.SLURMCTLD_PORT}"


def test_no_port_needs_a_capability() -> None:
    assert int(SETTINGS["Port"]) > 1024
