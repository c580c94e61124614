"""Debian releases with other Pythons, as machines of a developer: this tree, and the little that README.md asks for.

Such a machine has mounts of its own, and whatever is written there is gone at the end.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tests import debian_releases
from tools import locks, paths
from tools.console import step
from tools.images.recipe import Recipe
from tools.images.runner import CONFINED

RELEASES = {"3.13": "trixie", "3.14": "sid"}
"""Debian releases by their Python."""

HOME = Path("/root")
CACHE = HOME / ".cache"
"""Folder of caches there. It stays."""
STATE = HOME / ".local" / "state"
"""Folder of states there."""

_PACKAGES = ("ca-certificates", "git", "make", "python3")
_VERSION = 1
"""Counted up when this module makes other machines of the same inputs."""

_MAKE_SECONDS = 900
_WAY_OUT = ("hosts", "pip.conf", "resolv.conf", "ssl/certs")
"""Files in /etc with which this machine reaches package sources."""
_VARIABLES = re.compile(r"(?i)\w+_proxy|PIP_\w+|SSL_CERT_\w+|REQUESTS_CA_BUNDLE")
"""Variables with which it does."""

# $1 is the machine's folder, $2 the layers of its tree; then come pairs of paths, here and there, then --, the command.
# The root becomes a mount point, as that of any machine: no private mounts can be made in a mere chroot.
_ENTER = """\
set -e
folder=$1 layers=$2
shift 2
mount -t tmpfs tmpfs "$folder/now"
cd "$folder/now"
mkdir upper work tree-upper tree-work root
mount -t overlay overlay -o "lowerdir=$folder/root,upperdir=upper,workdir=work" root
mkdir -p root/tree
mount -t overlay overlay -o "$layers" root/tree
while [ "$1" != -- ]; do
    if [ -d "$1" ]; then mkdir -p "root$2"; else mkdir -p "root${2%/*}" && touch "root$2"; fi
    mount --rbind "$1" "root$2"
    shift 2
done
shift
mount -t proc proc root/proc
mount -t tmpfs tmpfs root/tmp
mount -t tmpfs tmpfs root/run
cd root
pivot_root . .
umount --lazy .
cd /tree
"$@" # the shell stays, and reaps orphans
exit
"""


@dataclass(frozen=True)
class OtherPython:
    """A machine with another Python, made once and kept in the cache."""

    version: str
    """Such as 3.13."""

    def run(
        self, *words: str | Path, timeout_seconds: float, mounted: Mapping[Path, Path] | None = None, **variables: str
    ) -> int:
        """Run a command in the tree there to its end, and return its exit code. It prints where this process does.

        Args:
            words: The command.
            timeout_seconds: Its longest time.
            mounted: Paths there of files and folders of this machine.
            variables: Its environment, in addition to the way to package sources.

        """
        folder = self._made()
        over = f"lowerdir={folder / 'tree'}:{paths.ROOT},upperdir=tree-upper,workdir=tree-work"
        return self._run(
            folder, over, words, timeout_seconds=timeout_seconds, mounted=mounted or {}, variables=variables
        )

    @property
    def _release(self) -> str:
        return RELEASES[self.version]

    def _made(self) -> Path:
        """Return the machine's folder; make it, and the environment of the tree there, where the cache has none."""
        made_of = [_VERSION, *_PACKAGES, Recipe().as_of]
        made_of += [(paths.ROOT / name).read_text() for name in ("requirements.lock", "tools/venv.sh")]
        key = sha256(repr(made_of).encode()).hexdigest()[:12]
        folder = paths.cache_dir() / "pythons" / f"{self._release}-{key}"
        with locks.held(folder.with_suffix(".lock"), f"making {self._release}", wait_seconds=_MAKE_SECONDS):
            if not folder.exists():
                with step(f"Making a Debian {self._release}, and the environment there"):
                    self._make(folder.with_suffix(".new")).rename(folder)
        return folder

    def _make(self, folder: Path) -> Path:
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("cache", "now", "tree", "tree-work"):
            (folder / name).mkdir(parents=True)
        debian_releases.bootstrap_release(self._release, folder / "root", _PACKAGES)
        (folder / "root/etc/apt/sources.list").unlink()  # of the bootstrap: later ones are mounted
        kept = f"lowerdir={paths.ROOT},upperdir={folder / 'tree'},workdir={folder / 'tree-work'}"
        code = self._run(folder, kept, ["tools/venv.sh"], timeout_seconds=_MAKE_SECONDS, mounted={}, variables={})
        assert code == 0, f"tools/venv.sh on Debian {self._release} gave {code}"
        (found,) = (folder / "tree/.venv/lib").iterdir()
        assert found.name == f"python{self.version}", f"Debian {self._release} has {found.name} by now"
        return folder

    def _run(
        self,
        folder: Path,
        layers: str,
        words: Sequence[str | Path],
        *,
        timeout_seconds: float,
        mounted: Mapping[Path, Path],
        variables: Mapping[str, str],
    ) -> int:
        with tempfile.TemporaryDirectory() as temporary:
            apt = debian_releases.apt_access(Path(temporary) / "apt", self._release)
            here = {Path("/dev"): Path("/dev"), Path("/sys"): Path("/sys"), CACHE: folder / "cache", **mounted}
            here |= {Path("/etc", name): Path("/etc", name) for name in _WAY_OUT if Path("/etc", name).exists()}
            here |= {Path("/etc/apt", path.name): path for path in apt.folder.iterdir() if path.is_dir()}
            pairs = [str(path) for there, path in here.items() for path in (path, there)]
            return subprocess.run(
                [*CONFINED, "sh", "-c", _ENTER, "sh", folder, layers, *pairs, "--", *words],
                env={
                    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                    "HOME": str(HOME),
                    **{name: value for name, value in os.environ.items() if _VARIABLES.fullmatch(name)},
                    **variables,
                },
                stdin=subprocess.DEVNULL,
                timeout=timeout_seconds,
                check=False,
            ).returncode
