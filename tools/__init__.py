"""Tools of a developer's machine: build, start, deploy. None of it is in the package."""
