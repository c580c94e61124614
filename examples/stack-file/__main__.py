"""The clusters that the stack's file describes.

Describe your cluster in `Pulumi.dev.yaml`, then run:

    python3 -m venv venv && venv/bin/pip install -r requirements.txt
    venv/bin/soperator preflight Pulumi.dev.yaml
    venv/bin/soperator up --stack dev
"""

from soperator_pulumi.stack import program

program.run()
