"""Tags change exactly when what goes into an image changes."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.console import UserError
from tools.images import references, version_of
from tools.images.recipe import FOLDERS, ONE_SUITE, PARENTS, PUBLISHED, Recipe

NAMES = ("base", *PARENTS)


def a_folder(folder: Path) -> Path:
    """Write image folders, one file each."""
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        (folder / name / "Containerfile").write_text(f"FROM something\nLABEL name={name}\n")
    (folder / "AS_OF").write_text("2026-11-21\n")
    return folder


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    return Recipe(a_folder(tmp_path / "images"), architecture="x86_64")


def on(image: str) -> set[str]:
    """Return an image and all that are built on it."""
    return {image} | {name for child, parents in PARENTS.items() if image in parents for name in on(child)}


def changed(before: dict[str, str], recipe: Recipe) -> set[str]:
    after = recipe.tags()
    return {name for name in NAMES if before[name] != after[name]}


def test_the_same_content_has_the_same_tags_wherever_it_lies(recipe: Recipe, tmp_path: Path) -> None:
    copy = shutil.copytree(recipe.folder, tmp_path / "elsewhere")

    assert replace(recipe, folder=Path(copy)).tags() == recipe.tags()


@pytest.mark.parametrize("name", NAMES)
def test_a_change_in_a_folder_changes_the_image_and_all_that_are_built_on_it(recipe: Recipe, name: str) -> None:
    before = recipe.tags()
    (recipe.folder / name / "Containerfile").write_text("FROM something else\n")

    assert changed(before, recipe) == on(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_new_file_and_an_executable_bit_change_the_tag(recipe: Recipe, name: str) -> None:
    before = recipe.tags()
    file = recipe.folder / name / "script"
    file.write_text("")
    with_file = recipe.tags()
    file.chmod(0o755)

    assert changed(with_file, recipe) == on(name)
    assert with_file[name] != before[name]


def test_a_file_by_another_name_changes_the_tag(recipe: Recipe) -> None:
    (recipe.folder / "login" / "one").write_text("text")
    before = recipe.tags()
    (recipe.folder / "login" / "one").rename(recipe.folder / "login" / "two")

    assert changed(before, recipe) == {"login"}


@given(st.lists(st.tuples(st.text("ab", min_size=1, max_size=3), st.binary(max_size=4)), max_size=4))
@settings(max_examples=30, deadline=None)
def test_tags_differ_whenever_files_differ(
    tmp_path_factory: pytest.TempPathFactory, files: list[tuple[str, bytes]]
) -> None:
    recipe = Recipe(a_folder(tmp_path_factory.mktemp("recipe") / "images"))
    before = recipe.tags()
    for name, content in files:
        (recipe.folder / "worker" / name).write_bytes(content)

    assert changed(before, recipe) == ({"worker"} if files else set())


@pytest.mark.parametrize(
    "left", ["tests/test_something.py", "jail_testing/jails.py", "__pycache__/module.pyc", "build/plugin.so"]
)
def test_tests_and_compiled_files_are_no_content(recipe: Recipe, left: str) -> None:
    before = recipe.tags()
    (recipe.folder / "worker" / left).parent.mkdir()
    (recipe.folder / "worker" / left).write_text("something")

    assert changed(before, recipe) == set()


@pytest.mark.parametrize(("name", "shared"), [(name, folder) for name in FOLDERS for folder in FOLDERS[name]])
def test_a_change_in_a_folder_that_is_built_in_changes_the_image(recipe: Recipe, name: str, shared: str) -> None:
    before = recipe.tags()
    (recipe.folder / shared).mkdir(parents=True)
    (recipe.folder / shared / "file").write_text("something")
    users = {user for user in FOLDERS if shared in FOLDERS[user]}

    owner = {Path(shared).parts[0]} & {*NAMES}

    assert name in users
    assert changed(before, recipe) == {image for user in users | owner for image in on(user)}
    assert recipe.content(name)[f"{Path(shared).name}/file"] == recipe.folder / shared / "file"


def test_edits_during_a_build_do_not_get_into_it(recipe: Recipe, tmp_path: Path) -> None:
    (recipe.folder / "../spank-plugin").mkdir()
    (recipe.folder / "../spank-plugin" / "plugin.c").write_text("int one;\n")
    before = recipe.tags()
    snapshot = recipe.snapshot(tmp_path / "snapshot")
    (recipe.folder / "../spank-plugin" / "plugin.c").write_text("int two;\n")

    assert snapshot.tags() == before
    assert recipe.tags() != before


def test_a_later_date_of_packages_changes_all_tags(recipe: Recipe) -> None:
    before = recipe.tags()
    (recipe.folder / "AS_OF").write_text("2027-01-01\n")

    assert changed(before, recipe) == set(NAMES)


def test_the_date_of_packages_is_the_time_of_files(recipe: Recipe) -> None:
    (recipe.folder / "AS_OF").write_text("2026-11-21\n")

    assert recipe.as_of == 1795219200  # date -u -d 2026-11-21 +%s


def test_a_date_that_is_none_is_refused_with_what_is_allowed(recipe: Recipe) -> None:
    (recipe.folder / "AS_OF").write_text("soon\n")

    with pytest.raises(UserError, match=r'AS_OF holds "soon"\. Write a date like 2026-11-21'):
        recipe.tags()


def test_another_architecture_has_other_tags(recipe: Recipe) -> None:
    assert changed(recipe.tags(), replace(recipe, architecture="aarch64")) == set(NAMES)


def test_a_pulled_base_gives_all_images_tags_of_their_own(recipe: Recipe) -> None:
    one = replace(recipe, base="registry.example.org/debian:trixie-slim")
    other = replace(recipe, base="registry.example.org/debian:trixie-20261101-slim")

    assert changed(recipe.tags(), one) == set(NAMES)
    assert changed(one.tags(), other) == set(NAMES)


def test_with_a_pulled_base_our_own_does_not_matter(recipe: Recipe) -> None:
    pulled = replace(recipe, base="registry.example.org/debian:trixie-slim")
    before = pulled.tags()
    (recipe.folder / "base" / "Containerfile").write_text("FROM something else\n")

    assert changed(before, pulled) == set()
    assert "base" not in pulled.order()


@pytest.fixture
def with_source(recipe: Recipe, tmp_path: Path) -> Recipe:
    """A recipe with an archive of Slurm's sources."""
    (recipe.folder / "pmix").mkdir()
    (recipe.folder / "pmix" / "Containerfile").write_text("FROM something\n")
    archive = tmp_path / "slurm.tar.bz2"
    archive.write_bytes(b"sources")
    return replace(recipe, source=archive)


