"""Charts as data: a chart builds, survives a round trip, and holds the rows that it was given."""

import json

import pandas as pd

from analysis.present import charts

ROOF = pd.DataFrame({"intensity_flop_per_byte": [1.0, 10.0, 100.0], "performance": [1.0, 10.0, 20.0]})


def rows(chart):
    """Rows of every dataset of a chart that survived a round trip through JSON."""
    spec = json.loads(chart.to_json())
    return [row for data in spec["datasets"].values() for row in data]


def test_roofline_holds_its_points_and_both_regions():
    points = ROOF.assign(label=["a", "b", "c"])
    held = rows(charts.roofline(ROOF, points, ridge_flop_per_byte=20, unit="TFLOP/s"))
    assert [row["label"] for row in held if "label" in row][:3] == ["a", "b", "c"]
    regions = {row["region"]: (row["intensity_flop_per_byte"], row["until"]) for row in held if "region" in row}
    assert regions == {"memory-bound": (1, 20), "compute-bound": (20, 100)}


def test_ridges_keep_the_order_and_the_band():
    frame = pd.DataFrame({"accelerator": ["b", "a"], "width": "8 bit", "number_format": "fp8"})
    frame = frame.assign(ridge_flop_per_byte=[74.0, 300.0], outside=[True, False], assumed=False)
    chart = charts.ridges(frame, low=100, high=999)
    assert {"ridge_flop_per_byte": 100, "until": 999, "word": "hundreds"} in rows(chart)
    assert chart.to_dict()["layer"][2]["encoding"]["y"]["sort"] == ["b", "a"]


def test_time_of_batch_draws_both_columns():
    frame = pd.DataFrame({"batch": [1, 8], "ms_per_item": [9.0, 4.0], "least_ms_per_item": [8.0, 1.0]})
    chart = charts.time_of_batch(frame)
    fields = {layer.get("encoding", {}).get("y", {}).get("field") for layer in chart.to_dict()["layer"]}
    assert {"ms_per_item", "least_ms_per_item"} <= fields
    assert frame.to_dict("records")[0] in rows(chart)
