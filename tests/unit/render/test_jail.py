"""Tree of the jail, and arguments of the plugin."""

import hashlib

import pytest
from hypothesis import given

from soperator_pulumi.render import layout
from soperator_pulumi.render.change_impact import Effect, changes
from soperator_pulumi.render.jail import active_tree, jail_binds, login_arguments, plugstack_conf, submounts, tree_id
from soperator_pulumi.render.slurm_files import slurm_files
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.submount import SubmountRole
from tests.strategies import IMAGES, Data, a_spec, cluster_specs

TARBALL = {"url": "https://files.example/root.tar", "sha256": "ab" * 32}

SUBMOUNTS: list[Data] = [
    {"path": "/reference", "existing_claim": "genomes", "read_only": True},
    {"path": "/data", "existing_claim": "data"},
    {"path": "/scratch", "scratch_gib": 10, "roles": ["login"]},
    {"path": "/mnt/local", "host_path": "/mnt/disks/ssd0", "roles": ["worker"]},
    {"path": "/dev/shm", "memory_gib": 1},
    {"path": "/var/spool/slurmd", "scratch_gib": 10, "roles": ["worker"]},
]


@pytest.mark.parametrize(
    ("jail", "hashed"),
    [
        ({}, f"image:{IMAGES['jail']}"),
        ({"source": {"image": "registry.example/os:24.04"}}, "image:registry.example/os:24.04"),
        ({"source": {"tarball": TARBALL}}, f"tarball:{'ab' * 32}"),
        ({"source": {"tarball": {**TARBALL, "url": "http://elsewhere.example/root"}}}, f"tarball:{'ab' * 32}"),
    ],
)
def test_a_tree_is_known_by_what_it_is_filled_from(jail: Data, hashed: str) -> None:
    assert tree_id(a_spec(jail=jail)) == hashlib.sha256(hashed.encode()).hexdigest()[:12]


def test_the_tree_of_the_source_is_the_active_one_unless_an_older_one_is_named() -> None:
    assert active_tree(a_spec()) == tree_id(a_spec())
    older = a_spec(jail={"active": "0123456789ab"})
    assert active_tree(older) == "0123456789ab"
    assert tree_id(older) == tree_id(a_spec())


def test_sessions_and_jobs_see_the_submounts_of_their_role() -> None:
    spec = a_spec(jail={"submounts": SUBMOUNTS})
    common = ["bind=/data", "bind=/dev/shm", "bind=/home"]
    assert jail_binds(spec, SubmountRole.WORKER) == [*common, "bind=/mnt/local", "bind=/reference:ro", "bind=/tmp"]
    assert jail_binds(spec, SubmountRole.LOGIN) == [*common, "bind=/reference:ro", "bind=/scratch", "bind=/tmp"]


@pytest.mark.parametrize(
    ("isolation", "of_jobs", "of_sessions"),
    [
        ({}, [], []),
        ({"pid": True}, ["isolation=pid"], []),
        ({"ipc": True, "pid": True}, ["isolation=pid,ipc"], []),
        ({"user_namespaces": True}, ["user_namespaces"], ["user_namespaces"]),
    ],
)
def test_jobs_are_isolated_as_the_spec_says(isolation: Data, of_jobs: list[str], of_sessions: list[str]) -> None:
    spec = a_spec(jail={"isolation": isolation})
    assert plugin_arguments(spec) == ["jail=/jail", "binds=/run/slurm/jail-binds", *of_jobs]
    binds = ["bind=/dev/shm", "bind=/home", "bind=/tmp", "bind=/etc/profile.d/soperator.sh:ro"]
    assert login_arguments(spec) == ["jail=/jail", *binds, *of_sessions]


def plugin_arguments(spec: ClusterSpec) -> list[str]:
    (line,) = [line for line in plugstack_conf(spec).splitlines() if not line.startswith("#")]
    required, plugin, *arguments = line.split(" ")
    assert (required, plugin) == ("required", layout.SPANK_PLUGIN)
    return arguments


@given(cluster_specs())
def test_the_plugin_is_required_and_takes_from_the_pod_what_that_has_mounted(spec: ClusterSpec) -> None:
    assert plugin_arguments(spec)[:2] == [f"jail={layout.JAIL_DIR}", f"binds={layout.JAIL_BINDS}"]
    assert not any(argument.startswith("bind=") for argument in plugin_arguments(spec))


@given(cluster_specs())
def test_every_place_is_bound_once_and_in_the_same_order(spec: ClusterSpec) -> None:
    for role in SubmountRole:
        places = [jail_bind.removeprefix("bind=").removesuffix(":ro") for jail_bind in jail_binds(spec, role)]
        assert places == sorted(set(places))
        assert {"/home", "/tmp", "/dev/shm"} <= set(places)
        assert {submount.path for submount in submounts(spec, role)} - set(places) <= {layout.SPOOL_DIR}


@pytest.mark.parametrize(
    ("jail", "file"),
    [({"submounts": SUBMOUNTS}, "job_submit.lua"), ({"isolation": {"pid": True}}, "plugstack.conf")],
)
def test_other_submounts_and_isolation_are_a_reload(jail: Data, file: str) -> None:
    found = changes(slurm_files(a_spec()), slurm_files(a_spec(jail=jail)))
    assert [(change.what, change.effect) for change in found] == [(file, Effect.RELOAD)]


def test_another_source_of_the_jail_changes_no_file_of_slurm() -> None:
    assert slurm_files(a_spec(jail={"source": {"tarball": TARBALL}})) == slurm_files(a_spec())
