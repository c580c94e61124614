"""The mirror of the images follows from the machine's apt."""

from pathlib import Path

import pytest

from tools.images.mirror import AptSource, configured, derive, parse_deb822, parse_list, sources

BOOKWORM = {"ID": "debian", "VERSION_CODENAME": "bookworm"}
MIRROR = "http://mirror.example.org/debian"
SECURITY = "http://mirror.example.org/debian-security"
KEY = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

DEB822 = f"""\
# What the installer wrote
Types: deb deb-src
URIs: {MIRROR}
# http://snapshot.example.org
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: {KEY}

Types: deb
URIs: {SECURITY}
Suites: bookworm-security
Components:
 main
 non-free-firmware
Signed-By:
 {KEY}
"""

LIST = f"""\
# deb http://old.example.org/debian bookworm main
deb [arch=amd64 signed-by={KEY}] {MIRROR} bookworm main contrib # the nearest
deb-src {MIRROR} bookworm main
deb {MIRROR} bookworm-updates main
deb {SECURITY} bookworm-security main
"""


def test_paragraphs_are_read_with_their_comments_and_folded_lines() -> None:
    assert list(parse_deb822(DEB822)) == [
        AptSource(MIRROR, "bookworm", KEY),
        AptSource(MIRROR, "bookworm-updates", KEY),
        AptSource(SECURITY, "bookworm-security", KEY),
    ]


def test_lines_are_read_with_their_options_and_comments() -> None:
    assert list(parse_list(LIST)) == [
        AptSource(MIRROR, "bookworm", KEY),
        AptSource(MIRROR, "bookworm-updates"),
        AptSource(SECURITY, "bookworm-security"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"Types: deb-src\nURIs: {MIRROR}\nSuites: bookworm\nComponents: main\n",
        f"Enabled: no\nTypes: deb\nURIs: {MIRROR}\nSuites: bookworm\nComponents: main\n",
        f"Types: deb\nURIs: {MIRROR}\nSuites: bookworm\nComponents: contrib\n",
        "",
    ],
    ids=["sources only", "disabled", "without main", "empty"],
)
def test_what_gives_no_packages_of_main_is_left_out(text: str) -> None:
    assert list(parse_deb822(text)) == []


def test_a_key_that_is_written_in_place_is_left_to_apt() -> None:
    text = f"Types: deb\nURIs: {MIRROR}\nSuites: trixie\nComponents: main\nSigned-By:\n -----BEGIN PGP\n .\n x\n"

    assert list(parse_deb822(text)) == [AptSource(MIRROR, "trixie")]


def test_the_suites_of_the_machine_become_those_of_the_images() -> None:
    assert derive(parse_deb822(DEB822), BOOKWORM) == [
        AptSource(MIRROR, "trixie", KEY),
        AptSource(MIRROR, "trixie-updates", KEY),
        AptSource(SECURITY, "trixie-security", KEY),
    ]


@pytest.mark.parametrize("suite", ["bookworm", "stable", "oldstable"])
def test_a_release_may_be_called_by_its_name_or_its_age(suite: str) -> None:
    assert derive([AptSource(MIRROR, suite)], BOOKWORM) == [AptSource(MIRROR, "trixie")]


def test_other_repositories_of_the_machine_are_none_of_the_images_business() -> None:
    others = [
        AptSource("http://apt.example.org/tool", "tool-stable"),
        AptSource(MIRROR, "bookworm-backports"),
        AptSource("file:/srv/debian", "bookworm"),
        AptSource(MIRROR, "bookworm"),
    ]

    assert derive(others, BOOKWORM) == [AptSource(MIRROR, "trixie")]


@pytest.mark.parametrize("system", [{"ID": "ubuntu", "VERSION_CODENAME": "noble"}, {}], ids=["Ubuntu", "unknown"])
def test_nothing_is_derived_on_another_system(system: dict[str, str]) -> None:
    assert derive([AptSource("http://archive.example.org/ubuntu", "noble")], system) == []


def test_updates_alone_are_no_mirror() -> None:
    assert derive([AptSource(SECURITY, "bookworm-security")], BOOKWORM) == []


@pytest.fixture
def machine(tmp_path: Path) -> tuple[Path, Path]:
    """Return a folder like /etc/apt and a file like /etc/os-release."""
    (tmp_path / "apt" / "sources.list.d").mkdir(parents=True)
    (tmp_path / "apt" / "sources.list.d" / "debian.sources").write_text(DEB822)
    (tmp_path / "apt" / "sources.list.d" / "notes.txt").write_text("deb http://no.example.org bookworm main\n")
    (tmp_path / "os-release").write_text('NAME="Debian GNU/Linux"\nID=debian\nVERSION_CODENAME=bookworm\n')
    return tmp_path / "apt", tmp_path / "os-release"


def test_the_machines_own_files_are_read(machine: tuple[Path, Path]) -> None:
    (machine[0] / "sources.list").write_text(LIST)

    assert {source.uri for source in configured(machine[0])} == {MIRROR, SECURITY}
    assert AptSource(MIRROR, "trixie", KEY) in sources(None, *machine)


def test_a_given_mirror_takes_the_place_of_the_machines(machine: tuple[Path, Path]) -> None:
    assert sources("http://other.example.org/debian", *machine) == [
        AptSource("http://other.example.org/debian", "trixie"),
        AptSource("http://other.example.org/debian", "trixie-updates"),
        AptSource(SECURITY, "trixie-security", KEY),
    ]


def test_a_given_mirror_is_enough_on_any_system(tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text("ID=ubuntu\nVERSION_CODENAME=noble\n")

    assert [source.suite for source in sources(MIRROR, tmp_path, tmp_path / "os-release")] == [
        "trixie",
        "trixie-updates",
    ]


def test_sources_of_another_release_are_those_of_its_suites() -> None:
    found = [AptSource(MIRROR, "trixie", KEY), AptSource(SECURITY, "trixie-security", KEY)]

    assert derive(found, {"ID": "debian", "VERSION_CODENAME": "trixie"}, "forky") == [
        AptSource(MIRROR, "forky", KEY),
        AptSource(SECURITY, "forky-security", KEY),
    ]
