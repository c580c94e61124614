"""Generated secrets of a cluster in all that an engine prints and keeps, whatever the language of the program."""

import base64
import json
import os
import re
import shlex
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.cluster.languages import OF_THE_CLI, Language, ProgramInLanguages
from tests.cluster.slurm import SMALL, a_cluster, a_node_set, bring_images, unique
from tests.conftest import Kubernetes
from tests.engine import plugin_folder
from tools.engine.cli.automation import is_installed

pytestmark = [pytest.mark.engine, pytest.mark.soak, pytest.mark.timeout(2400)]

GENERATED = {"munge-key", "ssh-host-key", "jwt-key", "database-password", "slurmdbd-config"}
"""Secrets of Kubernetes with what a cluster generates."""

VERBOSE = ("--verbose=8", "--logflow", "--logtostderr")
"""Options with which the CLI, its plugins and the program log what they do.

From 9 on, the CLI logs every property in plain text, secrets too, whatever the program (`docs/state.md`).
"""

_GZIP = b"\x1f\x8b"
_RANDOM = re.compile(r"[A-Za-z0-9]{24,}")


def forms_of(word: str) -> Iterator[str]:
    """Yield letters and digits as they stand in a text, in hex, and in base64 of a text with them at any place.

    JSON and URLs leave letters and digits as they are.
    """
    yield word
    yield word.encode().hex()
    for before, shared in ((0, 0), (1, 2), (2, 3)):
        known = (before + len(word)) * 8 // 6  # the last character may be shared with what follows
        yield base64.b64encode(b" " * before + word.encode()).decode()[shared:known]


@dataclass
class Shown:
    """Texts that a person or a file may have, and secrets that none of them may hold."""

    texts: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, set[str]] = field(default_factory=dict)

    def add_files(self, folder: Path) -> None:
        """Add the files in a folder. The CLI compresses its logs."""
        for file in filter(Path.is_file, folder.rglob("*")):
            content = file.read_bytes()
            if content.startswith(_GZIP):
                content = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(content)
            self.texts[str(file)] = content.decode(errors="replace")

    def add_secrets(self, name: str, *values: str) -> None:
        """Add what is random in these values, plain and encoded."""
        for value in values:
            encoded = _RANDOM.findall(base64.b64encode(value.encode()).decode())
            forms = [form for word in _RANDOM.findall(value) for form in forms_of(word)]
            self.secrets.setdefault(name, set()).update(encoded, forms)

    def add_secrets_of(self, program: ProgramInLanguages) -> None:
        """Add the Secrets of a cluster."""
        for secret in program.api.list_namespaced_secret(program.namespace).items:
            values = [base64.b64decode(value).decode() for value in (secret.data or {}).values()]
            self.add_secrets(secret.metadata.name, *values)

    def leaks(self, text: str) -> set[str]:
        """Return the names of the secrets in a text."""
        return {name for name, words in self.secrets.items() if any(word in text for word in words)}

    def all_leaks(self) -> dict[str, set[str]]:
        """Return the names of the secrets in each text that has one."""
        return {name: found for name, text in self.texts.items() if (found := self.leaks(text))}


