"""Where volumes may be inside the jail."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from soperator_pulumi.errors import SpecError
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.submount import MAX_PATHS, MAX_SUBMOUNTS
from soperator_pulumi.spec.types.absolute_path import AbsolutePath, holds, jail_path_problem
from tests.strategies import Data, a_spec

_path: TypeAdapter[str] = TypeAdapter(AbsolutePath)

NEEDED = """
/ /.jail-tools /.tree /bin /bin/x /boot /dev /dev/nvidia0 /dev/shm/x /etc /etc/slurm /home/alice /jail /jail/trees /lib
/lib64 /libx32 /opt /opt/slurm /opt/slurm/lib /proc /proc/self /root /run /run/munge /sbin /sys /sys/fs /tmp/x /usr
/usr/bin /usr/lib/x /usr/share /usr/local /usr/local/bin /usr/local/bin/x /usr/local/lib /usr/local/sbin /var /var/lib
/var/lib/extrausers /var/lib/dpkg /var/run /var/run/munge /var/spool /var/spool/slurm /var/spool/slurmd/x /var/log
"""

FREE = """
/data /home /tmp /dev/shm /var/spool/slurmd /mnt /mnt/local /media/x /srv /scratch /opt/software /opt/slurm-tools
/usr/local/cuda /usr/local/libexec /usr/local/nvidia/lib /var/scratch /homes /etcetera /binaries /.cache /a.b/c-d_e
"""


@pytest.mark.parametrize("path", NEEDED.split())
def test_what_the_jail_or_slurm_needs_cannot_be_replaced(path: str) -> None:
    reason = jail_path_problem(path)
    assert reason is not None
    assert reason.endswith('Choose another place, such as "/data" or "/mnt/local".')


@pytest.mark.parametrize("path", FREE.split())
def test_every_other_place_is_free(path: str) -> None:
    assert _path.validate_python(path) == path
    assert jail_path_problem(path) is None


@pytest.mark.parametrize("path", ["/usr/local/nvidia", "/usr/local/nvidia/lib64"])
def test_a_submount_is_not_where_jobs_see_the_driver_of_their_node(path: str) -> None:
    with_gpus = {"node_sets": [{"name": "gpu", "cpus": 1, "memory_gib": 1, "gpus": {"count": 1}}]}
    where = {"submounts": [scratch(path)]}
    with pytest.raises(SpecError, match=rf'submounts\[0\]\.path: got "{path}", where jobs see the GPU driver'):
        a_spec(jail=where, **with_gpus)
    a_spec(jail=where)
    a_spec(jail={"submounts": [scratch("/usr/local/nvidia-tools")]}, **with_gpus)
    a_spec(jail={"submounts": [{**scratch(path), "roles": ["login"]}]}, **with_gpus)


def test_homes_are_on_all_node_sets_and_submounts_of_sessions_on_none() -> None:
    names = {"node_sets": [{"name": "gpu", "cpus": 1, "memory_gib": 1}]}
    for submount in (
        {"path": "/home", "existing_claim": "homes", "node_sets": ["gpu"]},
        {**scratch("/data"), "roles": ["login"], "node_sets": ["gpu"]},
    ):
        with pytest.raises(SpecError, match=r"jail\.submounts\[0\]\.node_sets: .*Remove it"):
            a_spec(jail={"submounts": [submount]}, **names)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "",
            "data",
            "./data",
            "/data/",
            "//data",
            "/a//b",
            "/a/./b",
            "/a/../b",
            "/..",
            "/.",
            "/" + "a" * 255,
            None,
            5,
        ),
        *("/a b", "/a:b", "/a\n", "/ä", "/a,b", "/a=b", "/a#b", "/a%j", '/a"b', "/a\\b"),
    ],
)
def test_a_path_is_absolute_in_its_shortest_form_and_plain(path: object) -> None:
    with pytest.raises(ValidationError):
        _path.validate_python(path)


_parts = st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=4)


@given(_parts, _parts)
def test_a_directory_holds_what_begins_with_all_of_its_parts(outer: list[str], inner: list[str]) -> None:
    expected = len(inner) > len(outer) and inner[: len(outer)] == outer
    assert holds("/" + "/".join(outer), "/" + "/".join(inner)) is expected
    assert holds("/", "/" + "/".join(inner))


def a_jail(*submounts: Data, **fields: object) -> ClusterSpec:
    return a_spec(jail={"submounts": list(submounts), **fields})


def why_not(*submounts: Data, **fields: object) -> str:
    with pytest.raises(SpecError) as caught:
        a_jail(*submounts, **fields)
    (problem,) = caught.value.problems
    return str(problem)


def scratch(path: str, *roles: str) -> Data:
    return {"path": path, "scratch_gib": 1, **({"roles": list(roles)} if roles else {})}


@pytest.mark.parametrize(
    ("submount", "words"),
    [
        (scratch("/etc/x"), 'submounts[0].path: got "/etc/x", which lies inside /etc, where the jail has the jail\'s'),
        (scratch("/usr"), 'got "/usr", where the jail has programs and libraries'),
        (scratch("/opt"), 'got "/opt", which is around /opt/slurm'),
        (scratch("/var/spool/slurmd"), "belongs to slurmd, which runs on workers only. Set [worker]."),
        (scratch("/home"), "submounts[0].scratch_gib: does not fit /home, which must be the same on all nodes"),
        (scratch("/dev/shm"), "does not fit /dev/shm, which is memory. Give memory_gib."),
        ({"path": "/data"}, "submounts[0]: has no volume. Give exactly one of existing_claim, host_path, scratch_gib"),
        (
            {"path": "/x", "host_path": "/run/docker"},
            "which shows /run (sockets of the container runtime) to every job",
        ),
        ({"path": "/x", "host_path": "/var"}, "which shows /var/lib/containerd"),
    ],
)
def test_a_submount_that_does_not_fit_is_reported_with_what_is_allowed(submount: Data, words: str) -> None:
    assert words in why_not(submount)


@pytest.mark.parametrize(("first", "second"), [("/data", "/data"), ("/data", "/data/x"), ("/data/x", "/data")])
def test_two_submounts_are_next_to_each_other_and_not_nested(first: str, second: str) -> None:
    assert why_not(scratch(first), scratch(second)).startswith(f'jail.submounts[1].path: "{second}"')


def test_one_path_may_be_another_volume_for_the_other_role() -> None:
    jail = a_jail(
        scratch("/scratch", "login"), {"path": "/scratch", "host_path": "/mnt/nvme", "roles": ["worker"]}
    ).jail
    assert len(jail.submounts) == 2


def test_names_that_only_begin_alike_do_not_collide() -> None:
    assert len(a_jail(scratch("/data"), scratch("/data2"), scratch("/data-old")).jail.submounts) == 3


def test_no_submount_shows_the_state_of_slurmctld_or_what_is_ours_in_the_jails_volume() -> None:
    state = {"state": {"existing_claim": "state"}}
    with pytest.raises(SpecError, match=r'"state" is also the claim of storage\.state: users could write its files\.'):
        a_spec(storage=state, jail={"submounts": [{"path": "/data", "existing_claim": "state"}]})
    jail: Data = {"storage": {"existing_claim": "jail"}}
    for sub_path in ({}, {"sub_path": "trees"}, {"sub_path": "meta/x"}):
        assert "are reserved" in why_not({"path": "/data", "existing_claim": "jail", **sub_path}, **jail)
    a_jail({"path": "/data", "existing_claim": "jail", "sub_path": "data"}, **jail)


def test_no_submount_shows_the_database_or_its_dumps() -> None:
    accounting = {
        "database": {"own": {"storage": {"existing_claim": "db"}}},
        "dump": {"storage": {"existing_claim": "d"}},
    }
    submounts = [
        {"path": "/data", "existing_claim": "db"},
        {"path": "/dumps", "existing_claim": "d", "read_only": True},
    ]
    with pytest.raises(SpecError) as raised:
        a_spec(accounting=accounting, jail={"submounts": submounts})

    assert [problem.path for problem in raised.value.problems] == [
        "jail.submounts[0].existing_claim",
        "jail.submounts[1].existing_claim",
    ]


@pytest.mark.parametrize("field", ["existing_claim", "static_volume"])
def test_the_volumes_of_a_cluster_are_different_ones(field: str) -> None:
    one = {field: "one"}
    accounting = {"database": {"own": {"storage": one}}, "dump": {"storage": one}}
    with pytest.raises(SpecError) as raised:
        a_spec(jail={"storage": one}, storage={"state": one}, accounting=accounting)

    found = str(raised.value)
    assert f'storage.state.{field}: "one" is also that of jail.storage, ' in found
    assert f'accounting.database.own.storage.{field}: "one" is also that of storage.state, ' in found
    assert f'accounting.dump.storage.{field}: "one" is also that of accounting.database.own.storage, ' in found


POOLS = {"login": {"pools": {"large": {}, "small": {"pod_resources": {"limits": {"memory": "4Gi"}}}}}}


@pytest.mark.parametrize(
    ("submount", "problem"),
    [
        (
            {"logins": ["large"]},
            r'logins\[0\]: got "large", which is not a login node. Allowed: login, login-l',
        ),
        ({"logins": []}, r"logins: empty: no session would have it\. Name login nodes"),
        ({"logins": ["login", "login"]}, r'logins\[1\]: "login" is listed twice'),
        ({"logins": ["login"], "roles": ["worker"]}, r"logins: given for a submount of jobs alone"),
        ({"logins": ["login"], "path": "/home", "existing_claim": "h"}, r"logins: does not fit /home"),
        ({"logins": ["login-small"], "memory_gib": 5}, r"a pod of login\.pools\.small has 4 GiB"),
    ],
)
def test_login_nodes_of_a_submount_that_could_not_have_it_are_refused(submount: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        a_spec(jail={"submounts": [{"path": "/fast", "roles": ["login", "worker"], **submount}]}, **POOLS)


def test_a_submount_in_memory_counts_on_the_login_nodes_that_have_it_alone() -> None:
    fast = {"path": "/fast", "memory_gib": 5, "roles": ["login"], "logins": ["login", "login-large"]}
    a_spec(jail={"submounts": [fast]}, **POOLS)


@pytest.mark.parametrize(
    ("others", "meet"), [(["login"], True), (None, True), (["login-large"], False), (["login-small"], False)]
)
def test_submounts_of_the_same_login_nodes_have_different_paths(others: list[str] | None, meet: bool) -> None:
    one = {**scratch("/fast"), "roles": ["login"], "logins": ["login"]}
    other = {**scratch("/fast"), "roles": ["login"], **({} if others is None else {"logins": others})}
    if not meet:
        a_spec(jail={"submounts": [one, other]}, **POOLS)
        return
    with pytest.raises(SpecError, match=r'"/fast" is also the path of jail\.submounts\[0\]'):
        a_spec(jail={"submounts": [one, other]}, **POOLS)


@pytest.mark.parametrize(
    ("sizes", "roles", "words"),
    [
        ([7], ["worker"], None),
        ([8], ["worker"], "8 GiB in memory for the role worker, but a node of node_sets[0] has 8 GiB"),
        ([4, 4.5], ["worker"], "8.5 GiB in memory for the role worker"),
        ([7.5], ["login"], None),
        ([9], ["login"], "9 GiB in memory for the role login, but a pod of login has 8 GiB"),
    ],
)
def test_volumes_in_memory_leave_room_for_the_pod(sizes: list[float], roles: list[str], words: str | None) -> None:
    mounts = [{"path": f"/m{index}", "memory_gib": size, "roles": roles} for index, size in enumerate(sizes)]
    if words is None:
        a_jail(*mounts)
    else:
        assert words in why_not(*mounts)


def test_there_are_no_more_submounts_than_slurm_can_read() -> None:
    a_jail(*(scratch(f"/d{index}") for index in range(MAX_SUBMOUNTS)))
    assert "65 submounts" in why_not(*(scratch(f"/d{index}") for index in range(MAX_SUBMOUNTS + 1)))
    many = [scratch(f"/{index}{'d' * 200}") for index in range(MAX_PATHS // 200)]
    assert "jail.submounts: 15 submounts with 30" in why_not(*many)
