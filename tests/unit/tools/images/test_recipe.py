"""Tags change exactly when what goes into an image changes."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.console import UserError
from tools.images import references
from tools.images.recipe import FOLDERS, PARENTS, PUBLISHED, Recipe

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
    (recipe.folder / shared).mkdir()
    (recipe.folder / shared / "file").write_text("something")
    users = {user for user in FOLDERS if shared in FOLDERS[user]}

    assert name in users
    assert changed(before, recipe) == {image for user in users for image in on(user)}
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
