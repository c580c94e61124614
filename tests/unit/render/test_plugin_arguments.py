"""The plugin's own parser takes what we render for it."""

import ctypes
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from soperator_pulumi.render.jail import jail_binds, login_arguments, plugstack_conf
from soperator_pulumi.spec.cluster import ClusterSpec
from soperator_pulumi.spec.submount import MAX_PATHS, MAX_SUBMOUNTS, SubmountRole
from soperator_pulumi.spec.types.absolute_path import SPOOL, jail_path_problem
from tests.strategies import a_spec, cluster_specs
from tests.unit.spank_plugin.compiler import toolchain

SOURCES = Path(__file__).parents[3] / "spank-plugin"
_ENOUGH = 1 << 20  # for the plugin's structures, whose layout is its own

Parse = Callable[[list[str]], bool]


@pytest.fixture(scope="module")
def takes(tmp_path_factory: pytest.TempPathFactory) -> Parse:
    """Return True if `config_parse` takes arguments."""
    library = tmp_path_factory.mktemp("plugin") / "config.so"
    sources = [str(SOURCES / name) for name in ("config.c", "failure.c")]
    tools = toolchain()
    command = [*tools.compiler, "-std=gnu11", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", str(library), *sources]
    subprocess.run(command, env={**os.environ, **tools.environment}, check=True)
    parse = ctypes.CDLL(str(library)).config_parse

    def call(arguments: list[str]) -> bool:
        config, failure = ctypes.create_string_buffer(_ENOUGH), ctypes.create_string_buffer(_ENOUGH)
        listed = (ctypes.c_char_p * len(arguments))(*(argument.encode() for argument in arguments))
        return int(parse(config, len(arguments), listed, failure)) == 0

    assert call(["jail=/jail"])
    assert not call(["jail=/jail", "bind=/etc/../x"])
    return call


@given(spec=cluster_specs())
def test_the_arguments_of_any_cluster_are_taken(takes: Parse, spec: ClusterSpec) -> None:
    _, line = plugstack_conf(spec).splitlines()
    assert takes(line.split(" ")[2:]), line
    assert takes(login_arguments(spec))
    assert takes(["jail=/jail", *jail_binds(spec, SubmountRole.WORKER)])


_NAMES = (
    "a",
    "dev",
    "etc",
    "hosts",
    "jail",
    "lib",
    "munge",
    "opt",
    "proc",
    "run",
    "shm",
    "slurm",
    "spool",
    "usr",
    "var",
)


@given(st.lists(st.sampled_from(_NAMES), max_size=4).map(lambda parts: "/" + "/".join(parts)))
@example("/var/lib/extrausers")
@example("/var/spool/slurmd/x")
@example("/etc/resolv.conf")
def test_the_plugin_takes_every_place_that_a_submount_may_have(takes: Parse, path: str) -> None:
    if jail_path_problem(path) is None and path != SPOOL:
        assert takes(["jail=/jail", f"bind={path}:ro"])


def test_the_plugin_takes_as_many_submounts_as_a_spec_may_have(takes: Parse) -> None:
    room = MAX_PATHS // MAX_SUBMOUNTS
    submounts = [
        {"path": f"/{index:0{room - 1}}", "existing_claim": "data", "read_only": True} for index in range(MAX_SUBMOUNTS)
    ]
    assert takes(login_arguments(a_spec(jail={"submounts": submounts})))
