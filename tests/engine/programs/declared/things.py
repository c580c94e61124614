"""A dynamic resource that writes down what is done to it, and does what a test needs: waits, prints, fails."""

import time
from pathlib import Path
from typing import Any

import pulumi
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    Config,
    ConfigureRequest,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)

POLL_SECONDS = 0.05
PATIENCE_SECONDS = 60


class ThingProvider(ResourceProvider):
    """Works on a folder: `log` in it has a line for each call."""

    _config: Config | None = None

    def configure(self, req: ConfigureRequest) -> None:
        self._config = req.config

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        wrong = news.get("wrong")
        return CheckResult(news, [CheckFailure("wrong", str(wrong))] if wrong else [])

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        if news.get("says"):
            print(news["says"], flush=True)
        changed = [k for k in news if not k.startswith("__") and k != "made" and olds.get(k) != news[k]]
        return DiffResult(
            changes=bool(changed),
            replaces=["identity"] if "identity" in changed else [],
            delete_before_replace=bool(news.get("alone")),
        )

    def create(self, props: dict[str, Any]) -> CreateResult:
        _work("create", props)
        return CreateResult(props["name"], {**props, "made": f"{props['name']}-made"})

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        _work("update", news)
        return UpdateResult({**news, "made": f"{news['name']}-made"})

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        if props.get("tells"):
            _log(
                Path(props["folder"]), f"read {props['name']} with {self._config and self._config.get(props['tells'])}"
            )
        if (Path(props["folder"]) / f"gone-{props['name']}").exists():
            return ReadResult("", {})
        return ReadResult(id_, props)

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        _work("delete", props)


def _work(operation: str, props: dict[str, Any]) -> None:
    folder, name = Path(props["folder"]), props["name"]
    _log(folder, f"{operation} {name}")
    if (folder / f"hold-{operation}-{name}").exists():
        _log(folder, f"holding {operation} {name}")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (folder / f"hold-{operation}-{name}").exists() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
    if (folder / f"fail-{operation}-{name}").exists():
        msg = f"{operation} of {name} fails\n  as the test wants it"
        raise RuntimeError(msg)
    print(f"{operation} of {name} is through", flush=True)
    _log(folder, f"{operation} {name} done")


def _log(folder: Path, line: str) -> None:
    with (folder / "log").open("a") as log:
        log.write(line + "\n")


class Thing(Resource, module="tests", name="Thing"):
    """A dynamic resource."""

    made: pulumi.Output[str]

    def __init__(self, name: str, properties: dict[str, Any], opts: pulumi.ResourceOptions) -> None:
        super().__init__(ThingProvider(), name, {"name": name, "made": None, **properties}, opts)
