"""Alert rules, recorded series and dashboards of a cluster: pure functions with text for Prometheus and Grafana."""
