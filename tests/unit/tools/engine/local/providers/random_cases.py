"""Cases of pulumi-random, and those parts of a provider's answers that are the same in every run."""

import json
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pulumi.provider.experimental import provider as api

from tests.unit.tools.engine.local.providers.provider_answers import checked, difference
from tools.console import UserError
from tools.engine.local.providers.local_provider import LocalProvider
from tools.engine.values import UNKNOWN, Plain, PlainMap, Properties, has_unknown, plain_map

RECORDED = Path(__file__).parent / "recorded" / "random.json"
"""Answers of the real provider, by case; `RECORD=1` writes them (tests/engine/test_real_providers.py)."""

_CLASSES = {
    "lower": string.ascii_lowercase,
    "upper": string.ascii_uppercase,
    "numeric": string.digits,
    "special": "!@#$%&*()-_=+[]{}<>:?",
}
_FORMS = {
    "base64": r"[A-Za-z0-9+/]+=*",
    "b64Std": r"(p-)?[A-Za-z0-9+/]+=*",
    "b64Url": r"(p-)?[A-Za-z0-9_-]+",
    "hex": r"(p-)?[0-9a-f]+",
    "dec": r"(p-)?[0-9]+",
    "bcryptHash": r"\$2a\$10\$[./A-Za-z0-9]{53}",
    "id": r".*",
    "uuid": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
}


@dataclass(frozen=True)
class Case:
    """Inputs of a resource, and of a later deployment of it."""

    kind: str
    inputs: Mapping[str, object]
    later: Mapping[str, object] | None = None

    @property
    def urn(self) -> str:
        token = f"random:index/{self.kind[0].lower()}{self.kind[1:]}:{self.kind}"
        return f"urn:pulumi:s::p::parent:x:Y${token}::name"


_K1, _K2 = {"keepers": {"k": "1"}}, {"keepers": {"k": "2"}}
CASES = {
    "bytes": Case("RandomBytes", {"length": 32}),
    "bytes, a number as text": Case("RandomBytes", {"length": "32"}),
    "bytes, none": Case("RandomBytes", {"length": 0}),
    "bytes, half of one": Case("RandomBytes", {"length": 1.5}),
    "bytes, without length": Case("RandomBytes", {}),
    "bytes, no number": Case("RandomBytes", {"length": "many"}),
    "bytes, unknown length": Case("RandomBytes", {"length": UNKNOWN}),
    "bytes, a foreign input": Case("RandomBytes", {"length": 1, "seed": "s"}),
    "bytes, unchanged": Case("RandomBytes", {"length": 1, **_K1}, {"length": 1, **_K1}),
    "bytes, another length": Case("RandomBytes", {"length": 1}, {"length": 2}),
    "bytes, a length that becomes unknown": Case("RandomBytes", {"length": 1}, {"length": UNKNOWN}),
    "bytes, keepers added": Case("RandomBytes", {"length": 1}, {"length": 1, **_K1}),
    "bytes, empty keepers added": Case("RandomBytes", {"length": 1}, {"length": 1, "keepers": {}}),
    "bytes, keepers changed": Case("RandomBytes", {"length": 1, **_K1}, {"length": 1, **_K2}),
    "bytes, a keeper added": Case("RandomBytes", {"length": 1, **_K1}, {"length": 1, "keepers": {"k": "1", "l": "1"}}),
    "bytes, a keeper removed": Case(
        "RandomBytes", {"length": 1, "keepers": {"k": "1", "l": "1"}}, {"length": 1, **_K1}
    ),
    "bytes, a keeper that becomes unknown": Case(
        "RandomBytes", {"length": 1, **_K1}, {"length": 1, "keepers": {"k": UNKNOWN}}
    ),
    "bytes, keepers removed": Case("RandomBytes", {"length": 1, **_K1}, {"length": 1}),
    "bytes, a keeper that is no text": Case("RandomBytes", {"length": 1, "keepers": {"k": 1}}),
    "bytes, keepers of other types": Case("RandomBytes", {"length": 1, "keepers": {"a": True, "b": 1.5}}),
    "bytes, a keeper that is a list": Case("RandomBytes", {"length": 1, "keepers": {"a": ["b"]}}),
    "bytes, the same keeper as a number": Case("RandomBytes", {"length": 1, **_K1}, {"length": 1, "keepers": {"k": 1}}),
    "bytes, keepers that are no map": Case("RandomBytes", {"length": 1, "keepers": "k"}),
    "id": Case("RandomId", {"byteLength": 4}),
    "id with a prefix": Case("RandomId", {"byteLength": 4, "prefix": "p-"}),
    "id, a prefix that is a number": Case("RandomId", {"byteLength": 4, "prefix": 5}),
    "id, no bytes": Case("RandomId", {"byteLength": 0}),
    "id, another prefix": Case("RandomId", {"byteLength": 4, "prefix": "p-"}, {"byteLength": 4, "prefix": "q-"}),
    "id, prefix removed": Case("RandomId", {"byteLength": 4, "prefix": "p-"}, {"byteLength": 4}),
    "uuid": Case("RandomUuid", {}),
    "uuid, keepers changed": Case("RandomUuid", _K1, _K2),
    "password": Case("RandomPassword", {"length": 16}),
    "password of few characters": Case(
        "RandomPassword", {"length": 24, "special": False, "upper": False, "minNumeric": 5, **_K1}
    ),
    "password with specials": Case("RandomPassword", {"length": 12, "overrideSpecial": "_-", "minSpecial": 3}),
    "password without numbers, in the former word": Case("RandomPassword", {"length": 12, "number": False}),
    "password without numbers": Case("RandomPassword", {"length": 12, "numeric": False}),
    "password, both words": Case("RandomPassword", {"length": 12, "numeric": False, "number": True}),
    "password, minimum of a class that is off": Case("RandomPassword", {"length": 12, "upper": False, "minUpper": 12}),
    "password, none": Case("RandomPassword", {"length": 0}),
    "password, shorter than its minimums": Case("RandomPassword", {"length": 3, "minLower": 2, "minUpper": 2}),
    "password, as long as its minimums": Case("RandomPassword", {"length": 4, "minLower": 2, "minUpper": 2}),
    "password, a class that is no truth": Case("RandomPassword", {"length": 4, "lower": "maybe"}),
    "password, a truth as text": Case("RandomPassword", {"length": "4", "special": "false"}),
    "password of no characters": Case(
        "RandomPassword", {"length": 4, "lower": False, "upper": False, "numeric": False, "special": False}
    ),
    "password, unchanged": Case("RandomPassword", {"length": 4}, {"length": 4}),
    "password, a default written out": Case("RandomPassword", {"length": 4}, {"length": 4, "special": True}),
    "password, a class switched off": Case("RandomPassword", {"length": 4}, {"length": 4, "special": False}),
    "password, other specials": Case("RandomPassword", {"length": 4}, {"length": 4, "overrideSpecial": "_"}),
    "password, empty specials left out": Case("RandomPassword", {"length": 4, "overrideSpecial": ""}, {"length": 4}),
    "password, the new word for the former": Case(
        "RandomPassword", {"length": 4, "number": False}, {"length": 4, "numeric": False}
    ),
    "password, numbers switched off": Case("RandomPassword", {"length": 4}, {"length": 4, "numeric": False}),
    "password, several changes": Case("RandomPassword", {"length": 4, **_K1}, {"length": 5, "minLower": 1, **_K2}),
    "text": Case("RandomString", {"length": 16}),
    "text in lower case": Case("RandomString", {"length": 8, "special": False, "upper": False, "numeric": False}),
    "text, shorter than its minimums": Case("RandomString", {"length": 1, "minLower": 2}),
    "text, another length": Case("RandomString", {"length": 4}, {"length": 5}),
}


