"""`make docs`: writes all pages and modules that are generated from the sources."""

from tools.docs import (
    configuration_page,
    health_faults,
    health_page,
    hooks_page,
    long_page,
    monitoring_page,
    policies_page,
    stack_schema,
    storage_page,
    typed_args,
    xid_table,
)

_WRITTEN = (
    xid_table,
    typed_args,
    configuration_page,
    stack_schema,
    health_page,
    health_faults,
    hooks_page,
    long_page,
    monitoring_page,
    policies_page,
    storage_page,
)

for written in _WRITTEN:
    written.FILE.write_text(written.text())
