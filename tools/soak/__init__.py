"""`make soak`: all tests with full counts, in parts of at most 20 minutes, and a record of passed parts."""
