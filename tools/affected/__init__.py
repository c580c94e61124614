"""Selection of the tests that a change can break: `make affected`."""
