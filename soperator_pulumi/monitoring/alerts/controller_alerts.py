"""Alerts about Slurm's daemons, their pods and their volumes."""

from datetime import timedelta

from soperator_pulumi.monitoring.prometheus_rules import Alert, AlertSeverity

_VOLUME = "kubelet_volume_stats_{}{{$here}}"
_USED = f"1 - {_VOLUME.format('available_bytes')} / {_VOLUME.format('capacity_bytes')}"
_INODES = f"{_VOLUME.format('inodes_used')} / {_VOLUME.format('inodes')}"

CONTROLLER_ALERTS = (
    Alert(
        "SlurmMetricsMissing",
        "absent(slurm_up{$here})",
        timedelta(minutes=10),
        AlertSeverity.CRITICAL,
        "No metrics of the Slurm cluster",
        "Prometheus has had no metrics of the cluster for 10 minutes: no other alert of the cluster fires either.",
    ),
    Alert(
        "SlurmControllerDown",
        "max by (namespace) (slurm_up{$here}) == 0",
        timedelta(minutes=3),
        AlertSeverity.CRITICAL,
        "slurmctld does not answer",
        "No job is started and none can be submitted. Running jobs continue for now.",
    ),
    Alert(
        "SlurmMetricsStale",
        "time() - max by (namespace, source) (slurm_exporter_last_success_time_seconds{$here}) > 600 and "
        "on (namespace) max by (namespace) (slurm_up{$here}) == 1",
        timedelta(minutes=5),
        AlertSeverity.WARNING,
        "The metrics of {{ $labels.source }} are old",
        "slurmctld answers, but this part of its metrics has not been updated for {{ $value | humanizeDuration }}, "
        "over 10 minutes.",
    ),
    Alert(
        "SlurmPodNotReady",
        'max by (namespace, pod) (kube_pod_status_ready{$here,condition="false"} and on (namespace, pod) '
        'kube_pod_owner{$here,owner_kind="StatefulSet"} unless on (namespace, pod) '
        'label_replace(slurm_node_cpus{$here}, "pod", "$1", "node", "(.+)")) == 1',
        timedelta(minutes=10),
        AlertSeverity.CRITICAL,
        "The pod {{ $labels.pod }} is not ready",
        "A daemon that the whole cluster needs has been out of service for 10 minutes.",
    ),
    Alert(
        "SlurmPodRestarts",
        "sum by (namespace, pod, container) (increase(kube_pod_container_status_restarts_total{$here}[1h])) > 3",
        timedelta(0),
        AlertSeverity.WARNING,
        "{{ $labels.container }} of {{ $labels.pod }} restarts again and again",
        'The container has restarted {{ $value | printf "%.0f" }} times in an hour, more than 3.',
    ),
    Alert(
        "SlurmControllerBusy",
        "max by (namespace) (slurm_server_thread_cnt{$here}) > 200",
        timedelta(minutes=5),
        AlertSeverity.WARNING,
        "slurmctld is busy with {{ $value }} requests at a time",
        "slurmctld serves 256 requests at a time. Commands hang, and nodes may count as not responding.",
    ),
    Alert(
        "SlurmAgentQueueGrows",
        "max by (namespace) (slurm_agent_queue_size{$here}) > 1000",
        timedelta(minutes=10),
        AlertSeverity.WARNING,
        "{{ $value }} messages of slurmctld wait for nodes",
        "slurmctld cannot send its messages to nodes as fast as it creates them: jobs start and end late.",
    ),
    Alert(
        "SlurmAccountingBehind",
        "max by (namespace) (slurm_slurmdbd_queue_size{$here}) > 1000",
        timedelta(minutes=10),
        AlertSeverity.WARNING,
        "{{ $value }} records wait for the accounting database",
        "slurmdbd or its database does not accept the records of jobs. slurmctld keeps up to MaxDBDMsgs of them.",
    ),
    Alert(
        "SlurmVolumeFills",
        f"max by (namespace, persistentvolumeclaim) ({_USED}) > 0.9",
        timedelta(minutes=15),
        AlertSeverity.WARNING,
        "The volume {{ $labels.persistentvolumeclaim }} is {{ $value | humanizePercentage }} full",
        "Above 90 %. On a full jail jobs and sessions fail; on a full state volume slurmctld ends.",
    ),
    Alert(
        "SlurmVolumeFull",
        f"max by (namespace, persistentvolumeclaim) ({_USED}) > 0.98",
        timedelta(minutes=5),
        AlertSeverity.CRITICAL,
        "The volume {{ $labels.persistentvolumeclaim }} is full",
        "Above 98 %. On a full jail jobs and sessions fail; on a full state volume slurmctld ends.",
    ),
    Alert(
        "SlurmVolumeInodes",
        f"max by (namespace, persistentvolumeclaim) ({_INODES}) > 0.9",
        timedelta(minutes=15),
        AlertSeverity.WARNING,
        "The volume {{ $labels.persistentvolumeclaim }} has few inodes left",
        "{{ $value | humanizePercentage }} of the inodes are in use. With none left, no file can be created.",
    ),
    Alert(
        "SlurmRestCertificateEnds",
        "min by (namespace) (min_over_time(slurm_rest_certificate_end_time_seconds{$here}[15m])) - time() < 1209600",
        timedelta(hours=1),
        AlertSeverity.WARNING,
        "The certificate of the REST API {{ if gt $value 0.0 }}ends in {{ $value | humanizeDuration }}{{ else }}"
        'ended {{ $value | humanizeDuration | reReplaceAll "^-" "" }} ago{{ end }}',
        "Less than 14 days are left, or none. From its end on, clients refuse the connection.",
    ),
    Alert(
        "SlurmCronJobFails",
        "max by (namespace, cronjob) (kube_cronjob_status_last_schedule_time{$here} - "
        "(kube_cronjob_status_last_successful_time{$here} or kube_cronjob_created{$here})) > 129600",
        timedelta(hours=1),
        AlertSeverity.WARNING,
        "{{ $labels.cronjob }} has not succeeded for {{ $value | humanizeDuration }}",
        "No run has succeeded in the 36 hours before the latest one: dumps or long checks are missing.",
    ),
)
"""Alerts about daemons, pods and volumes."""