@dataclass
class Cli:
    """The CLI in the hands of a person, with a backend and a home of its own."""

    program: ProgramInLanguages
    shown: Shown

    def __call__(self, *words: str, stdin: str = "") -> str:
        """Run a command, keep what it prints, and return its standard output."""
        output = self.hidden(*words, stdin=stdin)
        self.shown.texts[f"{len(self.shown.texts)} {shlex.join(words)}"] = output
        return output

    def hidden(self, *words: str, stdin: str = "") -> str:
        """Run a command, and return what it prints."""
        done = subprocess.run(
            ["pulumi", *words], cwd=self.program.written(), env=self._variables, input=stdin, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=1500, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{shlex.join(words)} gave {done.returncode}:\n{done.stdout}"
        return done.stdout

    @property
    def files(self) -> Path:
        """Folder of all that the commands write."""
        return self.program.folder / "files"

    @property
    def _variables(self) -> Mapping[str, str]:
        backend, home = self.files / "backend", self.files / "home"
        backend.mkdir(parents=True, exist_ok=True)
        inherited = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
        return {
            **inherited,
            **plugin_folder.ENVIRONMENT,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PULUMI_BACKEND_URL": f"file://{backend}",
            "PULUMI_DEBUG_COMMANDS": "true",  # for --event-log, which the Automation API uses
            "PULUMI_CONFIG_PASSPHRASE": "of a person",
            "PULUMI_HOME": str(home),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_STACK": "test",
        }

    def look(self) -> None:
        """Ask for all that is recorded of the stack."""
        self("stack", "--show-ids", "--show-urns", "--show-name")
        self("stack", "output", "--json")
        self("stack", "export")
        self("stack", "history", "--full-dates")
        self("stack", "history", "--json")
        self("stack", "graph", str(self.files / "graph.dot"))
        self("config", "--json")


@pytest.fixture
def new_program(kubernetes: Kubernetes, tmp_path: Path) -> Iterator[Callable[[Language], ProgramInLanguages]]:
    """Make programs with a cluster that has a secret of every kind."""
    bring_images(kubernetes)
    made: list[ProgramInLanguages] = []

    def make(language: Language) -> ProgramInLanguages:
        own = {"pod_resources": SMALL, "storage": {"size_gib": 1, "protect": False}}
        cluster = a_cluster(
            name=unique("shown"),
            node_sets=[a_node_set("cpu")],
            accounting={"database": {"own": own}, "slurmdbd": {"pod_resources": SMALL}},
            rest={"pod_resources": SMALL},
        )
        made.append(ProgramInLanguages(kubernetes, tmp_path, cluster, language=language))
        return made[-1]

    yield make
    for program in made:
        program.destroy()


def change_by_hand(program: ProgramInLanguages, shown: Shown) -> None:
    """Add a key to a Secret, as a person would behind Pulumi's back."""
    value = "MadeByHandAndAsSecretAsTheKeyBesideIt"
    shown.add_secrets("made by hand", value)
    encoded = base64.b64encode(value.encode()).decode()
    program.api.patch_namespaced_secret("munge-key", program.namespace, {"data": {"by-hand": encoded}})


def ask_for_other_secrets(program: ProgramInLanguages) -> None:
    """Count up the versions of all generated secrets."""
    program.cluster["secrets"] = {"munge_key_version": 2, "ssh_host_key_version": 2}
    program.cluster["rest"]["key_version"] = 2
    program.cluster["accounting"]["database"]["own"]["password_version"] = 2


@pytest.mark.skipif(not is_installed(), reason="pulumi is not on PATH")
@pytest.mark.parametrize("language", OF_THE_CLI)
def test_the_cli_prints_and_keeps_no_secret(
    new_program: Callable[[Language], ProgramInLanguages], language: Language
) -> None:
    program, shown = new_program(language), Shown()
    cli = Cli(program, shown)
    kubeconfig = program.kubernetes.kubeconfig.read_text()
    for user in yaml.safe_load(kubeconfig)["users"]:
        credential = user["user"].get("client-key-data")
        shown.add_secrets("kubeconfig", *([base64.b64decode(credential).decode()] if credential else []))

    cli("stack", "init", "test")
    cli("config", "set", "--secret", "kubernetes:kubeconfig", stdin=kubeconfig)
    cli("up", "--yes", "--diff", "--event-log", str(cli.files / "created.json"))
    shown.add_secrets_of(program)
    assert {*shown.secrets} >= GENERATED
    cli.look()
    assert shown.leaks(cli.hidden("stack", "export", "--show-secrets")) >= GENERATED, "this search would find them"

    change_by_hand(program, shown)
    cli("refresh", "--yes", "--diff")
    shown.add_files(cli.files / "backend")

    ask_for_other_secrets(program)
    cli("preview", "--json")
    cli("preview", "--diff", "--show-reads", "--show-sames", "--save-plan", str(cli.files / "plan.json"))
    cli("up", "--yes", "--diff", "--event-log", str(cli.files / "updated.json"), *VERBOSE)
    shown.add_secrets_of(program)
    cli.look()

    cli("preview", "--diff", *VERBOSE)
    cli("destroy", "--preview-only", "--diff")
    cli("destroy", "--yes", "--diff")
    cli("stack", "history", "--json")
    shown.add_files(cli.files)
    assert any("slurmctld" in text for text in shown.texts.values()), "this search reads what is printed"
    assert shown.all_leaks() == {}


@pytest.mark.parametrize("language", [Language.PYTHON, Language.REMOTE])
def test_the_local_engine_prints_and_keeps_no_secret(
    new_program: Callable[[Language], ProgramInLanguages], language: Language, capsys: pytest.CaptureFixture[str]
) -> None:
    program, shown = new_program(language), Shown()
    program.deployer().preview()
    program.deployer().up()
    shown.add_secrets_of(program)
    assert {*shown.secrets} >= GENERATED
    change_by_hand(program, shown)
    program.deployer().preview(refresh=True)
    program.deployer().refresh()
    state = program.folder / "engine"
    shown.add_files(state)

    ask_for_other_secrets(program)
    program.deployer().preview()
    program.deployer().up()
    shown.add_secrets_of(program)
    shown.texts["resources"] = repr(program.deployer().state())
    shown.texts["outputs"] = json.dumps(program.deployer().outputs())
    shown.add_files(state)
    program.deployer().destroy()
    shown.add_files(state)
    shown.texts["output"] = "".join(capsys.readouterr())
    assert "slurmdbd-config/slurmdbd.conf: StoragePass changed" in shown.texts["output"]
    assert shown.all_leaks() == {}
