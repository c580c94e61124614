"""The user database and the keys."""

import base64

import pytest
from hypothesis import given

from soperator_pulumi.errors import SpecError
from soperator_pulumi.render.users import authorized_keys, group, passwd, shadow, user_files
from soperator_pulumi.spec.cluster import ClusterSpec, parse_cluster
from tests.strategies import ED25519_KEY, Data, a_spec, cluster_data, cluster_specs


def rows(text: str) -> list[list[str]]:
    return [line.split(":") for line in text.splitlines()]


@given(cluster_specs())
def test_every_user_can_be_looked_up_as_declared(spec: ClusterSpec) -> None:
    found = {row[0]: row for row in rows(passwd(spec))}
    for user in spec.users:
        home = f"/home/{user.name}"
        assert found[user.name] == [user.name, "x", str(user.uid), str(user.gid), "", home, user.shell]
    assert len(found) == len(spec.users) + 1


@given(cluster_specs())
def test_every_gid_has_one_name_and_every_name_one_gid(spec: ClusterSpec) -> None:
    found = rows(group(spec))
    gids = [row[2] for row in found]
    assert len(gids) == len(set(gids)) == len({row[0] for row in found})
    assert {str(user.gid) for user in spec.users} <= set(gids)


@given(cluster_specs())
def test_every_user_is_in_the_groups_that_they_name(spec: ClusterSpec) -> None:
    members = {row[0]: set(filter(None, row[3].split(","))) for row in rows(group(spec))}
    for group_spec in spec.groups:
        assert members[group_spec.name] == {user.name for user in spec.users if group_spec.name in user.groups}


@given(cluster_specs())
def test_no_password_opens_an_account_and_none_expires(spec: ClusterSpec) -> None:
    found = rows(shadow(spec))
    assert {row[0] for row in found} == {row[0] for row in rows(passwd(spec))}
    assert {row[1] for row in found} == {"*"}
    assert all(len(row) == 9 and row[7] == "" for row in found)


def test_slurm_user_can_be_looked_up_which_every_client_needs() -> None:
    assert passwd(a_spec(users=[])) == "slurm:x:64030:64030::/nonexistent:/usr/sbin/nologin\n"
    assert group(a_spec(users=[])) == "slurm:x:64030:\n"


@given(cluster_data())
def test_the_order_in_which_users_are_listed_changes_nothing(data: Data) -> None:
    turned = {**data, "users": data["users"][::-1], "groups": data["groups"][::-1]}
    assert user_files(parse_cluster(turned)) == user_files(parse_cluster(data))
    assert authorized_keys(parse_cluster(turned)) == authorized_keys(parse_cluster(data))


def test_keys_stand_one_a_line_in_a_file_of_each_user() -> None:
    second = ED25519_KEY.replace("somebody", "somewhere")
    users = [
        {"name": "alice", "uid": 2001, "ssh_keys": [ED25519_KEY, second]},
        {"name": "robot", "uid": 2002},
    ]
    assert authorized_keys(a_spec(users=users)) == {"alice": f"{ED25519_KEY}\n{second}\n", "robot": ""}


def test_keys_beyond_the_size_of_a_config_map_are_refused_with_the_limit() -> None:
    """1,600 RSA keys of 4096 bits have 1.19 MB."""
    line = "ssh-rsa " + base64.b64encode(_wire(b"ssh-rsa", b"\1\0\1", b"\0" + b"\xff" * 512)).decode()
    users = [{"name": f"user.{number}", "uid": 2000 + number, "ssh_keys": [line]} for number in range(1600)]
    with pytest.raises(SpecError, match=r"users: 1600 ssh_keys with \d+ bytes, but Kubernetes accepts 1048576 in one"):
        a_spec(users=users)
    assert sum(map(len, authorized_keys(a_spec(users=users[:1400])).values())) < 1_048_576


def _wire(*fields: bytes) -> bytes:
    return b"".join(len(field).to_bytes(4, "big") + field for field in fields)
