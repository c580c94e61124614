"""Images brought by the real skopeo and umoci."""

import hashlib
import json
import os
import platform
import re
import shutil
import socket
import stat
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from containers_testing.image_registry import layer, log_in, make_layout, running, special, variables_of_programs

from container_images import program_running
from container_images.bringing import ImageBringer, keep_whole_blobs, size_of_layers
from container_images.image_reference import ImageError, parse
from container_images.image_settings import settings_of_layout
from container_images.image_store import STORE
from container_images.import_command import main
from container_images.import_settings import SETTINGS
from container_images.program_running import in_words
from container_images.store_cleaning import remove
from tests.waiting import wait_until

FOLDER = Path(__file__).parents[1]
INDEX = "application/vnd.oci.image.index.v1+json"


@pytest.fixture(scope="session")
def programs() -> dict[str, str]:
    """Variables with which the programs are found."""
    return variables_of_programs()


def digest_of(layout: Path) -> str:
    """Return the digest of the only manifest in a layout, without its algorithm."""
    (manifest,) = json.loads((layout / "index.json").read_text())["manifests"]
    return str(manifest["digest"]).removeprefix("sha256:")


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """The address of a registry, and what it has been asked for; its authority is in `tmp_path`."""
    with running(tmp_path, make_layout(tmp_path / "served", [layer([("it", b"x")])])) as served:
        yield served


