"""Simulated serving: many requests on replicas that batch pass by pass."""

from analysis.model.simulation.records import Requests, Server, Traffic
from analysis.model.simulation.serving import METRICS, Estimate, Run, Runs, serve, serve_runs

__all__ = ["METRICS", "Estimate", "Requests", "Run", "Runs", "Server", "Traffic", "serve", "serve_runs"]
