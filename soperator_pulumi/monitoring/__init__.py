"""Alert rules, recorded series and dashboards of a cluster, as text for Prometheus and Grafana."""
