"""Objects of JSON or Kubernetes in texts: what of them is readable, and which values they put into Secrets."""

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from soperator_pulumi.policy.named_values import stands_in
from soperator_pulumi.policy.value_tree import Path, look, mapped

_MANIFEST = re.compile(r"^[^\S\n]*(?:- +)?kind:[^\S\n]*[\"']?(?:Secret|SealedSecret|ExternalSecret)\b", re.MULTILINE)
"""Line of a manifest whose values have a meaning by its kind."""

_LONGEST = 100_000
"""Longest manifest that is read, in characters: reading YAML takes a second for it."""

_SECRET_NAMES = {"existingSecret", "remoteRef", "secretName", "secretRef", "sourceRef"}
"""Keys that name a Secret, or a value in a store. A `secretKey` next to them is the name of a key."""

_PUBLIC = "-----BEGIN CERTIFICATE"

_SEALED = re.compile(r"Ag[\w+/]{200,}={0,2}")
"""A value that kubeseal encrypted."""

_DEEPEST = 100
"""Levels of the deepest object that is judged."""


class _Loader(yaml.SafeLoader):
    """Reader of YAML that refuses aliases, which make long trees of short texts, and leaves a date as text."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


_Loader.yaml_implicit_resolvers = {
    first: [resolver for resolver in found if resolver[0] != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def objects_in(text: str) -> list[Any]:
    """Return the JSON of a text, or its manifests of Secrets; an empty list for any other text."""
    try:
        if text.lstrip()[:1] in {"{", "["}:
            found = [json.loads(text)]
        elif len(text) <= _LONGEST and _MANIFEST.search(text):
            found = [*yaml.load_all(text, _Loader)]
        else:
            return []
    except (ValueError, yaml.YAMLError, RecursionError):
        return []  # a template, or a text of another language
    return found if _is_shallow(found, _DEEPEST) else []


def _is_shallow(value: object, levels: int) -> bool:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(item, levels - 1) for item in inner)


def readable(value: object) -> Any:  # noqa: ANN401 any tree of values
    """Return a tree of values without those that kubeseal encrypted, and without names of keys in Secrets."""
    if isinstance(value, Mapping):
        names_secret = bool(_SECRET_NAMES & value.keys()) and "accessKey" not in value
        return {
            key: readable(item)
            for key, item in value.items()
            if not (key == "secretKey" and names_secret) and not (isinstance(item, str) and _SEALED.fullmatch(item))
        }
    return [readable(item) for item in value] if isinstance(value, list) else value


def values_of_secret(value: object) -> Iterator[Path]:
    """Yield the paths of the values of a Secret's manifest, without templates and certificates."""
    if look(value, "kind") != "Secret":
        return
    for group in ("data", "stringData"):
        for key, text in mapped(look(value, group)).items():
            plain = _decoded(text) if group == "data" else text
            if isinstance(plain, str) and not stands_in(plain.strip()) and not plain.startswith(_PUBLIC):
                yield group, key


def _decoded(text: object) -> object:
    try:
        return base64.b64decode(text, validate=True).decode(errors="replace") if isinstance(text, str) else None
    except (binascii.Error, ValueError):
        return text
