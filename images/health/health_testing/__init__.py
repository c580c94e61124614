"""Made outputs of tools, for tests of the quick checks."""
