"""Building images with the real buildah: nothing twice, nothing half, nothing left behind; and pushing them."""

import base64
import gzip
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cluster import container_registry, root_trees
from tests.cluster.container_registry import PASSWORD, Registry
from tests.soak import SOAK
from tests.waiting import wait_until
from tools import images, paths
from tools.console import UserError
from tools.images.buildah import Buildah, tls_verify
from tools.images.builder import Build, build_missing, cache
from tools.images.recipe import LOCAL_REPOSITORY, PARENTS, PUBLISHED, Recipe
from tools.images.store import Store

pytestmark = pytest.mark.cluster

KILLS = 20
BUILD_SECONDS = 3.0
"""About what the small images below take; the kills fall in it."""

BUILD = "import sys; from tests.cluster.test_image_builds import build_small; build_small(*sys.argv[1:])"
"""Process to kill: another Python that builds the small images."""

_numbers = itertools.count()


@pytest.fixture(scope="session")
def built() -> None:
    """Build the images of this checkout where they are not yet."""
    images.build()


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """Run a registry, and log in to it."""
    folder = tmp_path_factory.mktemp("registry")
    with container_registry.running(folder) as registry, pytest.MonkeyPatch.context() as environment:
        (folder / "auth.json").write_text(registry.credentials())
        environment.setenv("REGISTRY_AUTH_FILE", str(folder / "auth.json"))
        yield registry