def test_a_source_archive_changes_all_that_is_built_on_slurm_and_the_rest_stays(with_source: Recipe) -> None:
    plain = replace(with_source, source=None)

    assert changed(plain.tags(), with_source) == on("slurm") - {"slurm"}


def test_another_source_archive_gives_other_tags_wherever_it_lies(with_source: Recipe, tmp_path: Path) -> None:
    before = with_source.tags()
    moved = replace(with_source, source=Path(shutil.copy(with_source.source or "", tmp_path / "again.tar")))
    assert moved.tags() == before

    (tmp_path / "again.tar").write_bytes(b"other sources")
    assert changed(before, moved) == on("slurm") - {"slurm"}


def test_the_plugin_for_pmix_is_built_on_slurm_and_the_others_on_it(with_source: Recipe) -> None:
    order = with_source.order()

    assert order.index("slurm") + 1 == order.index("pmix")
    assert with_source.parents("pmix") == {"SLURM": "slurm"}
    assert with_source.parents("node") == {"SLURM": "pmix", "TOOLCHAIN": "toolchain"}
    assert replace(with_source, source=None).parents("node") == {"SLURM": "slurm", "TOOLCHAIN": "toolchain"}


def test_a_source_archive_that_changes_during_a_build_does_not_get_into_it(with_source: Recipe, tmp_path: Path) -> None:
    before = with_source.tags()
    snapshot = with_source.snapshot(tmp_path / "snapshot")
    (tmp_path / "slurm.tar.bz2").write_bytes(b"half of anoth")

    assert snapshot.tags() == before
    assert with_source.tags() != before


def test_images_without_slurm_are_the_same_with_a_source_archive(tmp_path: Path) -> None:
    archive = tmp_path / "slurm.tar.bz2"
    archive.write_bytes(b"sources")

    for slurm in ("24.11", "26.05"):
        plain, own = references(slurm=slurm), references(slurm=slurm, source=archive)
        assert {name for name in plain if plain[name] == own[name]} == {"database", "jail", "jail_tools"}
    based = references(base="registry.example.org/debian:trixie-slim")
    own = references(base="registry.example.org/debian:trixie-slim", source=archive)
    assert {name for name in based if based[name] == own[name]} == {"database", "jail", "jail_tools"}


def test_a_source_archive_that_is_missing_is_refused() -> None:
    with pytest.raises(UserError, match=r"no-such\.tar is not a file\. Name an archive of Slurm's sources"):
        references(source=Path("no-such.tar"))


def test_parents_are_built_first(recipe: Recipe) -> None:
    order = recipe.order()

    assert set(order) == set(NAMES)
    assert all(order.index(parent) < order.index(child) for child, parents in PARENTS.items() for parent in parents)


def test_references_name_every_image_that_pods_run() -> None:
    local = references()

    assert set(local) == {name.replace("-", "_") for name in PUBLISHED}
    assert all(
        reference.startswith(f"localhost/soperator/{key.replace('_', '-')}:") for key, reference in local.items()
    )


@pytest.mark.parametrize("registry", ["registry.example.org/hpc", "registry.example.org/hpc/"])
def test_in_a_registry_the_tags_are_the_same(registry: str) -> None:
    tags = {name: reference.rpartition(":")[2] for name, reference in references().items()}

    assert references(registry) == {
        key: f"registry.example.org/hpc/{key.replace('_', '-')}:{tag}" for key, tag in tags.items()
    }


def test_references_of_this_checkout_do_not_need_anything_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")

    assert references() == references()
    assert list(tmp_path.iterdir()) == []


def test_each_version_of_slurm_has_images_of_its_own_and_shares_those_without_slurm() -> None:
    old, new = references(slurm="24.11"), references(slurm="26.05")
    assert old.keys() == new.keys()
    shared = {name for name in old if old[name] == new[name]}
    assert shared == {name.replace("-", "_") for name in ONE_SUITE}
    assert references() == old


@pytest.mark.parametrize(
    ("cluster", "version"),
    [
        ({"slurm": {"version": "26.05"}}, "26.05"),
        ({"slurm": {"version": 26.05}}, "24.11"),
        ({"slurm": "26.05"}, "24.11"),
        ({}, "24.11"),
        (None, "24.11"),
    ],
)
def test_the_version_of_a_description_chooses_the_images(cluster: object, version: str) -> None:
    assert version_of(cluster) == version
