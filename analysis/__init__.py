"""What a token costs on hardware that you own: derivations, model, evidence and charts of the report.

The floors, lowest first: `units`, `symbols` and `inputs`; `symbolic` and `reference`; `model` and `present`;
`evidence`; `publish`; `cli`. A module imports from lower floors and from its own folder.
"""
