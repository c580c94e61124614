"""Images brought by the real skopeo and umoci."""

import hashlib
import io
import json
import os
import re
import stat
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from container_images.bringing import in_words
from container_images.image_store import STORE
from container_images.import_command import main
from tests import debian_packages

FOLDER = Path(__file__).parents[1]
PROGRAMS = ("skopeo", "umoci")


@pytest.fixture(scope="session")
def programs() -> dict[str, str]:
    """Variables with which the programs are found."""
    root = debian_packages.unpacked_packages(
        "containers", PROGRAMS, debian_packages.missing_with_requirements(PROGRAMS)
    )
    libraries = ":".join(str(path) for path in (root / "usr/lib").glob("*-linux-gnu"))
    return {"PATH": f"{root}/usr/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": libraries}


def layer(members: Iterable[tarfile.TarInfo | tuple[str, bytes]]) -> bytes:
    """Return a layer with files, or with whatever else a tar can hold."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size, info.mode = len(member[1]), 0o644
                archive.addfile(info, io.BytesIO(member[1]))
    return buffer.getvalue()


def special(name: str, kind: bytes, target: str = "", mode: int = 0o755) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, mode
    return info


def make_layout(folder: Path, layers: Iterable[bytes], **config: object) -> Path:
    """Make an OCI layout of an image."""
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(content: bytes, kind: str) -> dict[str, object]:
        name = hashlib.sha256(content).hexdigest()
        (blobs / name).write_bytes(content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{name}", "size": len(content)}

    described = [blob(each, "layer.v1.tar") for each in layers]
    rootfs = {"type": "layers", "diff_ids": [each["digest"] for each in described]}
    platform = {"architecture": "amd64", "os": "linux"}
    settings = blob(json.dumps({**platform, "config": config, "rootfs": rootfs}).encode(), "config.v1+json")
    manifest = blob(
        json.dumps({"schemaVersion": 2, "config": settings, "layers": described}).encode(), "manifest.v1+json"
    )
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
    return folder


def brought(home: Path, image: object, programs: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Path:
    code = main(["7", str(image)], {**programs, "HOME": str(home)})
    said = capsys.readouterr().out
    assert code == 0, said
    return Path(said.splitlines()[-1].removeprefix("image="))


def test_a_layout_becomes_a_folder_with_files_variables_and_a_directory(
    tmp_path: Path, programs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    layout = make_layout(
        tmp_path / "layout",
        [layer([("etc/name", b"first"), ("gone", b"x")]), layer([("etc/name", b"second"), (".wh.gone", b"")])],
        Env=["PATH=/opt/bin", "TEXT=two\nlines"],
        WorkingDir="/work",
    )

    folder = brought(tmp_path / "home", layout, programs, capsys)

    assert folder.parent == tmp_path / "home" / STORE / "images"
    assert (folder / "rootfs/etc/name").read_text() == "second"
    assert not (folder / "rootfs/gone").exists()
    assert (folder / "environment").read_bytes() == b"PATH=/opt/bin\0TEXT=two\nlines\0"
    assert (folder / "workdir").read_text() == "/work"
    assert sorted(path.name for path in folder.iterdir()) == ["environment", "rootfs", "workdir"]


def test_an_archive_is_an_image_too(
    tmp_path: Path, programs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    layout = make_layout(tmp_path / "layout", [layer([("it", b"x")])])
    for kind in ("oci-archive", "docker-archive"):
        archive = f"{tmp_path}/{kind}.tar"
        subprocess.run(
            ["skopeo", "--insecure-policy", "copy", f"oci:{layout}", f"{kind}:{archive}:a:1"],
            env=programs,
            check=True,
            capture_output=True,
        )

        assert (brought(tmp_path / kind, archive, programs, capsys) / "rootfs/it").read_text() == "x"


def test_a_hostile_image_stays_in_its_folder_and_has_no_devices(
    tmp_path: Path, programs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    device = special("device", tarfile.CHRTYPE)
    device.devmajor, device.devminor = 1, 8
    members: list[tarfile.TarInfo | tuple[str, bytes]] = [
        ("../../../../outside/up", b"x"),
        (f"{outside}/absolute", b"x"),
        special("link", tarfile.SYMTYPE, str(outside)),
        ("link/through", b"x"),
        special("loop", tarfile.SYMTYPE, "loop"),
        ("a\nname", b"x"),
        special("closed", tarfile.DIRTYPE, mode=0o000),
        special("setuid", tarfile.REGTYPE, mode=0o4755),
        device,
    ]
    layout = make_layout(tmp_path / "layout", [layer(members)])

    root = brought(tmp_path / "home", layout, programs, capsys) / "rootfs"

    assert list(outside.iterdir()) == []
    assert not stat.S_ISCHR((root / "device").lstat().st_mode)
    assert (root / "closed").stat().st_mode & 0o700 == 0o700


def test_a_broken_layer_is_told_and_leaves_no_image(
    tmp_path: Path, programs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    layout = make_layout(tmp_path / "layout", [layer([("it", b"x")])])
    manifest = json.loads((layout / "index.json").read_text())["manifests"][0]["digest"].removeprefix("sha256:")
    content = json.loads((layout / "blobs/sha256" / manifest).read_text())
    broken = layout / "blobs/sha256" / content["layers"][0]["digest"].removeprefix("sha256:")
    broken.write_bytes(broken.read_bytes().replace(b"it", b"IT"))

    code = main(["7", str(layout)], {**programs, "HOME": str(tmp_path / "home")})

    assert code == 1
    assert "skopeo: " in capsys.readouterr().out.splitlines()[-1]
    assert list((tmp_path / "home" / STORE / "images").iterdir()) == []


def test_a_registry_that_is_not_there_is_told_in_a_line(
    tmp_path: Path, programs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["7", "127.0.0.1:1#a/b:1"], {**programs, "HOME": str(tmp_path)})
    said = capsys.readouterr().out.splitlines()

    assert code == 1
    assert "connection refused" in said[-1]
    assert len(said) == 1


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        (
            'time="x" level=fatal msg="unauthorized: access denied"\n',
            r"unauthorized: access denied\. Is the name right",
        ),
        ("FATA[0001] toomanyrequests: wait\n", r"toomanyrequests: wait\. The registry limits pulls"),
        ("write /x: no space left on device\n\n", r"no space left on device\. The home is full"),
        ("", "it said nothing"),
    ],
)
def test_a_failure_says_what_to_do_next(errors: str, words: str) -> None:
    assert re.search(words, in_words("skopeo", errors))


def test_the_program_as_the_plugin_starts_it_imports_nothing_but_the_standard_library() -> None:
    script = (FOLDER / "import-image").read_text().replace("/usr/lib/soperator/containers", str(FOLDER))
    done = subprocess.run(
        [sys.executable, "-IS", "-c", script, "7", "No Image"],
        env={"HOME": "/"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert '"No Image" is no image' in done.stdout
    assert done.stderr == ""
