"""Small source trees, given by the texts of their files."""

from collections.abc import Mapping

from tools.affected.dependencies import Graph, graph_of, users_of
from tools.affected.python_facts import facts_of
from tools.affected.source_tree import SourceTree

IMPORT_ROOTS = (".", "images/health")


def made_graph(texts: Mapping[str, str]) -> Graph:
    facts = {
        file: facts_of(text, by_definition=file.endswith("conftest.py"))
        for file, text in texts.items()
        if file.endswith(".py")
    }
    return graph_of(SourceTree(texts, IMPORT_ROOTS), facts)


def users(changed: str, texts: Mapping[str, str]) -> set[str]:
    """Return the other files that use a changed one, whose text is empty if none is given."""
    return users_of(made_graph({changed: "", **texts}), changed) - {changed}
