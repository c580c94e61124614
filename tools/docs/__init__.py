"""Writers of pages and modules that are made of the sources: each has its `FILE` and its `text()`."""
