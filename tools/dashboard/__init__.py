"""`make dashboard`: the dashboards as one HTML page, for users without Grafana."""
