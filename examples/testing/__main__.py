"""A program whose resources stand in a function, so that tests can call it: `venv/bin/python -m pytest`."""

from research import create_research

create_research()
