"""A policy pack of one's own.

    python3 -m venv venv && venv/bin/pip install -r requirements.txt

Then, in the folder of a program: `pulumi preview --policy-pack <this folder>`.
"""

from acme import POLICIES_OF_ACME
from soperator_pulumi.policy.pack import serve

serve("acme", POLICIES_OF_ACME)
