"""`make site`: the pages and the Python API as a site, from Markdown and docstrings."""
