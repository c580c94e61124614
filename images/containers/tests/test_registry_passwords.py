"""Passwords of registries from the files that users have."""

import base64
import json
import os
from pathlib import Path

import pytest

from container_images import registry_passwords
from container_images.image_reference import ImageError, ImageReference

IMAGE = ImageReference("docker://nvcr.io/a:1", "nvcr.io")
HUB = ImageReference("docker://docker.io/a:1", "docker.io")
SECRET = base64.b64encode(b"alice:secret").decode()


def write(home: Path, name: str, text: str) -> None:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)


def docker(host: str) -> str:
    return json.dumps({"auths": {"other": {"auth": "b3RoZXI6eA=="}, host: {"auth": SECRET}}})


def found(home: Path, image: ImageReference = IMAGE, **environment: str) -> str | None:
    login = registry_passwords.find(image, {"HOME": str(home), **environment}, lambda _: None)
    return login["auth"] if login else None


@pytest.mark.parametrize("name", [".docker/config.json", ".config/containers/auth.json"])
def test_the_login_of_docker_and_of_podman_counts(name: str, tmp_path: Path) -> None:
    write(tmp_path, name, docker("nvcr.io"))

    assert found(tmp_path) == SECRET


def test_a_user_and_a_password_without_auth_count_as_for_the_kubelet(tmp_path: Path) -> None:
    login = {"username": "alice", "password": "secret", "email": "alice@example.com"}
    write(tmp_path, ".docker/config.json", json.dumps({"auths": {"nvcr.io": login}}))

    assert found(tmp_path) == SECRET
    assert found(tmp_path, ImageReference("docker://nvcr.io/a:1", "nvcr.io", "alice")) == SECRET


def test_the_login_of_docker_hub_has_a_name_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, ".docker/config.json", docker("https://index.docker.io/v1/"))

    assert found(tmp_path, HUB) == SECRET


def test_a_token_counts_with_its_login(tmp_path: Path) -> None:
    login = {"auth": SECRET, "identitytoken": "token"}
    write(tmp_path, ".docker/config.json", json.dumps({"auths": {"nvcr.io": login}}))

    found = registry_passwords.find(IMAGE, {"HOME": str(tmp_path)}, print)
    descriptor = registry_passwords.auth_file({IMAGE.registry: found})

    with os.fdopen(descriptor) as file:
        assert json.loads(os.pread(file.fileno(), 4096, 0)) == {"auths": {"nvcr.io": login}}


def test_the_login_of_the_longest_part_of_a_name_counts(tmp_path: Path) -> None:
    logins = {
        name: {"auth": base64.b64encode(f"{name}:x".encode()).decode()} for name in ("q.io", "q.io/a", "q.io/a/b")
    }
    write(tmp_path, ".config/containers/auth.json", json.dumps({"auths": logins}))

    for name, key in (("a/b/c:1", "q.io/a/b"), ("a/b:1", "q.io/a/b"), ("a/d", "q.io/a"), ("ab/c", "q.io")):
        assert found(tmp_path, ImageReference(f"docker://q.io/{name}", "q.io")) == logins[key]["auth"]


@pytest.mark.parametrize(
    "config", [{"credsStore": "desktop", "auths": {"nvcr.io": {}}}, {"credHelpers": {"nvcr.io": "desktop"}}]
)
def test_a_helper_is_not_run_and_that_is_said_if_no_file_has_the_login(
    config: dict[str, object], tmp_path: Path
) -> None:
    write(tmp_path, ".docker/config.json", json.dumps(config))
    said: list[str] = []

    assert registry_passwords.find(IMAGE, {"HOME": str(tmp_path)}, said.append) is None
    assert len(said) == 1
    assert "the helper desktop, and helpers are not run" in said[0]

    assert registry_passwords.find(HUB, {"HOME": str(tmp_path)}, said.append) is None
    write(tmp_path, ".config/enroot/.credentials", "machine nvcr.io login alice password secret\n")
    assert registry_passwords.find(IMAGE, {"HOME": str(tmp_path)}, said.append) == {"auth": SECRET}
    assert len(said) == 1


def test_a_line_of_enroot_counts(tmp_path: Path) -> None:
    write(tmp_path, ".config/enroot/.credentials", "machine nvcr.io login alice password secret\n")

    assert found(tmp_path) == SECRET


def test_commands_in_the_file_of_enroot_are_not_run(tmp_path: Path) -> None:
    write(tmp_path, ".config/enroot/.credentials", f"machine nvcr.io login x password $(touch${{IFS}}{tmp_path}/ran)\n")

    with pytest.raises(ImageError, match="commands are not run"):
        found(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_without_a_file_the_registry_is_asked_without_a_password(tmp_path: Path) -> None:
    assert found(tmp_path) is None


def test_a_user_without_a_password_is_refused_with_the_files_that_were_read(tmp_path: Path) -> None:
    write(tmp_path, ".docker/config.json", docker("nvcr.io"))

    with pytest.raises(ImageError, match=r"no password of bob for nvcr\.io is in .*/\.docker/config\.json"):
        found(tmp_path, ImageReference("docker://nvcr.io/a:1", "nvcr.io", "bob"))
    assert found(tmp_path, ImageReference("docker://nvcr.io/a:1", "nvcr.io", "alice")) == SECRET


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".docker/config.json", '{"auths": {"nvcr.io": {"auth": "very secret"}}}'),
        (".docker/config.json", '"very secret"'),
        (".config/enroot/.credentials", "very secret\n"),
    ],
)
def test_a_broken_file_is_named_and_its_content_is_not_shown(name: str, text: str, tmp_path: Path) -> None:
    write(tmp_path, name, text)

    with pytest.raises(ImageError) as caught:
        found(tmp_path)
    assert str(tmp_path / name) in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_file_for_skopeo_is_in_no_folder() -> None:
    descriptor = registry_passwords.auth_file({"nvcr.io": {"auth": SECRET}, "a.io": None})
    try:
        assert json.loads(os.pread(descriptor, 4096, 0)) == {"auths": {"nvcr.io": {"auth": SECRET}}}
        assert os.fstat(descriptor).st_nlink == 0
    finally:
        os.close(descriptor)
