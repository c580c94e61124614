"""Settings of containers in jobs, as rendered, against the program that reads them."""

import json
from pathlib import Path
from typing import Any

from container_images.copies_on_disk import DISK
from container_images.import_settings import SETTINGS, ImportSettings, read_settings
from container_images.local_copies import LocalLimits
from container_images.node_report import REPORTS
from container_images.registry_settings import Registry
from container_images.store_cleaning import StoreLimits
from soperator_pulumi.render import layout
from soperator_pulumi.render.job_containers import container_files
from tests.cluster.certificates import Authority
from tests.strategies import a_spec

AUTHORITY = Authority.made("registries").pem.decode()


def settings(folder: Path, **containers: Any) -> ImportSettings:
    (text,) = container_files(a_spec(containers=containers)).values()
    (folder / "settings.json").write_text(text)
    return read_settings(folder / "settings.json")


def test_the_program_finds_the_file_of_the_spec() -> None:
    (name,) = container_files(a_spec(containers={}))

    assert Path(layout.HEALTH_SETTINGS, name) == SETTINGS


def test_the_program_finds_the_disk_for_copies() -> None:
    assert Path(layout.LOCAL_IMAGES) == DISK


def test_a_node_reports_into_the_store_of_shared_images() -> None:
    assert Path(layout.JAIL_DIR, layout.IMAGES_IN_JAIL, "nodes") == REPORTS


def test_a_cluster_without_containers_has_no_file_of_them() -> None:
    assert container_files(a_spec()) == {}


def test_without_keys_the_settings_are_those_without_a_file(tmp_path: Path) -> None:
    assert settings(tmp_path) == read_settings(tmp_path / "missing") == ImportSettings()


def test_limits_of_images_are_bytes_and_seconds(tmp_path: Path) -> None:
    assert settings(tmp_path, images_gib=1.5, unused_days=2).limits == StoreLimits(3 * 2**29, 2 * 86_400)


def test_limits_of_local_copies_reach_the_program(tmp_path: Path) -> None:
    local = {"host_path": "/mnt/local", "images_gib": 0.5, "unused_days": 3, "free_percent": 5}
    store = StoreLimits(2**29, 3 * 86_400, "containers.local.images_gib")
    assert settings(tmp_path, local=local).local == LocalLimits(store, 5)


def test_a_new_program_reads_settings_of_a_version_without_local_copies(tmp_path: Path) -> None:
    (text,) = container_files(a_spec(containers={"local": {"host_path": "/mnt/local"}})).values()
    former = json.loads(text)
    del former["local"]
    (tmp_path / "settings.json").write_text(json.dumps(former))

    assert read_settings(tmp_path / "settings.json") == ImportSettings()


def test_registries_are_as_the_program_knows_them(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        registries=[
            {"host": "docker.io", "mirrors": ["a.example.com/hub", "b.example.com"]},
            {"host": "a.example.com", "authority": AUTHORITY},
            {"host": "b.example.com", "insecure": True},
        ],
    )

    assert found.registries == (
        Registry("docker.io", ("a.example.com/hub", "b.example.com")),
        Registry("a.example.com", authority=AUTHORITY),
        Registry("b.example.com", insecure=True),
    )


def test_a_proxy_is_variables_of_the_program(tmp_path: Path) -> None:
    found = settings(tmp_path, proxy={"url": "http://proxy:3128", "direct": ["a.example.com", "10.0.0.1"]})

    assert found.variables == {
        "http_proxy": "http://proxy:3128",
        "https_proxy": "http://proxy:3128",
        "no_proxy": "a.example.com,10.0.0.1",
    }


def test_allowed_registries_reach_the_program(tmp_path: Path) -> None:
    places = ("nvcr.io", "registry.example.com:5000/team")

    assert settings(tmp_path, allowed_registries=places).allowed_registries == places
