"""Deploys with the Pulumi CLI, through the Automation API, without writing into the source tree."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pulumi import automation
from pulumi.automation.errors import CommandError

from soperator_pulumi.cli.stack_changes import StackChanges
from tools import locks
from tools.console import UserError
from tools.engine import encryption, project
from tools.engine.cli.events import Events, is_default_provider
from tools.engine.cli.recovery import (
    lock_of_another,
    recover,
    refuse_while_locked,
    refuse_while_pending,
    restore_checkpoint,
)
from tools.engine.display import Display, Say, failed
from tools.engine.protocol import HIDDEN, DeployError, ResourceState, Result, Target, protected_error
from tools.engine.values import SIGNATURE

_BACKEND = "PULUMI_BACKEND_URL"
_PASSPHRASES = ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE")


def environment(state: Path) -> dict[str, str]:
    """Return the environment with which a plain `pulumi` command works on the state in this folder.

    A backend or a passphrase that the user has set is kept, and the user's backend gets no passphrase of this machine.
    """
    own: dict[str, str] = {}
    if not os.environ.get(_BACKEND):
        (state / "pulumi").mkdir(parents=True, exist_ok=True, mode=0o700)
        own[_BACKEND] = _own_backend(state)
    if not is_shared(state) and not os.environ.get("PULUMI_CONFIG_PASSPHRASE"):
        own["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(encryption.passphrase_file(state))
    return own


def is_shared(state: Path) -> bool:
    """Return True if the user has chosen the backend, so that other machines may write to it."""
    return os.environ.get(_BACKEND) not in {None, "", _own_backend(state)}


def _own_backend(state: Path) -> str:
    return f"file://{state / 'pulumi'}"


class CliDeployer:
    """Deploys with the CLI on PATH."""

    def __init__(self, target: Target, say: Say) -> None:
        self._target = target
        self._say = say

    def preview(self, *, refresh: bool = False) -> StackChanges:
        """Return the changes that `up` would make, after reading the live resources if `refresh` is set."""
        packs = self._policy_packs
        result = self._run(
            "preview", lambda stack, options: stack.preview(policy_packs=packs, refresh=refresh, **options)
        )
        return StackChanges(changes=result.changes, messages=result.messages)

    def up(self) -> Result:
        """Deploy the program."""
        packs = self._policy_packs
        return self._run("up", lambda stack, options: stack.up(show_secrets=False, policy_packs=packs, **options))

    def refresh(self) -> Result:
        """Record the resources as they are in the state."""
        return self._run("refresh", lambda stack, options: stack.refresh(show_secrets=False, **options))

    def destroy(self, *, exclude_protected: bool = False) -> Result:
        """Delete everything in the state, or everything that is not protected."""

        def work(stack: automation.Stack, options: dict[str, Any]) -> None:
            protected = [r.name for r in _resources(stack) if r.protect]
            if protected and not exclude_protected:
                raise protected_error(protected)
            stack.destroy(show_secrets=False, exclude_protected=exclude_protected, **options)

        return self._run("destroy", work)

    def outputs(self) -> dict[str, Any]:
        """Return the stack's outputs."""
        return {name: output.value for name, output in self._stack().outputs().items()}

    def state(self) -> list[ResourceState]:
        """Return the resources in the state, without the CLI's own providers."""
        return _resources(self._stack())

    @property
    def _policy_packs(self) -> list[str]:
        return [str(folder.resolve()) for folder in self._target.policy_packs]

    @property
    def _folder(self) -> Path:
        """Folder of the stack for the CLI, outside the source tree, as the CLI writes a salt into it."""
        return self._target.state / "pulumi-project" / project.name_of(self._target) / self._target.stack

    @property
    def _config(self) -> Path:
        return self._folder / "config.yaml"

    def _workspace(self, folder: Path) -> automation.LocalWorkspace:
        variables = {
            **environment(self._target.state),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_AUTOMATION_API_SKIP_VERSION_CHECK": "true",
            **self._target.environment,
        }
        if not project.virtualenv(self._target):
            variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        provider = project.stack_settings(self._target).get("secretsprovider")
        return automation.LocalWorkspace(work_dir=str(folder), env_vars=variables, secrets_provider=provider)

    def _stack(self) -> automation.Stack:
        """Return the stack, created if missing, with its configuration in this tool's own file."""
        name, folder = self._target.stack, self._folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        settings = project.stack_settings(self._target)
        self._require_secrets_of_all(settings)
        file = folder / f"Pulumi.{name}.yaml"
        try:
            if not file.exists():
                (folder / "Pulumi.yaml").write_text(
                    yaml.safe_dump({"name": project.name_of(self._target), "runtime": "python"})
                )
                file.write_text(yaml.safe_dump({k: v for k, v in settings.items() if k != "config"}))
                automation.Stack.create_or_select(name, self._workspace(folder))
            made = yaml.safe_load(file.read_text()) or {}
            self._config.touch(mode=0o600)
            self._config.write_text(yaml.safe_dump({**made, **settings}))
            return automation.Stack.select(name, self._workspace(self._target.project))
        except CommandError as error:
            raise UserError(f"the Pulumi CLI: {_gist(error)}") from None

    def _require_secrets_of_all(self, settings: Mapping[str, Any]) -> None:
        """Refuse a passphrase that only this machine has for a shared backend. Pulumi Cloud encrypts by itself."""
        backend = os.environ.get(_BACKEND, "")
        given = settings.get("secretsprovider") or any(os.environ.get(name) for name in _PASSPHRASES)
        if is_shared(self._target.state) and not backend.startswith(("http:", "https:")) and not given:
            raise UserError(
                f"{_BACKEND} is set, but nothing that encrypts the secrets there. Give the passphrase of the stack in "
                f"{' or '.join(_PASSPHRASES)}, or name a key in {project.stack_file(self._target).name}: "
                "`secretsprovider: awskms://...`."
            )

    def _run(self, command: str, work: Callable[[automation.Stack, dict[str, Any]], object]) -> Result:
        display = Display(self._say, preview=command == "preview")
        lock = self._folder / "lock"
        seconds = self._target.lock_timeout_seconds
        with locks.held(lock, f"{command} of {self._target.stack}", wait_seconds=seconds, say=self._say):
            restore_checkpoint(self._target, self._say)
            stack = self._stack()
            try:
                refuse_while_locked(stack, self._target, self._say)
                if is_shared(self._target.state) and command != "refresh":
                    refuse_while_pending(stack, self._target)
                else:
                    recover(stack, self._target, display.say)
                work(stack, {"config_file": str(self._config), "color": "never", "on_event": Events(display)})
            except CommandError as error:
                if locked := lock_of_another(str(error), self._target.stack):
                    display.failures.clear()
                    display.fail("", locked)
                elif not display.failures:
                    display.fail("", _gist(error))
        display.summary()
        result = Result(changes=display.changes(), messages=display.messages(), seconds=display.seconds)
        if display.failures:
            raise DeployError(failed(command, display.failures), failures=display.failures, result=result)
        return result


def _gist(error: CommandError) -> str:
    """Return the error messages of the CLI itself."""
    lines = [line.strip() for line in str(error).splitlines()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return "\n".join(errors) or str(error).strip()


def _resources(stack: automation.Stack) -> list[ResourceState]:
    deployment = stack.export_stack().deployment or {}
    return [
        ResourceState(
            urn=r["urn"],
            type=r["type"],
            name=r["urn"].rpartition("::")[2],
            id=r.get("id", ""),
            protect=bool(r.get("protect")) and not r.get("delete"),
            inputs=_hide(r.get("inputs", {})),
            outputs=_hide(r.get("outputs", {})),
        )
        for r in deployment.get("resources") or []
        if not is_default_provider(r["urn"])
    ]


def _hide(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return HIDDEN if SIGNATURE in value else {key: _hide(item) for key, item in value.items()}
    return [_hide(item) for item in value] if isinstance(value, list) else value


def is_installed() -> bool:
    """Return True if the CLI is on PATH."""
    return shutil.which("pulumi") is not None
