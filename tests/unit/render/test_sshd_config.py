"""sshd_config of the login nodes."""

import pytest

from soperator_pulumi.errors import SpecError
from soperator_pulumi.render import layout
from soperator_pulumi.render.sshd_config import sshd_config
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
    assert SETTINGS["AuthorizedKeysCommand"] == "/usr/bin/cat /etc/ssh-keys/%u"
    assert SETTINGS["AuthorizedKeysCommandUser"] == "nobody"


def test_users_who_were_added_inside_the_jail_bring_keys_in_their_homes() -> None:
    assert SETTINGS["AuthorizedKeysFile"] == ".ssh/authorized_keys"


def test_every_session_sftp_too_is_in_the_jail_and_needs_no_program_of_it() -> None:
    assert SETTINGS["ChrootDirectory"] == "/run/jail/active"
    assert SETTINGS["Subsystem"] == "sftp internal-sftp"


def test_sessions_know_where_slurmctld_is_and_of_what_the_message_of_the_day_is_made() -> None:
    config = sshd_config(a_spec(login={"docs": "https://wiki.example.org/hpc?page=1#start"}))
    (given,) = [line.removeprefix("SetEnv ") for line in config.splitlines() if line.startswith("SetEnv ")]

    assert dict(variable.split("=", 1) for variable in given.split(" ")) == {
        "SLURM_CONF_SERVER": f"{layout.CONTROLLER_HOST}:{layout.SLURMCTLD_PORT}",
        "SOPERATOR_CLUSTER": "hpc",
        "SOPERATOR_DOCS": "https://wiki.example.org/hpc?page=1#start",
    }


@pytest.mark.parametrize(
    "docs", ["wiki", "https://x y", 'https://x"', "https://x\nPermitRootLogin yes", "http://$HOME"]
)
def test_an_address_of_documents_that_could_say_something_else_to_sshd_is_refused(docs: str) -> None:
    with pytest.raises(SpecError, match="needs an address without blanks and quotes"):
        a_spec(login={"docs": docs})


def test_no_session_holds_so_many_connections_that_sshd_turns_others_away() -> None:
    """It has the addresses of its loopback and of its pod, of two families. sshd drops some from the first number."""
    first, _, _ = SETTINGS["MaxStartups"].split(":")
    assert 4 * int(SETTINGS["PerSourceMaxStartups"]) < int(first)


def test_no_port_needs_a_capability() -> None:
    assert int(SETTINGS["Port"]) > 1024
