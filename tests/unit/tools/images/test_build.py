"""Builds, their arguments, and their output."""

import resource
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from tools.console import UserError
from tools.images import buildah
from tools.images.apt import BuildApt
from tools.images.bootstrap import default_sources_arguments, interesting_line, keyring, mmdebstrap_arguments
from tools.images.buildah import Buildah, interesting_step, tls_verify
from tools.images.builder import build_missing, to_build
from tools.images.mirror import AptSource
from tools.images.recipe import LOCAL_REPOSITORY, PARENTS, PUBLISHED, Recipe
from tools.images.runner import Runner, shortened
from tools.images.store import Store
from tools.kube.debs import Tool


def stored(recipe: Recipe, *names: str) -> set[str]:
    return {f"{LOCAL_REPOSITORY}/{name}:{recipe.tags()[name]}" for name in names}


def test_from_nothing_all_is_built_parents_first() -> None:
    assert to_build(Recipe(), PUBLISHED, set()) == ["base", *PARENTS]


def test_a_parent_that_is_stored_is_not_built_again_nor_is_what_only_that_needs() -> None:
    recipe = Recipe()

    assert to_build(recipe, ["munge"], stored(recipe, "slurm")) == ["munge"]
    assert to_build(recipe, ["munge"], stored(recipe, "base")) == ["slurm", "munge"]
    assert to_build(recipe, ["munge"], {f"{LOCAL_REPOSITORY}/slurm:another"}) == ["base", "slurm", "munge"]


def test_an_image_that_is_made_in_another_needs_that_one_too() -> None:
    recipe = Recipe()

    assert to_build(recipe, ["worker"], stored(recipe, "slurm")) == ["toolchain", "node", "worker"]
    assert to_build(recipe, ["worker"], stored(recipe, "slurm", "toolchain")) == ["node", "worker"]
    assert to_build(recipe, ["jail-tools"], stored(recipe, "toolchain")) == ["jail-tools"]


def test_nothing_missing_needs_nothing() -> None:
    assert to_build(Recipe(), [], set()) == []


def test_a_pulled_base_is_not_built() -> None:
    recipe = Recipe(base="registry.example.org/debian:trixie-slim")

    assert to_build(recipe, ["munge"], set()) == ["slurm", "munge"]


def test_building_without_root_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    with pytest.raises(UserError, match=r"needs root.*sudo"):
        build_missing(Recipe(), Store(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    sources = [
        AptSource("http://mirror.example.org/debian", "trixie", Path("/keys/debian.gpg")),
        AptSource("http://mirror.example.org/debian-security", "trixie-security"),
    ]
    return mmdebstrap_arguments(Path("/build/base.tar"), Path("/images/dpkg.cfg"), BuildApt(tmp_path, sources))


def test_the_bootstrap_uses_the_mirrors_and_settings_of_the_build(arguments: list[str], tmp_path: Path) -> None:
    assert arguments[-4:] == [
        "trixie",
        "/build/base.tar",
        "deb [signed-by=/keys/debian.gpg] http://mirror.example.org/debian trixie main",
        "deb http://mirror.example.org/debian-security trixie-security main",
    ]
    assert f"--aptopt={tmp_path / 'apt.conf'}" in arguments
    assert "--dpkgopt=/images/dpkg.cfg" in arguments


@pytest.mark.parametrize(
    "left", ["etc/resolv.conf", "etc/hostname", "etc/apt/sources.list", "etc/apt/apt.conf.d/99mmdebstrap"]
)
def test_the_bootstrap_leaves_nothing_of_the_builder_behind(arguments: list[str], left: str) -> None:
    hook = next(argument for argument in arguments if argument.startswith("--customize-hook="))

    assert f'"$1"/{left}' in hook


def test_mmdebstrap_is_asked_for_its_mirror_without_fetching_anything() -> None:
    assert "--skip=update,cleanup" in default_sources_arguments()


def test_keys_are_found_where_mmdebstrap_was_unpacked(tmp_path: Path) -> None:
    unpacked = tmp_path / "usr" / "share" / "keyrings" / "debian-archive-keyring.gpg"
    unpacked.parent.mkdir(parents=True)
    unpacked.write_text("keys")

    assert keyring(tmp_path / "usr" / "bin" / "mmdebstrap", tmp_path) == unpacked
    assert keyring(tmp_path / "mmdebstrap", tmp_path / "usr" / "share") == unpacked
    assert keyring(tmp_path / "mmdebstrap", tmp_path) is None


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("I: installing essential packages...", "installing essential packages..."),
        ("I: running --customize-hook in shell: sh -c 'rm -rf ...' exec /tmp/x", None),
        ("I: removing tempdir /tmp/x...", None),
        ("Unpacking libc6...", None),
    ],
)
def test_of_the_bootstrap_its_stages_are_shown(line: str, shown: str | None) -> None:
    assert interesting_line(line) == shown


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            "STEP 4/6: RUN --mount=type=cache,id=x,target=/var/cache/apt     apt-get update &&     apt-get install",
            "RUN apt-get update && apt-get install",
        ),
        ("STEP 5/8: COPY pam/sshd /etc/pam.d/", "COPY pam/sshd /etc/pam.d/"),
        ("[1/2] STEP 6/6: RUN make install", "RUN make install"),
        ("STEP 3/10: ARG SOURCE_DATE_EPOCH", None),
        ("Get:1 http://mirror.example.org trixie InRelease", None),
    ],
)
def test_of_a_build_the_steps_that_take_time_are_shown(line: str, shown: str | None) -> None:
    assert interesting_step(line) == shown


def test_a_long_line_is_shortened() -> None:
    assert shortened("short") == "short"
    assert len(shortened("long " * 100)) == 90
    assert shortened("long " * 100).endswith("...")


@pytest.mark.parametrize(
    ("reference", "flag"),
    [
        ("localhost:5000/hpc/login:1", "--tls-verify=false"),
        ("127.0.0.1:5000/hpc/login:1", "--tls-verify=false"),
        ("127.0.0.1/hpc/login:1", "--tls-verify=false"),
        ("[::1]:5000/hpc/login:1", "--tls-verify=false"),
        ("registry.example.org/hpc/login:1", "--tls-verify=true"),
        ("registry.example.org:5000/hpc/login:1", "--tls-verify=true"),
        ("10.0.0.1:5000/hpc/login:1", "--tls-verify=true"),
        ("localhost.example.org:5000/hpc/login:1", "--tls-verify=true"),
    ],
)
def test_only_a_registry_on_this_machine_may_speak_plain_http(reference: str, flag: str) -> None:
    assert tls_verify(reference) == flag


def test_a_build_keeps_the_limits_of_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buildah, "_NOTES", tmp_path / "notes")
    commands: list[Sequence[str]] = []

    def run(_what: str, command: Sequence[str], *_: object) -> list[str]:
        commands.append(command)
        return []

    builder = Buildah(Tool("buildah", Path("/buildah")), tmp_path / "storage", lambda _: cast("Runner", run))
    builder.build("localhost/soperator/one:1", tmp_path, [], print)

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert f"--ulimit=nofile={soft}" in commands[-1]
