"""Images of a few files."""

import io
import json
import tarfile
from hashlib import sha256

from tools.kube import archives

PAUSE = archives.archive(
    "localhost/pause:1", {"/bin/pause": b"program"}, entrypoint=["/bin/pause"], links={"/bin/wait": "pause"}
)


def content(archive: bytes, name: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        member = tar.extractfile(name)
        assert member
        return member.read()


def test_the_manifest_leads_to_configuration_and_layer() -> None:
    (manifest,) = json.loads(content(PAUSE, "manifest.json"))
    config = json.loads(content(PAUSE, manifest["Config"]))
    layer = content(PAUSE, manifest["Layers"][0])
    assert manifest["RepoTags"] == ["localhost/pause:1"]
    assert config["config"]["Entrypoint"] == ["/bin/pause"]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{sha256(layer).hexdigest()}"]


def test_programs_are_executable_and_links_are_links() -> None:
    with tarfile.open(fileobj=io.BytesIO(content(PAUSE, "layer.tar"))) as layer:
        assert layer.getmember("bin/pause").mode == 0o755
        assert layer.getmember("bin/wait").linkname == "pause"


def test_the_same_files_give_the_same_archive() -> None:
    again = archives.archive(
        "localhost/pause:1", {"/bin/pause": b"program"}, entrypoint=["/bin/pause"], links={"/bin/wait": "pause"}
    )
    assert again == PAUSE
