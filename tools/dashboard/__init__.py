"""`make dashboard`: the dashboards as one page of HTML, for a person without Grafana."""
