"""Simulated serving: many requests on replicas that batch pass by pass."""

from analysis.model.simulation.capacity import Capacity, capacity_by_simulation, largest_rate_req_per_s
from analysis.model.simulation.records import Requests, Server, Traffic
from analysis.model.simulation.serving import METRICS, Estimate, Run, Runs, serve, serve_runs

__all__ = [
    "METRICS",
    "Capacity",
    "Estimate",
    "Requests",
    "Run",
    "Runs",
    "Server",
    "Traffic",
    "capacity_by_simulation",
    "largest_rate_req_per_s",
    "serve",
    "serve_runs",
]
