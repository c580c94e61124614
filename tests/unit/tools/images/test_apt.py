"""The machine's way to a mirror goes into a build, and nothing else."""

from pathlib import Path

import pytest

from tools.images.apt import BuildApt, prepare
from tools.images.mirror import AptSource

SETTINGS = """\
APT "";
APT::Architecture "amd64";
APT::Update::Post-Invoke:: "rm -f /var/cache/apt/archives/*.deb || true";
DPkg::Pre-Install-Pkgs:: "/usr/sbin/dpkg-preconfigure --apt || true";
Acquire "";
Acquire::http "";
Acquire::http::Proxy "http://user:secret@proxy.example.org:3128";
Acquire::http::Proxy-Auto-Detect "/usr/local/bin/find-proxy";
Acquire::https::SslCert "{certificate}";
Acquire::Check-Valid-Until "false";
Acquire::Languages "en";
Acquire::IndexTargets::deb::DEP-11::MetaKey "$(COMPONENT)/dep11/Components-$(NATIVE_ARCHITECTURE).yml";
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Return a folder with a certificate, a key, and what /etc/apt has."""
    (tmp_path / "client.pem").write_text("certificate")
    (tmp_path / "mirror.gpg").write_text("key")
    (tmp_path / "apt" / "auth.conf.d").mkdir(parents=True)
    (tmp_path / "apt" / "auth.conf.d" / "mirror.conf").write_text("machine mirror.example.org login me")
    return tmp_path


@pytest.fixture
def prepared(machine: Path) -> BuildApt:
    settings = SETTINGS.format(certificate=machine / "client.pem")
    source = AptSource("https://mirror.example.org/debian", "trixie", machine / "mirror.gpg")
    return prepare(machine / "build", [source], settings, machine / "apt")


def inside(prepared: BuildApt, path: str) -> Path:
    """Return the file of this machine that a build sees at a path."""
    for volume in prepared.volumes:
        outside, mounted, _ = volume.split(":")
        if path.startswith(f"{mounted}/"):
            return Path(outside) / path.removeprefix(f"{mounted}/")
    pytest.fail(f"{path} is not mounted in a build")


def value(text: str, name: str) -> str:
    return next(line.split('"')[1] for line in text.splitlines() if line.startswith(f"{name} "))


def settings_inside(prepared: BuildApt) -> str:
    return "".join(file.read_text() for file in sorted(inside(prepared, "/etc/apt/apt.conf.d/x").parent.iterdir()))


def test_the_proxy_and_leniency_about_dates_reach_a_build_and_the_bootstrap(prepared: BuildApt) -> None:
    for text in (settings_inside(prepared), prepared.settings.read_text()):
        assert 'Acquire::http::Proxy "http://user:secret@proxy.example.org:3128";' in text
        assert 'Acquire::Check-Valid-Until "false";' in text


@pytest.mark.parametrize("left_out", ["Post-Invoke", "preconfigure", "find-proxy", "DEP-11", "Architecture"])
def test_hooks_and_choices_of_the_machine_stay_on_it(prepared: BuildApt, left_out: str) -> None:
    assert left_out not in settings_inside(prepared)
    assert left_out not in prepared.settings.read_text()


def test_a_certificate_lies_where_the_build_looks_for_it(prepared: BuildApt) -> None:
    named = value(settings_inside(prepared), "Acquire::https::SslCert")

    assert inside(prepared, named).read_text() == "certificate"
    assert Path(value(prepared.settings.read_text(), "Acquire::https::SslCert")).read_text() == "certificate"


def test_the_authorities_that_the_machine_trusts_are_trusted_in_a_build(prepared: BuildApt) -> None:
    named = value(settings_inside(prepared), "Acquire::https::CAInfo")

    assert "BEGIN CERTIFICATE" in inside(prepared, named).read_text()


def test_an_own_authority_of_the_mirror_is_kept(machine: Path) -> None:
    settings = f'Acquire::https::CAInfo "{machine / "client.pem"}";'
    prepared = prepare(machine / "build", [], settings, machine / "apt")

    named = value(settings_inside(prepared), "Acquire::https::CAInfo")
    assert inside(prepared, named).read_text() == "certificate"


def test_sources_name_keys_that_are_there(prepared: BuildApt) -> None:
    line = inside(prepared, "/etc/apt/sources.list.d/build.list").read_text().strip()
    key = line.partition("signed-by=")[2].partition("]")[0]

    assert line == f"deb [signed-by={key}] https://mirror.example.org/debian trixie main"
    assert inside(prepared, key).read_text() == "key"
    assert [source.signed_by and source.signed_by.read_text() for source in prepared.sources] == ["key"]


def test_credentials_of_mirrors_are_for_root_alone(prepared: BuildApt) -> None:
    credentials = inside(prepared, "/etc/apt/auth.conf.d/mirror.conf")

    assert credentials.read_text() == "machine mirror.example.org login me"
    assert credentials.stat().st_mode & 0o777 == 0o600
    assert prepared.folder.stat().st_mode & 0o777 == 0o700


def test_the_bootstrap_reads_keys_as_root_wherever_the_cache_is(prepared: BuildApt) -> None:
    assert value(prepared.settings.read_text(), "APT::Sandbox::User") == "root"


def test_a_build_can_change_none_of_it(prepared: BuildApt) -> None:
    assert all(volume.endswith(":ro") for volume in prepared.volumes)


@pytest.mark.parametrize("stale", [True, False])
def test_expired_indexes_are_taken_for_a_release_before_its_release_alone(machine: Path, stale: bool) -> None:
    source = AptSource("https://mirror.example.org/debian", "forky", machine / "mirror.gpg")
    prepared = prepare(machine / "build", [source], "", machine / "apt", stale=stale)

    assert ('Acquire::Check-Valid-Until "false";' in prepared.settings.read_text()) is stale
    assert ('Acquire::Check-Valid-Until "false";' in settings_inside(prepared)) is stale
