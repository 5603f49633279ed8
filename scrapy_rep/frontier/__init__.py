"""When a request may start: one queue for each origin, the pace of hosts, and who may fetch."""