def test_an_image_of_a_registry_is_brought_once_with_the_users_password(
    tmp_path: Path,
    programs: dict[str, str],
    registry: tuple[str, list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    host, asked = registry
    variables = {**programs, "SSL_CERT_FILE": str(tmp_path / "ca.crt")}
    log_in(tmp_path / "home", host, "secret")

    folder = brought(tmp_path / "home", f"{host}#team/image:1.0", variables, capsys)
    assert (folder / "rootfs/it").read_text() == "x"
    assert any("/blobs/" in path for path in asked)

    asked.clear()
    assert brought(tmp_path / "home", f"{host}#team/image:1.0", variables, capsys, job="7") == folder
    assert asked == [], "the nodes of a job ask once"
    assert brought(tmp_path / "home", f"{host}/team/image:1.0", variables, capsys, job="8") == folder
    assert asked
    assert not any("/blobs/" in path for path in asked)


@pytest.mark.parametrize("password", [None, "wrong"])
def test_who_may_not_pull_an_image_may_not_start_the_one_that_is_there(
    tmp_path: Path,
    programs: dict[str, str],
    registry: tuple[str, list[str]],
    capsys: pytest.CaptureFixture[str],
    password: str | None,
) -> None:
    host, _ = registry
    variables = {**programs, "SSL_CERT_FILE": str(tmp_path / "ca.crt"), "HOME": str(tmp_path / "home")}
    log_in(tmp_path / "home", host, "secret")
    brought(tmp_path / "home", f"{host}#team/image:1.0", variables, capsys)
    shutil.rmtree(tmp_path / "home/.docker")
    if password:
        log_in(tmp_path / "home", host, password)

    assert main(["8", f"{host}#team/image:1.0"], variables) == 1
    assert "Is the name right, and are credentials" in capsys.readouterr().out


def test_a_registry_of_an_unknown_authority_is_reported(
    tmp_path: Path, programs: dict[str, str], registry: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["7", f"{registry[0]}#team/image:1.0"], {**programs, "HOME": str(tmp_path / "home")}) == 1
    assert "know the registry's authority" in capsys.readouterr().out


def brought(
    home: Path,
    image: object,
    programs: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    *,
    job: str = "7",
    settings: Path = SETTINGS,
) -> Path:
    code = main([job, str(image)], {**programs, "HOME": str(home)}, settings)
    said = capsys.readouterr().out
    assert code == 0, said
    return Path(said.splitlines()[-1].removeprefix("image="))


def test_the_bytes_of_an_image_are_counted_for_the_start_that_brings_it(
    tmp_path: Path, programs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    layout = make_layout(tmp_path / "image", [layer([("it", b"x")])])
    starts = []
    for job in ("7", "8"):
        assert main([job, str(layout)], {**programs, "HOME": str(tmp_path / "home")}) == 0
        starts.append(capsys.readouterr().out.splitlines())

    size = (Path(starts[0][-1].removeprefix("image=")) / "size").read_text()
    assert starts[0][-2] == f"brought={size}"
    assert not [line for line in starts[1] if line.startswith("brought=")]


def an_index(folder: Path, architectures: Sequence[tuple[str, dict[str, str]]]) -> Path:
    """Make a layout of an image for several architectures, with its name in the file `it`."""
    manifests = []
    for name, platform_of_it in architectures:
        single = make_layout(folder / name, [layer([("it", name.encode())])], architecture=name)
        (manifest,) = json.loads((single / "index.json").read_text())["manifests"]
        manifests.append({**manifest, "platform": {"architecture": name, "os": "linux", **platform_of_it}})
        shutil.copytree(single, folder / "image", dirs_exist_ok=True)
    index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}).encode()
    digest = hashlib.sha256(index).hexdigest()
    (folder / "image/blobs/sha256" / digest).write_bytes(index)
    described = {"mediaType": INDEX, "digest": f"sha256:{digest}", "size": len(index)}
    (folder / "image/index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [described]}))
    return folder / "image"


def for_machine(image: Path, machine: str, tmp_path: Path, programs: dict[str, str]) -> str:
    """Bring an image for a machine, and return what is in its file `it`."""
    new, part = tmp_path / "new", tmp_path / "part"
    new.mkdir()
    part.mkdir()
    reference = parse(str(image), tmp_path)
    with (tmp_path / "auth.json").open("w+") as authentication:
        authentication.write("{}")
        authentication.flush()
        variables = {**programs, "HOME": str(tmp_path)}
        bringer = ImageBringer(reference, authentication.fileno(), variables, print, machine=machine)
        bringer.bring(bringer.digest(), part, new)
    return (new / "rootfs/it").read_text()


@pytest.mark.parametrize(("machine", "architecture"), [("x86_64", "amd64"), ("aarch64", "arm64")])
def test_of_an_image_for_several_architectures_that_of_the_machine_is_brought(
    tmp_path: Path, programs: dict[str, str], machine: str, architecture: str
) -> None:
    index = an_index(tmp_path, [("s390x", {}), ("arm64", {"variant": "v8"}), ("amd64", {})])

    assert for_machine(index, machine, tmp_path, programs) == architecture


def test_an_image_without_a_variant_for_the_machine_is_refused(tmp_path: Path, programs: dict[str, str]) -> None:
    index = an_index(tmp_path, [("s390x", {}), ("amd64", {})])

    with pytest.raises(ImageError, match=r"architecture arm64.*no variant for the processors of this node"):
        for_machine(index, "aarch64", tmp_path, programs)


@pytest.mark.parametrize(
    ("of", "found"),
    [
        ({"architecture": "arm64"}, "linux/arm64"),
        ({"architecture": "386"}, "linux/386"),
        ({"system": "windows", "architecture": "amd64"}, "windows/amd64"),
        ({"architecture": ["amd64"]}, "linux/['amd64']"),
        ({"architecture": "a\nimage=/etc"}, "linux/a image=/etc"),
    ],
)
def test_an_image_for_other_processors_is_refused_in_words(
    tmp_path: Path, programs: dict[str, str], of: dict[str, Any], found: str
) -> None:
    image = make_layout(tmp_path / "image", [layer([("it", b"x")])], **of)

    with pytest.raises(ImageError) as refused:
        for_machine(image, "x86_64", tmp_path, programs)
    assert str(refused.value) == (
        f"the image is for {found}, and programs on this node are for linux/amd64. Name an image for it."
    )


@pytest.mark.parametrize("architecture", ["amd64", ""])
def test_an_image_that_runs_on_the_machine_or_names_none_is_brought(
    tmp_path: Path, programs: dict[str, str], architecture: str
) -> None:
    image = make_layout(tmp_path / "image", [layer([("it", b"x")])], architecture=architecture)

    assert for_machine(image, "x86_64", tmp_path, programs) == "x"


def test_a_layout_becomes_a_folder_with_files_variables_and_a_directory(
    tmp_path: Path, programs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    layout = make_layout(
        tmp_path / "layout",
        [layer([("etc/name", b"first"), ("gone", b"x")]), layer([("etc/name", b"second"), (".wh.gone", b"")])],
        Env=["PATH=/opt/bin", "TEXT=two\nlines"],
        WorkingDir="/work",
        Entrypoint=["/start", "two words"],
    )

    folder = brought(tmp_path / "home", layout, programs, capsys)

    assert folder.parent == tmp_path / "home" / STORE / "images"
    assert (folder / "rootfs/etc/name").read_text() == "second"
    assert not (folder / "rootfs/gone").exists()
    assert (folder / "environment").read_bytes() == b"PATH=/opt/bin\0TEXT=two\nlines\0"
    assert (folder / "workdir").read_text() == "/work"
    assert (folder / "entrypoint").read_bytes() == b"/start\0two words\0"
    assert sorted(path.name for path in folder.iterdir()) == [
        "entrypoint",
        "environment",
        "reference",
        "rootfs",
        "size",
        "workdir",
    ]
    assert (folder / "reference").read_text() == f"oci:{layout}"


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


def test_a_job_gets_the_file_that_it_means_and_not_an_earlier_one(
    tmp_path: Path, programs: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("a", "b"):
        make_layout(tmp_path / folder / "image", [layer([("it", folder.encode())])])

    def content(folder: str) -> str:
        monkeypatch.chdir(tmp_path / folder)
        return (brought(tmp_path / "home", "./image", programs, capsys) / "rootfs/it").read_text()

    assert [content("a"), content("b")] == ["a", "b"]

    shutil.rmtree(tmp_path / "a/image")
    make_layout(tmp_path / "a/image", [layer([("it", b"new")])])
    assert content("a") == "new"


def test_jobs_with_one_number_on_two_clusters_or_at_two_times_look_images_up(
    tmp_path: Path, programs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    layout = make_layout(tmp_path / "layout", [layer([("it", b"x")])])
    for variables in ({}, {"SLURM_CLUSTER_NAME": "other"}, {"SLURM_JOB_START_TIME": "1"}, {}):
        brought(tmp_path / "home", layout, {**programs, **variables}, capsys)

    assert len(list((tmp_path / "home" / STORE / "jobs").iterdir())) == 3


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


HOSTILE_LAYERS: dict[str, list[list[tarfile.TarInfo | tuple[str, bytes]]]] = {
    "a hard link to a file outside": [[special("mine", tarfile.LNKTYPE, "OUTSIDE/secret")]],
    "a hard link by ..": [[special("mine", tarfile.LNKTYPE, "../../../../../outside/secret")]],
    "a hard link through a link": [
        [special("link", tarfile.SYMTYPE, "OUTSIDE"), special("mine", tarfile.LNKTYPE, "link/secret")]
    ],
    "a link that is written through": [
        [special("mine", tarfile.SYMTYPE, "OUTSIDE/secret")],
        [("mine", b"changed")],
    ],
    "a whiteout through a link": [[special("link", tarfile.SYMTYPE, "OUTSIDE")], [("link/.wh.secret", b"")]],
    "a whiteout of ..": [[("etc/.wh...", b"")], [("../.wh.outside", b"")]],
    "an opaque folder through a link": [[special("link", tarfile.SYMTYPE, "OUTSIDE")], [("link/.wh..wh..opq", b"")]],
}


@pytest.mark.parametrize("layers", HOSTILE_LAYERS.values(), ids=HOSTILE_LAYERS)
def test_no_layer_reaches_or_changes_a_file_outside_of_the_image(
    tmp_path: Path, programs: dict[str, str], layers: list[list[tarfile.TarInfo | tuple[str, bytes]]]
) -> None:
    secret = tmp_path / "outside/secret"
    secret.parent.mkdir()
    secret.write_text("of another")
    for member in (member for members in layers for member in members):
        if isinstance(member, tarfile.TarInfo):
            member.linkname = member.linkname.replace("OUTSIDE", str(secret.parent))
    layout = make_layout(tmp_path / "layout", [layer(members) for members in layers])

    main(["7", str(layout)], {**programs, "HOME": str(tmp_path / "home")})
    assert secret.read_text() == "of another"
    assert secret.stat().st_nlink == 1


def test_a_file_with_capabilities_is_brought_without_them(tmp_path: Path, programs: dict[str, str]) -> None:
    member = special("ping", tarfile.REGTYPE)
    member.pax_headers = {"SCHILY.xattr.security.capability": "\1\0\0\2\0\x20" + "\0" * 14}
    layout = make_layout(tmp_path / "layout", [layer([member])])

    program = "import sys; from container_images.import_command import main; sys.exit(main(sys.argv[1:]))"
    subprocess.run(
        ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c", program, "7", layout],
        env={**programs, "HOME": str(tmp_path / "home"), "PYTHONPATH": str(FOLDER)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    (ping,) = (tmp_path / "home" / STORE).glob("images/*/rootfs/ping")
    assert os.listxattr(ping) == []


def test_a_broken_layer_is_reported_and_leaves_no_image(
    tmp_path: Path, programs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    layout = make_layout(tmp_path / "layout", [layer([("it", b"x")])])
    content = json.loads((layout / "blobs/sha256" / digest_of(layout)).read_text())
    broken = layout / "blobs/sha256" / content["layers"][0]["digest"].removeprefix("sha256:")
    broken.write_bytes(broken.read_bytes().replace(b"it", b"IT"))

    code = main(["7", str(layout)], {**programs, "HOME": str(tmp_path / "home")})

    assert code == 1
    assert "skopeo: " in capsys.readouterr().out.splitlines()[-1]
    assert list((tmp_path / "home" / STORE / "images").iterdir()) == []


def test_what_a_crashed_node_has_left_is_used_as_far_as_it_is_whole(
    tmp_path: Path, programs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    layout = make_layout(tmp_path / "layout", [layer([("it", b"x")]), layer([("other", b"y")])])
    pulled = tmp_path / "home" / STORE / "parts" / f"{digest_of(layout)}.{platform.machine()}" / "oci"
    pulled.parent.mkdir(parents=True)
    subprocess.run(
        ["skopeo", "--insecure-policy", "copy", f"oci:{layout}", f"oci:{pulled}:image"],
        env=programs,
        check=True,
        capture_output=True,
    )
    (pulled / "oci-put-blob1").write_text("half")
    for path in (pulled / "index.json", pulled / "oci-layout", *sorted((pulled / "blobs/sha256").iterdir())[1:]):
        path.write_bytes(bytes(path.stat().st_size))

    root = brought(tmp_path / "home", layout, programs, capsys) / "rootfs"

    assert sorted(path.name for path in root.iterdir()) == ["it", "other"]
    assert not list((tmp_path / "home" / STORE / "parts").iterdir())


def test_blobs_that_are_whole_are_kept(tmp_path: Path) -> None:
    layout = make_layout(tmp_path, [layer([("it", b"x")])])
    first, *others = sorted((layout / "blobs/sha256").iterdir())
    first.write_bytes(bytes(first.stat().st_size))

    keep_whole_blobs(layout)

    assert sorted((layout / "blobs/sha256").iterdir()) == others


@pytest.mark.parametrize(
    "manifest",
    [
        b'{"schemaVersion": 2, "layers": null}',
        b"[]",
        b"5",
        b"no JSON",
        b'{"schemaVersion": 2, "config": 5, "layers": [{"size": "many"}, 5]}',
        b"[" * 100_000,
    ],
)
def test_an_odd_manifest_is_reported_in_a_line(
    manifest: bytes, tmp_path: Path, programs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    layout = make_layout(tmp_path / "layout", [])
    name = hashlib.sha256(manifest).hexdigest()
    (layout / "blobs/sha256" / name).write_bytes(manifest)
    index = json.loads((layout / "index.json").read_text())
    index["manifests"][0] |= {"digest": f"sha256:{name}", "size": len(manifest)}
    (layout / "index.json").write_text(json.dumps(index))

    code = main(["7", str(layout)], {**programs, "HOME": str(tmp_path / "home")})

    assert code == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith(("skopeo: ", "umoci: "))


@pytest.mark.parametrize(
    ("manifest", "size"),
    [
        (b'{"layers": [{"size": 3}, {"size": 4}]}', 7),
        (b'{"layers": []}', 0),
        (b'{"layers": [{"size": 1e999}]}', 0),
        (b'{"layers": [{"size": ' + b"9" * 400 + b"}]}", 0),
        (b'{"layers": [{"size": -1}]}', 0),
        (b'{"layers": [{}]}', 0),
    ],
)
def test_the_size_of_an_image_is_that_of_its_layers_if_they_say_it(manifest: bytes, size: int) -> None:
    assert size_of_layers(manifest) == size


@pytest.mark.parametrize(
    "config", [{"Env": 5}, {"Env": [5]}, {"WorkingDir": 5}, {"Entrypoint": [5]}, {"Env": ["A=\ud800"]}]
)
def test_an_odd_configuration_is_refused_in_words(config: dict[str, Any], tmp_path: Path) -> None:
    layout = make_layout(tmp_path / "layout", [], **config)

    with pytest.raises(ImageError, match="Env and Entrypoint are lists of texts"):
        settings_of_layout(layout)


def test_a_registry_that_is_not_there_is_reported_in_a_line(
    tmp_path: Path, programs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["7", "127.0.0.1:1#a/b:1"], {**programs, "HOME": str(tmp_path)})
    said = capsys.readouterr().out.splitlines()

    assert code == 1
    assert "connection refused" in said[-1]
    assert len(said) == 1


class StatusAnswers(BaseHTTPRequestHandler):
    """Answers for the image of a layout, or with the status that its server has."""

    def do_GET(self) -> None:
        assert isinstance(self.server, FaultyRegistry)
        what = self.path.rpartition("/")[2].removeprefix("sha256:")
        kind = (
            "application/vnd.oci.image.manifest.v1+json" if "/manifests/" in self.path else "application/octet-stream"
        )
        blob = self.server.layout / "blobs/sha256" / (digest_of(self.server.layout) if what == "1" else what)
        content = blob.read_bytes() if blob.is_file() else b"{}"
        self.send_response(self.server.status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class FaultyRegistry(ThreadingHTTPServer):
    """A registry on loopback with one image, tagged 1."""

    def __init__(self, layout: Path) -> None:
        super().__init__(("127.0.0.1", 0), StatusAnswers)
        self.layout = layout
        self.status = 200
        self.host = f"127.0.0.1:{self.server_port}"


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[FaultyRegistry]:
    """A registry with an image in which the file `it` is."""
    with FaultyRegistry(make_layout(tmp_path / "served", [layer([("it", b"x")])])) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join(30)


def settings_of(
    folder: Path,
    *registries: dict[str, object],
    variables: dict[str, str] | None = None,
    allowed: Sequence[str] = (),
) -> Path:
    """Make the admin's settings, of these registries."""
    defaults = {"mirrors": [], "authority": "", "insecure": False}
    settings = {
        "images_bytes": None,
        "unused_seconds": None,
        "registries": [{**defaults, **registry} for registry in registries],
        "allowed_registries": allowed,
        "variables": variables or {},
    }
    path = folder / "settings.json"
    path.write_text(json.dumps(settings))
    return path


def test_a_registry_of_the_clusters_own_authority_gives_its_image(
    tmp_path: Path, programs: dict[str, str], registry: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    host, _ = registry
    log_in(tmp_path / "home", host, "secret")
    settings = settings_of(tmp_path, {"host": host, "authority": (tmp_path / "ca.crt").read_text()})

    folder = brought(tmp_path / "home", f"{host}/team/image:1.0", programs, capsys, settings=settings)

    assert (folder / "rootfs/it").read_text() == "x"


def test_an_authority_of_one_registry_counts_for_no_other(
    tmp_path: Path, programs: dict[str, str], registry: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    settings = settings_of(tmp_path, {"host": "127.0.0.2:1", "authority": (tmp_path / "ca.crt").read_text()})
    variables = {**programs, "HOME": str(tmp_path / "home")}

    assert main(["7", f"{registry[0]}/team/image:1.0"], variables, settings) == 1
    assert "know the registry's authority" in capsys.readouterr().out


def test_a_mirror_gives_the_image_with_the_users_password_for_it(
    tmp_path: Path, programs: dict[str, str], registry: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    mirror, asked = registry
    log_in(tmp_path / "home", mirror, "secret")
    settings = settings_of(
        tmp_path,
        {"host": "127.0.0.1:1", "mirrors": [f"{mirror}/team"]},
        {"host": mirror, "authority": (tmp_path / "ca.crt").read_text()},
    )

    folder = brought(tmp_path / "home", "127.0.0.1:1/image:1.0", programs, capsys, settings=settings)

    assert (folder / "rootfs/it").read_text() == "x"
    assert "/v2/team/image/manifests/1.0" in asked


def test_a_registry_gives_what_its_mirror_has_not(
    tmp_path: Path, programs: dict[str, str], registry: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    host, asked = registry
    log_in(tmp_path / "home", host, "secret")
    authority = (tmp_path / "ca.crt").read_text()
    settings = settings_of(tmp_path, {"host": host, "mirrors": [f"{host}/none"], "authority": authority})

    folder = brought(tmp_path / "home", f"{host}/team/image:1.0", programs, capsys, settings=settings)

    assert (folder / "rootfs/it").read_text() == "x"
    assert "/v2/none/team/image/manifests/1.0" in asked


def test_a_password_is_sent_to_no_mirror_without_one(
    tmp_path: Path, programs: dict[str, str], registry: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    mirror, asked = registry
    log_in(tmp_path / "home", "127.0.0.1:1", "secret")
    settings = settings_of(
        tmp_path,
        {"host": "127.0.0.1:1", "mirrors": [mirror]},
        {"host": mirror, "authority": (tmp_path / "ca.crt").read_text()},
    )
    variables = {**programs, "HOME": str(tmp_path / "home")}

    assert main(["7", "127.0.0.1:1/team/image:1.0"], variables, settings) == 1
    assert "/v2/team/image/manifests/1.0" in asked
    assert "are credentials for the registry" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ["{}", "[]", '{"images_bytes": null, "unused_seconds": null, "registries": [{"new": 1}]}']
)
def test_settings_of_another_version_are_reported(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "settings.json").write_text(text)

    assert main(["7", "a"], {"HOME": str(tmp_path)}, tmp_path / "settings.json") == 1
    assert "do not fit the version of this node's image" in capsys.readouterr().out


def test_settings_of_registries_in_a_home_do_not_count(
    tmp_path: Path, faulty: FaultyRegistry, programs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "home/.config/containers"
    folder.mkdir(parents=True)
    (folder / "registries.conf").write_text(f'[[registry]]\nlocation = "{faulty.host}"\ninsecure = true\n')
    variables = {**programs, "HOME": str(tmp_path / "home")}

    assert main(["7", f"{faulty.host}/a/b:1"], variables) == 1
    assert f"https://{faulty.host}/v2/" in capsys.readouterr().out


@pytest.mark.parametrize("own", [False, True])
def test_a_registry_is_asked_by_the_clusters_proxy_unless_the_job_has_one(
    own: bool, tmp_path: Path, programs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    settings = settings_of(tmp_path, variables={"https_proxy": "http://127.0.0.1:2"})
    variables = {**programs, "HOME": str(tmp_path), **({"https_proxy": "http://127.0.0.1:3"} if own else {})}

    assert main(["7", "registry.example.com/a/b:1"], variables, settings) == 1
    assert f"proxyconnect tcp: dial tcp 127.0.0.1:{3 if own else 2}" in capsys.readouterr().out


def test_a_registry_that_is_not_allowed_is_not_asked_and_its_images_do_not_start(
    job: Callable[[int], int],
    faulty: FaultyRegistry,
    tmp_path: Path,
    programs: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert job(1) == 0
    settings = settings_of(tmp_path, {"host": faulty.host, "insecure": True}, allowed=["nvcr.io", f"{faulty.host}/b"])
    variables = {**programs, "HOME": str(tmp_path / "home")}
    capsys.readouterr()

    assert main(["1", f"{faulty.host}#a/b:1"], variables, settings) == 1
    assert f"images may come from nvcr.io, {faulty.host}/b alone" in capsys.readouterr().out


def insecure(folder: Path, host: str) -> Path:
    """Make settings by which a registry is asked without TLS."""
    return settings_of(folder, {"host": host, "insecure": True})


@pytest.fixture
def job(tmp_path: Path, programs: dict[str, str], faulty: FaultyRegistry) -> Callable[[int], int]:
    """Return the code of an import of the registry's image for a job."""
    settings = insecure(tmp_path, faulty.host)
    environment = {**programs, "HOME": str(tmp_path / "home")}
    return lambda number: main([str(number), f"{faulty.host}#a/b:1"], environment, settings)


def test_a_stored_image_starts_while_its_registry_gives_no_answer(
    job: Callable[[int], int], faulty: FaultyRegistry, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job(1) == 0
    faulty.status = 503
    capsys.readouterr()

    assert job(2) == 0
    *words, last = capsys.readouterr().out.splitlines()
    assert "503" in words[0]
    assert f"Starts the image that was found last, sha256:{digest_of(faulty.layout)}" in words[0]
    assert (Path(last.removeprefix("image=")) / "rootfs/it").read_text() == "x"


def test_a_stored_image_starts_while_its_registry_is_down(
    job: Callable[[int], int], faulty: FaultyRegistry, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job(1) == 0
    faulty.shutdown()
    faulty.server_close()
    capsys.readouterr()

    assert job(2) == 0
    assert "connection refused. Starts the image that was found last" in capsys.readouterr().out


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_stored_image_does_not_start_if_its_registry_refuses_it(
    status: int, job: Callable[[int], int], faulty: FaultyRegistry
) -> None:
    assert job(1) == 0
    faulty.status = status

    assert job(2) == 1


def test_an_image_that_is_not_in_the_store_does_not_start_without_its_registry(
    job: Callable[[int], int], faulty: FaultyRegistry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job(1) == 0
    faulty.status = 503
    (image,) = (tmp_path / "home" / STORE / "images").iterdir()
    remove(image)
    capsys.readouterr()

    assert job(2) == 1
    assert "503" in capsys.readouterr().out.splitlines()[-1]


def test_its_programs_end_with_an_importer_that_is_killed(tmp_path: Path, programs: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        settings = insecure(tmp_path, host)
        program = (
            "import os, pathlib, sys; from container_images.import_command import main;"
            "main(sys.argv[1:3], os.environ, pathlib.Path(sys.argv[3]))"
        )
        importer = subprocess.Popen(
            [sys.executable, "-c", program, "7", f"{host}#a/b:1", settings],
            env={**programs, "HOME": str(tmp_path), "PYTHONPATH": str(FOLDER)},
            stdout=subprocess.DEVNULL,
        )
        try:
            silent.accept()[0].close()  # skopeo asks by TLS
            connection, _ = silent.accept()  # and then without, for as long as there is no answer
            (skopeo,) = Path(f"/proc/{importer.pid}/task/{importer.pid}/children").read_text().split()
        finally:
            importer.kill()
            importer.wait(30)
        with connection:
            wait_until(lambda: state_of(skopeo) in "ZX", "skopeo has ended", timeout_seconds=30)


def state_of(process: str) -> str:
    """Return a process' letter in /proc: Z for one that has ended, X if it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "X"


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
        ("https://127.0.0.1:42911/v2/: EOF", "EOF$"),
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
    assert '"No Image" is not an image' in done.stdout
    assert done.stderr == ""


SLOW_UMOCI = """#!/bin/sh -e
umoci=$UMOCI
for root; do :; done
$umoci "$@"
for part in 1 2 3; do
  head -c 1048576 /dev/zero > $root/part$part
  for moment in $(seq 300); do test -e $TOLD/$part && break; sleep 0.1; done
done
"""


def test_a_long_unpacking_tells_how_far_it_is(
    tmp_path: Path, programs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = make_layout(tmp_path / "layout", [layer([("it", b"x")])])
    for name in ("bin", "told", "part", "new"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin/umoci").write_text(SLOW_UMOCI)
    (tmp_path / "bin/umoci").chmod(0o755)
    umoci = shutil.which("umoci", path=programs["PATH"])
    variables = {
        **programs,
        "PATH": f"{tmp_path}/bin:{programs['PATH']}",
        "UMOCI": str(umoci),
        "TOLD": f"{tmp_path}/told",
        "HOME": str(tmp_path),
    }
    monkeypatch.setattr(program_running, "_PROGRESS_SECONDS", 0.2)
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if match := re.fullmatch(r"has unpacked (\d) MiB", text):
            (tmp_path / "told" / match[1]).touch()

    bringer = ImageBringer(parse(str(layout), tmp_path), os.memfd_create("none", 0), variables, say)
    bringer.bring(bringer.digest(), tmp_path / "part", tmp_path / "new")

    told = list(dict.fromkeys(text for text in said if text.startswith("has unpacked")))
    assert told[-3:] == ["has unpacked 1 MiB", "has unpacked 2 MiB", "has unpacked 3 MiB"]
