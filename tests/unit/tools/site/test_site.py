"""`make site`: the documentation as a site."""

import re
from pathlib import Path

import pytest

from tools.console import UserError
from tools.site import navigation
from tools.site.__main__ import build


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Folder of two pages that a README names."""
    folder = tmp_path / "sources"
    (folder / "docs").mkdir(parents=True)
    (folder / "README.md").write_text("# All\n\n| for | read |\n|---|---|\n| users | [a page](docs/a.md) |\n")
    (folder / "docs" / "a.md").write_text("# A page\n\n## Its part\n\nSee [above](#its-part).\n")
    return folder


def test_the_site_of_this_project_has_its_pages_its_api_and_search(tmp_path: Path) -> None:
    first = build(tmp_path).read_text()
    captions = re.findall(r'class="caption-text">([^<]+)<', first)
    assert captions[:4] == ["Researchers", "Platform engineers: plan", "Platform engineers: run", "Reviewers"]
    assert 'href="docs/containers.html"' in first
    assert "Containers in jobs" in (tmp_path / "searchindex.js").read_text()
    api = (tmp_path / "docs" / "api.html").read_text()
    assert 'id="soperator_pulumi.SlurmCluster.login"' in api
    assert "Matches(" not in api


def test_a_link_to_a_missing_heading_is_an_error(
    sources: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (sources / "docs" / "a.md").write_text("# A page\n\nSee [below](#gone).\n")
    with pytest.raises(UserError, match="has the problems above"):
        build(tmp_path / "site", sources)
    assert "docs/a.md:3" in capfd.readouterr().err


def test_a_page_that_the_readme_does_not_name_is_an_error(
    sources: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (sources / "docs" / "b.md").write_text("# Another page\n")
    with pytest.raises(UserError, match="has the problems above"):
        build(tmp_path / "site", sources)
    assert "docs/b.md" in capfd.readouterr().err


def test_pages_without_a_fault_become_a_site(sources: Path, tmp_path: Path) -> None:
    assert 'href="docs/a.html"' in build(tmp_path / "site", sources).read_text()


def test_a_row_of_the_readme_becomes_a_tree_of_pages() -> None:
    readme = "| for | read |\n|---|---|\n| users | [a page](docs/a.md), [b](B.md) |\n"
    assert navigation.by_reader(readme) == readme + (
        "\n```{toctree}\n:hidden:\n:caption: Users\n\nA page <docs/a>\nB <B>\n```\n"
    )
