"""Chromium without a window: the machine's, else the one of the distribution's packages, unpacked into the cache."""

import json
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

from tools.kube import debs

_PACKAGES = ("chromium", "fonts-dejavu-core")
_SECONDS = 180

_SCRIPT = """<script>addEventListener("load", () => {
  const seen = [...document.querySelectorAll("section")].map(section => {
    const box = section.getBoundingClientRect(), svg = section.querySelector("svg");
    const drawn = svg ? svg.getBoundingClientRect() : {width: 0, height: 0};
    return {
      title: section.querySelector("h4").firstChild.textContent.trim(), kind: section.dataset.kind,
      width: box.width, height: box.height, drawn: [drawn.width, drawn.height],
      lines: [...section.querySelectorAll("svg path")].filter(path => path.getTotalLength() > 5).length,
      cells: section.querySelectorAll("td").length, text: section.innerText,
      cut: section.scrollWidth > section.clientWidth + 1};
  });
  document.body.dataset.seen = JSON.stringify(seen);
});</script>"""


def _chromium(folder: Path, *arguments: str) -> str:
    program, environment = shutil.which("chromium"), dict[str, str]()
    if program is None:
        packages = debs.unpacked(_PACKAGES)
        # /usr/bin/chromium of the package is a script that names its place on the machine.
        program, environment = str(packages.root / "usr/lib/chromium/chromium"), packages.environment
        # A library of Chromium's names this folder by its place on the machine.
        beside = [str(path) for path in packages.root.glob("usr/lib/*/pulseaudio")]
        environment["LD_LIBRARY_PATH"] = ":".join([environment["LD_LIBRARY_PATH"], *beside])
    fixed = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
    done = subprocess.run(
        [program, *fixed, f"--user-data-dir={folder / 'profile'}", *arguments],
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def picture(page: Path, file: Path, width: int, height: int) -> None:
    """Write a picture of a page as people see it."""
    _chromium(file.parent, f"--window-size={width},{height}", f"--screenshot={file}", page.as_uri())


def panels(page: Path, width: int) -> list[dict[str, Any]]:
    """Return what a browser has drawn for each panel: its size, lines, cells and text."""
    text = page.read_text()
    assert "default-src 'none'" in text
    measured = page.with_name("measured.html")
    # The page itself runs no script.
    allowed = text.replace("default-src 'none'", "default-src 'none'; script-src 'unsafe-inline'")
    measured.write_text(allowed.replace("</body>", f"{_SCRIPT}</body>") if "</body>" in text else allowed + _SCRIPT)
    found = _chromium(page.parent, f"--window-size={width},2000", "--dump-dom", measured.as_uri())
    seen = found.partition('data-seen="')[2].partition('"')[0]
    assert seen, found[-500:]
    answer: list[dict[str, Any]] = json.loads(unescape(seen))
    return answer
