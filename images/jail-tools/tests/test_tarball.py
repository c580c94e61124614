"""A tarball from a web server: everything in it arrives; what is broken, wrong or leads out is told."""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from jail_testing import trees

from jail_tools.errors import RefusedError, TryAgainError
from jail_tools.layout import tree_of
from jail_tools.populating.populate import Request, populate
from jail_tools.sources import acl
from jail_tools.sources.download import without_secrets


class Files(BaseHTTPRequestHandler):
    """Serves what is in the server's `files`; a path that begins with /cut/ breaks off in the middle."""

    server: "Server"

    def do_GET(self) -> None:
        """Answer."""
        name = self.path.partition("?")[0].rpartition("/")[2]
        if name.isdecimal():
            self.send_error(int(name))
            return
        data = self.server.files[name]
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if self.path.startswith("/cut/") else data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """A web server in memory."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Files)
        self.files: dict[str, bytes] = {}

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that go away."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def jail() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="jail-tools-"))
    yield folder
    shutil.rmtree(folder)


def request_of(server: Server, jail: Path, data: bytes, where: str = "", sha256: str = "") -> Request:
    server.files["a.tar"] = data
    url = f"http://127.0.0.1:{server.server_port}{where}/a.tar"
    return Request(tree_of(jail, trees.NAME), "test:tarball", None, url, sha256 or hashlib.sha256(data).hexdigest())


def unpacked(server: Server, jail: Path, data: bytes) -> Path:
    request = request_of(server, jail, data)
    populate(request)
    return request.tree.root


def archive(*members: tuple[str, dict[str, Any]]) -> bytes:
    """A tarball of members by name, with what is said of them; `content` is a file's."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, said in members:
            member = tarfile.TarInfo(name)
            content = said.pop("content", b"")
            member.size = len(content)
            for key, value in said.items():
                setattr(member, key, value)
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


FOLDER = {"type": tarfile.DIRTYPE, "mode": 0o755}


def gnu_tar(source: Path, *options: str) -> bytes:
    """What GNU tar makes of a folder."""
    return subprocess.run(
        [
            "tar",
            "--create",
            "--format=pax",
            "--xattrs",
            "--xattrs-include=*",
            *options,
            "--directory",
            str(source),
            ".",
        ],
        check=True,
        capture_output=True,
    ).stdout


@given(plan=trees.plans)
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
def test_any_tree_arrives_as_tar_has_it(server: Server, plan: list[Any]) -> None:
    with tempfile.TemporaryDirectory(prefix="jail-tools-") as folder:
        source = Path(folder, "source")
        source.mkdir()
        trees.build(source, [item for item in plan if item[2]["kind"] != "fifo"])  # tar takes their links for fifos
        (Path(folder) / "jail").mkdir()
        copy = unpacked(server, Path(folder, "jail"), gnu_tar(source, "--sparse"))
        whole, expected = trees.seen(copy), trees.seen(source)
        assert {path: whole.get(path) for path in expected} == expected


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, lambda data: data])
def test_any_compression_is_seen_by_itself(compress: Callable[[bytes], bytes], server: Server, jail: Path) -> None:
    tree = unpacked(server, jail, compress(archive(("etc/motd", {"content": b"hello" * 100_000}))))
    assert (tree / "etc/motd").read_bytes() == b"hello" * 100_000


def test_zstd_is_refused_with_what_is_allowed(server: Server, jail: Path) -> None:
    with pytest.raises(RefusedError, match="Use gzip, xz, bzip2, or no compression"):
        populate(request_of(server, jail, b"\x28\xb5\x2f\xfd" + bytes(100)))


def test_attributes_and_named_access_control_lists_arrive(server: Server, jail: Path) -> None:
    capability = trees.CAPABILITY.decode("utf-8", "surrogateescape")
    tree = unpacked(
        server,
        jail,
        archive(
            ("ping", {"pax_headers": {"SCHILY.xattr.security.capability": capability}}),
            ("bsd", {"pax_headers": {"LIBARCHIVE.xattr.user.odd%20name": "AAEC"}}),
            (
                "shared",
                {
                    "mode": 0o674,
                    "pax_headers": {"SCHILY.acl.access": "user::rw-,user:alice:rwx,group::r--,mask::rwx,other::r--"},
                },
            ),
            ("etc/passwd", {"content": b"root:x:0:0::/:\nalice:x:1005:1005::/:\n"}),
        ),
    )
    assert os.getxattr(tree / "ping", "security.capability") == trees.CAPABILITY
    assert os.getxattr(tree / "bsd", "user.odd name") == b"\0\1\2"
    value = os.getxattr(tree / "shared", "system.posix_acl_access")
    assert value == acl.attribute_of("u::rw-,u:1005:rwx,g::r--,m::rwx,o::r--", {}, {})


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/../evil", "a/.."])
def test_a_name_that_leads_out_is_refused(name: str, server: Server, jail: Path) -> None:
    with pytest.raises(RefusedError, match="leads out of the tree"):
        populate(request_of(server, jail, archive((name, {"content": b"x"}))))
    assert not (jail / "trees/evil").exists()
    assert not trees.is_complete(jail)


def test_an_absolute_name_is_below_the_tree(server: Server, jail: Path) -> None:
    tree = unpacked(server, jail, archive(("/etc/motd", {"content": b"x"})))
    assert (tree / "etc/motd").read_bytes() == b"x"


