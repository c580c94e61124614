"""`make soak`: all tests in full numbers, in parts of at most 20 minutes, and a record of which part passed where."""