def written(found: dict[str, dict[str, Any]]) -> str:
    """Return the text of the file: a line for each answer."""
    cases = []
    for name, parts in found.items():
        lines = ",\n".join(f"    {json.dumps(part)}: {json.dumps(answer)}" for part, answer in parts.items())
        cases.append(f"  {json.dumps(name)}: {{\n{lines}\n  }}")
    return "{\n" + ",\n".join(cases) + "\n}\n"


async def answers(provider: LocalProvider, case: Case) -> dict[str, Any]:
    """Return the answers of a provider to a case, as JSON: no generated value, but its form."""
    try:
        inputs = await checked(provider, case.urn, {}, case.inputs)
        planned = await provider.create(api.CreateRequest(case.urn, inputs, 0, preview=True))
        found = {"check": _shown(inputs, case.inputs), "preview": _shown(planned.properties, case.inputs)}
        if has_unknown(case.inputs):
            return found
        made = await provider.create(api.CreateRequest(case.urn, inputs, 0, preview=False))
        resource_id, outputs = made.resource_id or "", made.properties
        if case.later is None:
            same_id = _id_form(resource_id, plain_map(outputs))
            return {**found, "id": same_id, "outputs": _shown(outputs, case.inputs)}
        later = await checked(provider, case.urn, inputs, case.later)
    except UserError as error:
        return {"refused": str(error)}
    seen = await provider.diff(api.DiffRequest(case.urn, resource_id, outputs, later, []))
    found = {"diff": difference(seen)}
    if seen.changes and not seen.replaces:
        request = api.UpdateRequest(case.urn, resource_id, outputs, later, 0, [], preview=False)
        found["update"] = _shown((await provider.update(request)).properties, case.later)
    return found


def _id_form(resource_id: str, outputs: PlainMap) -> str:
    prefix = str(outputs.get("prefix", ""))
    same = [key for key, value in sorted(outputs.items()) if value == prefix + resource_id]
    return f"as {', '.join(same)}{', without prefix' if prefix else ''}" if same else "of its own"


def _shown(properties: Properties, given: Mapping[str, object]) -> dict[str, Any]:
    """Return known values as they are, the form of generated ones, and which of them are secret."""
    values = plain_map(properties)
    shown = {
        key: value if key in given else _form(key, value, values)
        for key, value in values.items()
        if not key.startswith("__")  # notes of the bridge to Terraform
    }
    return {
        f"{key} (secret)" if properties[key].is_secret else key: "unknown" if value is UNKNOWN else _json(value)
        for key, value in sorted(shown.items())
    }


def _json(value: Plain) -> Any:
    if isinstance(value, dict):
        return {key: _json(item) for key, item in value.items()}
    return "unknown" if value is UNKNOWN else value


def _form(key: str, value: Plain, outputs: PlainMap) -> Plain:
    if not isinstance(value, str) or value == "none":
        return value
    if key == "result" and "length" in outputs:
        classes = [name for name in _CLASSES if outputs.get(name)]
        allowed = "".join(
            str((name == "special" and outputs.get("overrideSpecial")) or _CLASSES[name]) for name in classes
        )
        return f"{len(value)} of {', '.join(classes)}" if {*value} <= {*allowed} else f"{len(value)} of others"
    name = "uuid" if key == "result" else key
    if not re.fullmatch(_FORMS.get(name, ""), value):
        return f"no {name}"
    return f"{name} of {'some' if name == 'dec' else len(value)}"