def test_a_fifo_arrives_and_a_device_is_left_out(server: Server, jail: Path) -> None:
    both = archive(("fifo", {"type": tarfile.FIFOTYPE, "mode": 0o622}), ("null", {"type": tarfile.CHRTYPE}))
    tree = unpacked(server, jail, both)
    assert stat.filemode((tree / "fifo").lstat().st_mode) == "prw--w--w-"
    assert not (tree / "null").exists()


def test_nothing_is_written_through_a_symbolic_link(server: Server, jail: Path) -> None:
    outside = jail / "outside"
    outside.mkdir()
    evil = archive(("way", {"type": tarfile.SYMTYPE, "linkname": str(outside)}), ("way/evil", {"content": b"x"}))
    with pytest.raises(RefusedError, match="'way/evil' below 'way', which is a symlink"):
        populate(request_of(server, jail, evil))
    assert list(outside.iterdir()) == []


def test_a_hard_link_out_of_the_tree_is_refused(server: Server, jail: Path) -> None:
    for target in ("/etc/shadow", "later"):
        with pytest.raises(RefusedError, match="which is not a file before it"):
            populate(request_of(server, jail, archive(("link", {"type": tarfile.LNKTYPE, "linkname": target}))))
    with pytest.raises(RefusedError, match="leads out"):
        populate(request_of(server, jail, archive(("link", {"type": tarfile.LNKTYPE, "linkname": "../x"}))))


def test_of_two_members_of_one_name_the_later_counts(server: Server, jail: Path) -> None:
    twice = archive(("a", {"content": b"one", "mtime": 5}), ("a", {"content": b"two", "mtime": 5}))
    tree = unpacked(server, jail, twice)
    assert (tree / "a").read_bytes() == b"two"


def test_a_broken_stream_can_be_tried_again(server: Server, jail: Path) -> None:
    data = gzip.compress(archive(*((f"lib/{number}", {"content": os.urandom(100_000)}) for number in range(50))))
    with pytest.raises(TryAgainError, match="broke off after"):
        populate(request_of(server, jail, data, "/cut"))
    assert not trees.is_complete(jail)
    written = set((jail / "trees" / trees.NAME / "lib").iterdir())
    before = {path: path.stat().st_ino for path in written}
    tree = unpacked(server, jail, data)
    assert len(list((tree / "lib").iterdir())) == 50
    assert sum(path.stat().st_ino == inode for path, inode in before.items()) >= len(before) - 1


def test_another_file_than_declared_is_refused(server: Server, jail: Path) -> None:
    data = archive(("a", {"content": b"x"}))
    with pytest.raises(RefusedError, match=f"has sha256 {hashlib.sha256(data).hexdigest()}, but 0000"):
        populate(request_of(server, jail, data, sha256="0" * 64))
    assert not trees.is_complete(jail)


@pytest.mark.parametrize("cut", [100, 700, 1500])
def test_an_archive_that_was_cut_before_it_was_served_is_refused(cut: int, server: Server, jail: Path) -> None:
    whole = archive(("a", {"content": b"x" * 600}), ("b", {"content": b"y" * 600}))
    with pytest.raises(RefusedError, match="cannot be unpacked"):
        populate(request_of(server, jail, whole[:cut]))
    assert not trees.is_complete(jail)


def test_a_spoilt_header_is_no_end(server: Server, jail: Path) -> None:
    spoilt = bytearray(archive(("a", {"content": b"x"}), ("b", {"content": b"y"})))
    spoilt[1024 + 150] ^= 0x55  # in the checksum of the second header
    with pytest.raises(RefusedError, match=r"cannot be unpacked: .* at byte 1,024"):
        populate(request_of(server, jail, bytes(spoilt)))
    assert not trees.is_complete(jail)


@pytest.mark.parametrize(
    ("status", "error"), [(404, RefusedError), (403, RefusedError), (429, TryAgainError), (503, TryAgainError)]
)
def test_a_servers_answer_tells_whether_to_try_again(
    status: int, error: type[Exception], server: Server, jail: Path
) -> None:
    url = f"http://user:secret@127.0.0.1:{server.server_port}/{status}?token=secret"
    url = url.replace("user:secret@", "")
    with pytest.raises(error, match=f"the server answers {status}") as raised:
        populate(Request(tree_of(jail, trees.NAME), "t", None, url, "0" * 64))
    assert "secret" not in str(raised.value)


def test_a_server_that_is_not_there_is_tried_again(jail: Path) -> None:
    with pytest.raises(TryAgainError, match="cannot be reached"):
        populate(Request(tree_of(jail, trees.NAME), "t", None, "http://127.0.0.1:1/a.tar", "0" * 64))


@pytest.mark.parametrize("url", ["ftp://host/a.tar", "file:///etc/passwd", "a.tar"])
def test_other_schemes_are_refused(url: str, jail: Path) -> None:
    with pytest.raises(RefusedError, match="must begin with http"):
        populate(Request(tree_of(jail, trees.NAME), "t", None, url, "0" * 64))


def test_a_url_is_shown_without_what_is_secret_in_it() -> None:
    assert without_secrets("https://me:pass@host:8/a/b.tar?X-Signature=1#f") == "https://host:8/a/b.tar"


@pytest.mark.parametrize("text", ["user::rwz", "nobody::rwx", "user:eve:rwx", "user"])
def test_a_list_that_is_none_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not an entry|names a user"):
        acl.attribute_of(text, {"alice": 1}, {})
