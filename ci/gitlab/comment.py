"""Puts a page into a note of the merge request, in place of the note with the same first line: `comment.py FILE`.

Needs the predefined variables of a merge request's job, and `GITLAB_TOKEN`, a project access token (scope `api`).
"""

import json
import os
import sys
import urllib.request
from pathlib import Path
from typing import Any

_TIMEOUT_SECONDS = 30


def main() -> None:
    """Write the note."""
    page = Path(sys.argv[1]).read_text(encoding="utf-8")
    if not page.strip():
        sys.exit("There is no page: the preview has ended before it. Read the job's log.")
    mark = page.partition("\n")[0]
    former = next((note["id"] for note in _notes() if note["body"].startswith(mark)), None)
    if former is None:
        _ask("POST", "", {"body": page})
    else:
        _ask("PUT", f"/{former}", {"body": page})


def _notes() -> list[dict[str, Any]]:
    """Return all notes of the merge request."""
    found: list[dict[str, Any]] = []
    number = 1
    while notes := _ask("GET", f"?per_page=100&page={number}"):
        found += notes
        number += 1
    return found


def _ask(method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
    project = f"{os.environ['CI_API_V4_URL']}/projects/{os.environ['CI_PROJECT_ID']}"
    request = urllib.request.Request(  # noqa: S310 - the address is GitLab's own
        f"{project}/merge_requests/{os.environ['CI_MERGE_REQUEST_IID']}/notes{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"PRIVATE-TOKEN": os.environ["GITLAB_TOKEN"], "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310
        return json.load(answer)


if __name__ == "__main__":
    main()
