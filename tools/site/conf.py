"""Settings of Sphinx, which reads this file: https://www.sphinx-doc.org/en/master/usage/configuration.html."""

import inspect
import re
import shutil
import typing
from pathlib import Path
from types import SimpleNamespace

from pydantic import BaseModel
from sphinx.application import Sphinx
from sphinx.ext.napoleon.docstring import GoogleDocstring

import soperator_pulumi
from tools.site import navigation

project = "soperator-pulumi"
release = soperator_pulumi.__version__
root_doc = "README"
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "examples/**README.md"]
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"{project} {release}"
html_show_sphinx = False
default_role = "code"
autodoc_default_options = {"exclude-members": "model_config, model_post_init"}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100

suppress_warnings = ["ref.python"]  # `type` in a signature is Python's, and an attribute of two classes

_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")


def setup(app: Sphinx) -> None:
    """Connect handlers that no setting can configure."""
    app.connect("source-read", _navigation)
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("autodoc-process-signature", _signature)
    app.connect("build-finished", _first_page)


def _navigation(_app: Sphinx, document: str, source: list[str]) -> None:
    if document == root_doc:
        source[0] = navigation.by_reader(source[0])
    elif document == "examples/README":
        source[0] += navigation.tree(["*/README"], glob=True)


def _docstring(_app: Sphinx, kind: str, _name: str, _described: object, _options: object, lines: list[str]) -> None:
    """Write code in reStructuredText, and sections (Args, Raises) as fields.

    Docstrings of attributes have no sections: napoleon would take the text before a colon for a type.
    """
    written = _CODE.sub(r"``\1``\\ ", "\n".join(lines)).splitlines()
    if kind != "attribute":
        written = GoogleDocstring(written).lines()
    lines[:] = written


def _signature(_app: Sphinx, _kind: str, _name: str, described: object, *_: object) -> tuple[str, None] | None:
    """Leave out arguments that no user gives: those of models, which are their attributes, and of a cluster's parts."""
    if not isinstance(described, type):
        return None
    if issubclass(described, BaseModel):
        types = {name: field.annotation for name, field in described.model_fields.items()}
        described.__annotations__ = typing.get_type_hints(SimpleNamespace(__annotations__=types))  # without their rules
        return "", None
    scope = inspect.signature(described.__init__).parameters.get("scope")
    return ("", None) if scope and scope.default is scope.empty else None


def _first_page(app: Sphinx, failure: Exception | None) -> None:
    if not failure:
        shutil.copyfile(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")
