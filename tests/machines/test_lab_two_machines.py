"""Kubernetes on two machines of the lab, of which one loses its power and joins again."""

import re

import pytest

from tools.lab.script_machine import run_script
from tools.lab.slurm_machine import MEMORY_MIB, PROCESSORS, several

pytestmark = [pytest.mark.soak, pytest.mark.alone, pytest.mark.timeout(1800)]

TRIAL = """
eval "$(.venv/bin/python -m tools.kube env)"
touch "$XDG_STATE_HOME/soperator-pulumi/kube/volumes/from-n1"
sed "s|VOLUMES|$XDG_STATE_HOME/soperator-pulumi/kube/volumes|" > /run/pod.yaml <<'END'
apiVersion: v1
kind: Pod
metadata: {name: on-n2}
spec:
  nodeName: n2
  automountServiceAccountToken: false
  containers:
    - name: pause
      image: localhost/soperator/pause:1
      imagePullPolicy: Never
      volumeMounts: [{name: file, mountPath: /file}]
  volumes: [{name: file, hostPath: {path: VOLUMES/from-n1, type: File}}]
END
kubectl apply -f /run/pod.yaml
kubectl wait pod/on-n2 --for=condition=Ready --timeout=300s
kubectl get node n2 -o 'jsonpath=boot {.status.nodeInfo.bootID}{"\\n"}'
lab-machine 2 off
kubectl wait node/n2 --for=condition=Ready=Unknown --timeout=300s
lab-machine 2 on
kubectl wait node/n2 --for=condition=Ready --timeout=900s
kubectl get node n2 -o 'jsonpath=boot {.status.nodeInfo.bootID}{"\\n"}'
"""
"""The pod starts only if n2 has its file, which n1 has written to a volume."""


def test_a_machine_that_loses_its_power_is_missed_and_joins_again_by_itself() -> None:
    preparation, further = several(2)
    printed = run_script(
        preparation + TRIAL,
        memory_mib=MEMORY_MIB,
        processors=PROCESSORS,
        writable=True,
        timeout_seconds=1500,
        further=further,
    )
    before, after = re.findall(r"^boot (\S+)$", printed, re.MULTILINE)
    assert before != after
