"""Values that another tool replaces or decrypts before helm reads them."""

import re

from soperator_pulumi.convert.yaml_tree import Leaf, Tree, leaves_of
from soperator_pulumi.errors import ConversionError

HELM_GET = "`helm get values RELEASE --namespace NAMESPACE --output yaml` prints those of a running release"
"""Sentence that says how to get the values of a release."""

_ENCRYPTED = re.compile(r"ENC\[.*\]")
"""Values that sops encrypted."""

_PLACEHOLDER = re.compile(r"\{\{.*\}\}|\$\{[^}]*\}|__\w+__")
"""Values that another tool replaces: templates of Go, and variables of Terraform, Flux and the shell."""

_PART = re.compile(r"\$\{\w[^}\s]*\}|__[A-Z][A-Z0-9_]*__")
"""Variables of Terraform, Flux and the shell within a value."""

_OF_SHELLS = {"env", "customEnv", "args", "command", "environment"}
"""Keys of values in which Kubernetes and shells replace variables."""


def refuse_placeholders(tree: Tree | None, name: str) -> None:
    """Refuse values that are encrypted, and those that another tool replaces, wholly or in part.

    Raises:
        ConversionError: There are such values.
    """
    for leaf in leaves_of(tree):
        if isinstance(leaf.value, str) and _ENCRYPTED.fullmatch(leaf.value):
            place = leaf.path.removeprefix(f"{name}: ")
            raise ConversionError(
                f"{name}, line {leaf.line}: {place} is encrypted by sops. Decrypt the file: `sops decrypt FILE`."
            )
    found = [(leaf, shown) for leaf in leaves_of(tree) if (shown := _placeholder_in(leaf))]
    if found:
        leaf, shown = found[0]
        raise ConversionError(
            f"{name}, line {leaf.line}: {leaf.path.removeprefix(f'{name}: ')} is a placeholder, {shown} ({len(found)} "
            f"in all). Give the values that replace them: {HELM_GET}."
        )


def _placeholder_in(leaf: Leaf) -> str:
    """Return the key or value that another tool replaces, wholly or in part; an empty text if there is none."""
    for key in leaf.keys:
        if isinstance(key, str) and (_PART.search(key) or _PLACEHOLDER.fullmatch(key)):
            return key
    if not isinstance(leaf.value, str):
        return ""
    is_word = not (re.search(r"\s", leaf.value) or _OF_SHELLS & {*leaf.keys})
    return leaf.value if _PLACEHOLDER.fullmatch(leaf.value) or (is_word and _PART.search(leaf.value)) else ""