@dataclass(frozen=True)
class Small:
    """Images that are quickly built, on a base that a registry has, and a store of their own."""

    folder: Path
    base: str
    cache: Path

    @property
    def recipe(self) -> Recipe:
        return Recipe(self.folder, base=self.base)

    @property
    def store(self) -> Store:
        return Store(self.cache)

    @property
    def log(self) -> str:
        """Output of buildah so far."""
        log = self.cache / "buildah.log"
        return log.read_text() if log.exists() else ""

    def build(self, *names: str) -> None:
        """Build what is missing of these images, of all by default."""
        if not names:
            build_missing(self.recipe, self.store)
            return
        with self.store.lock() as lock, self.store.work_folder() as work:
            Build(self.recipe, self.store, work, lock).run(names)

    def build_elsewhere(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-c", BUILD, str(self.folder), self.base, str(self.cache)]
        return subprocess.Popen(command, cwd=paths.ROOT)


def build_small(folder: str, base: str, store: str) -> None:
    """Build the small images: what another Python runs."""
    Small(Path(folder), base, Path(store)).build()


@contextmanager
def buildah_of(store: Store) -> Iterator[Buildah]:
    with store.lock() as lock, store.work_folder() as work:
        yield Build(Recipe(), store, work, lock).buildah


def push_base(registry: Registry, buildah: Buildah, local: str) -> str:
    """Push an image for others to be built on, and return the reference that it has in the registry."""
    reference = f"{registry.host}/{local.rpartition('/')[2]}"
    policy = f"--signature-policy={buildah._policy}"
    buildah(f"Pushing {reference}", "push", policy, tls_verify(reference), local, f"docker://{reference}")
    return reference


@pytest.fixture(scope="module")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a store that will have pulled what small images are built on."""
    return tmp_path_factory.mktemp("small") / "cache"


@pytest.fixture(scope="module")
def small_base(registry: Registry, small_store: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the reference of a base that is pulled and written at once: busybox."""
    context = tmp_path_factory.mktemp("busybox")
    (context / "Containerfile").write_text("FROM scratch\nADD root.tar /\n")
    shutil.copyfile(root_trees.BUSYBOX.tarball, context / "root.tar")
    with buildah_of(Store(small_store)) as buildah:
        buildah.build(f"{LOCAL_REPOSITORY}/busybox:1", context, [], lambda _: None)
        return push_base(registry, buildah, f"{LOCAL_REPOSITORY}/busybox:1")


@pytest.fixture(scope="module")
def debian_base(built: None, registry: Registry) -> str:
    """Return the reference of the base of our own images, which has apt."""
    with buildah_of(cache()) as buildah:
        return push_base(registry, buildah, f"{LOCAL_REPOSITORY}/base:{Recipe().tags()['base']}")


def small_images(folder: Path, base: str, store: Path) -> Small:
    """Return images that were never built before."""
    number = next(_numbers)
    for name in PARENTS:
        (folder / name).mkdir(parents=True)
        step = "RUN sleep 0.3; echo " if name in {"slurm", "worker", "login"} else "LABEL built="
        (folder / name / "Containerfile").write_text(f"{on_parent(name)}{step}{number}\n")
    (folder / "AS_OF").write_text("2026-11-21\n")
    return Small(folder, base, store)


@pytest.fixture
def small(small_base: str, small_store: Path, tmp_path: Path) -> Small:
    """Give images of a few kilobytes."""
    return small_images(tmp_path / "images", small_base, small_store)


@pytest.fixture
def debian(debian_base: str, small_store: Path, tmp_path: Path) -> Small:
    """Give images that have apt."""
    return small_images(tmp_path / "images", debian_base, small_store)


@pytest.fixture(scope="module")
def user_cache(registry: Registry, small_base: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache of a user in which all images of this checkout are finished: small ones, under their tags."""
    if SOAK:  # compressing the real ones for a registry takes a minute
        images.build()
        return paths.cache_dir().parent
    folder = tmp_path_factory.mktemp("user")
    ours = folder / "soperator-pulumi"
    small = small_images(folder / "images", small_base, ours / "images")
    small.build()
    for name, tag in small.recipe.tags().items():
        if (layout := small.store.layout(name, tag)).exists():
            layout.rename(small.store.layout(name, Recipe().tags()[name]))
    (ours / "debs").symlink_to(paths.cache_dir() / "debs")
    return folder


@pytest.fixture(scope="module")
def pushed(
    user_cache: Path, registry: Registry, tmp_path_factory: pytest.TempPathFactory
) -> "subprocess.CompletedProcess[str]":
    """Push the images by the README's command."""
    return push_by_command(registry, registry.credentials(), user_cache, tmp_path_factory.mktemp("pushed"))


def on_parent(name: str) -> str:
    """Return how the Containerfile of an image begins: with those that it is built from."""
    arguments = [parent.upper() for parent in PARENTS[name]]
    return "".join(f"ARG {argument}\n" for argument in arguments) + f"FROM ${{{arguments[0]}}}\n"


@contextmanager
def recording_proxy() -> Iterator[tuple[str, list[str]]]:
    """Run a proxy that refuses everything; give its address and the credentials that it was shown."""
    credentials: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name is the library's
            credentials.append(self.headers.get("Proxy-Authorization", ""))
            self.send_error(407 if not credentials[-1] else 503)

        def do_CONNECT(self) -> None:
            self.do_GET()

        def send_error(self, code: int, *arguments: str | None) -> None:
            self.send_response(code, *arguments)
            self.send_header("Proxy-Authenticate", "Basic realm=tests")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", credentials
        server.shutdown()


def decompressed(blob: Path) -> bytes:
    content = blob.read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def processes_naming(text: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if text in command:
            found.append(f"{process.name}: {command}")
    return found


def test_images_that_are_there_are_not_built_again(built: None) -> None:
    # Without a PATH nothing can be built.
    done = subprocess.run(
        [sys.executable, "-m", "tools.images"],
        cwd=paths.ROOT,
        env={**os.environ, "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout == "images:\n" + "".join(f"  {n}: {r}\n" for n, r in images.references().items())
    assert "Building" not in done.stderr


@pytest.mark.soak
def test_the_same_inputs_give_the_same_images_bit_for_bit(built: None, tmp_path: Path) -> None:
    tags = Recipe().tags()

    def digests(folder: Path) -> list[str]:
        store = Store(folder)
        folder.mkdir()
        (folder / "storage").symlink_to(cache().folder / "storage")  # for the parents of the images
        with cache().lock(), store.lock() as lock, store.work_folder() as work:
            Build(Recipe(), store, work, lock).run(PUBLISHED)
        return [(store.layout(name, tags[name]) / "index.json").read_text() for name in PUBLISHED]

    # Not those in the cache: since these were built, Debian may have published new packages.
    assert digests(tmp_path / "once") == digests(tmp_path / "again")


def test_only_what_changed_is_built_again(small: Small) -> None:
    start = small.log
    small.build()
    first = small.log
    (small.folder / "login" / "motd").write_text("welcome\n")
    small.build()

    assert first.removeprefix(start).count("COMMIT") == len(PARENTS)
    assert small.log.removeprefix(first).count("COMMIT") == 1


@pytest.mark.soak
def test_builds_killed_at_any_moment_leave_nothing_and_the_next_one_converges(small: Small) -> None:
    moments = sorted(random.uniform(0, BUILD_SECONDS) for _ in range(KILLS))  # noqa: S311 - pytest-randomly's seed
    print(f"{KILLS} kills, after {', '.join(f'{moment:.2f}' for moment in moments)} s")  # noqa: T201 - what was run
    for moment in moments:
        with small.build_elsewhere() as build:
            time.sleep(moment)  # the moment is the point
            build.send_signal(signal.SIGKILL)
        wait_until(lambda: not processes_naming(str(small.cache)), what="no process is left")

        assert str(small.cache) not in Path("/proc/self/mountinfo").read_text()
    # A kill may come after the last image: a build that has nothing to build removes no leftovers.
    (small.folder / "login" / "motd").write_text("welcome\n")
    small.build()

    assert all(small.store.use(name, small.recipe.tags()[name]) for name in PUBLISHED)
    assert list(small.cache.glob("work-*")) == []


@pytest.mark.soak
def test_two_builds_at_once_build_each_image_once(small: Small) -> None:
    start = small.log
    builds = [small.build_elsewhere() for _ in range(2)]

    assert [build.wait(timeout=120) for build in builds] == [0, 0]
    assert small.log.removeprefix(start).count("COMMIT") == len(PARENTS)


def test_a_failing_step_is_named_with_its_last_words(small: Small) -> None:
    (small.folder / "worker" / "Containerfile").write_text(
        f"{on_parent('worker')}RUN echo 'no such thing: slurm' >&2; exit 7\n"
    )
    expected = r"(?s)Building localhost/soperator/worker.*failed.*no such thing: slurm.*buildah\.log"

    with pytest.raises(UserError, match=expected):
        small.build()


@pytest.mark.soak
def test_another_slurm_than_ours_is_refused_with_words(debian: Small) -> None:
    check = (paths.ROOT / "images" / "slurm" / "require-slurm").read_text()
    (debian.folder / "slurm" / "require-slurm").write_text(check)
    (debian.folder / "slurm" / "Containerfile").write_text(
        f"{on_parent('slurm')}COPY require-slurm /require-slurm\nRUN apt-get update && sh /require-slurm 99.11\n"
    )

    with pytest.raises(UserError, match=r"offer Slurm 24\.11\S+, and the images are made for 99\.11"):
        debian.build("munge")


@pytest.mark.soak
def test_the_proxy_of_the_machines_apt_is_used_and_its_password_is_in_no_image(
    debian: Small, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (debian.folder / "slurm" / "Containerfile").write_text(
        f"{on_parent('slurm')}RUN apt-get update || touch /apt-was-here\n"
    )
    with recording_proxy() as (address, credentials):
        settings = f'Acquire::http::Proxy "http://me:{PASSWORD}@{address}";\nAcquire::Retries "0";\n'
        settings += settings.replace("http::", "https::", 1)
        (tmp_path / "apt.conf").write_text(settings)
        monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
        debian.build("munge")

    assert base64.b64encode(f"me:{PASSWORD}".encode()).decode() in " ".join(credentials)
    blobs = list((debian.cache / "blobs" / "sha256").iterdir())
    assert [blob for blob in blobs if PASSWORD.encode() in decompressed(blob)] == []


@pytest.mark.soak
def test_a_mirror_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"(?s)Bootstrapping Debian failed.*127\.0\.0\.1:9"):
        build_missing(Recipe(), Store(tmp_path), "http://127.0.0.1:9/debian")


# ---- pushing ----


def push_by_command(
    registry: Registry, credentials: str, user_cache: Path, tmp_path: Path
) -> "subprocess.CompletedProcess[str]":
    (tmp_path / "auth.json").write_text(credentials)
    return subprocess.run(
        ["make", "--silent", "images", f"REGISTRY={registry.host}/hpc"],
        cwd=paths.ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(user_cache), "REGISTRY_AUTH_FILE": str(tmp_path / "auth.json")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_pushed_images_are_what_the_printed_block_names(
    pushed: "subprocess.CompletedProcess[str]", registry: Registry
) -> None:
    expected = images.references(f"{registry.host}/hpc")

    assert pushed.returncode == 0, pushed.stderr
    assert pushed.stdout == "images:\n" + "".join(f"  {n}: {r}\n" for n, r in expected.items())
    for reference in expected.values():
        name, _, tag = reference.removeprefix(f"{registry.host}/").rpartition(":")
        assert registry.manifest(name, tag)["layers"]


def test_a_registry_that_refuses_is_quoted_and_the_password_is_not(
    user_cache: Path, registry: Registry, tmp_path: Path
) -> None:
    done = push_by_command(registry, registry.credentials("a-wrong-password"), user_cache, tmp_path)

    assert done.returncode != 0
    assert "unauthorized" in done.stderr
    assert "a-wrong-password" not in done.stderr
    assert "Traceback" not in done.stderr
