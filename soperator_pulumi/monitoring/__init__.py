"""Alert rules, recorded series and dashboards of a cluster, as pure functions: text for Prometheus and Grafana."""
