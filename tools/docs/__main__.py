"""`make docs`: writes all pages and modules that are made of the sources."""

from tools.docs import api_page, configuration_page, policies_page, stack_schema, typed_args

for written in (typed_args, configuration_page, stack_schema, policies_page, api_page):
    written.FILE.write_text(written.text())
