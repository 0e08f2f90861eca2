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


POINT = dict.fromkeys(["id", "source", "model", "accelerator", "engine"], "a") | {"regime": "prefill, dense"}
POINTS = pd.DataFrame(
    [
        POINT | {"kind": "dense", "set": "fit", "measured_tok_per_s": 10.0, "predicted_tok_per_s": 11.0},
        POINT | {"kind": "sparse", "set": "validation", "measured_tok_per_s": 900.0, "predicted_tok_per_s": 700.0},
    ]
)


def test_predictions_are_hollow_where_they_were_fitted_and_lie_over_a_band():
    chart = charts.predicted_and_measured(POINTS, within=0.25)
    held = rows(chart)
    assert [row["predicted_tok_per_s"] for row in held if "predicted_tok_per_s" in row] == [11, 700]
    ends = [row for row in held if "below" in row]
    assert all(row["below"] == 0.75 * row["equal"] and row["above"] == 1.25 * row["equal"] for row in ends)
    hollow = chart.to_dict()["layer"][2]["encoding"]["fillOpacity"]
    assert hollow == {"condition": {"test": "datum.set == 'validation'", "value": 0.6}, "value": 0}


def test_misses_keep_the_order_of_the_regimes_and_draw_the_medians():
    frame = POINTS.assign(speed_ratio=[1.1, 0.8], place=0.5, regime=["b, dense", "a, moe"])
    chart = charts.misses(frame, frame[["regime", "speed_ratio"]], within=0.25)
    assert chart.to_dict()["layer"][2]["encoding"]["y"]["sort"] == ["b, dense", "a, moe"]
    assert {"speed_ratio": 0.75, "until": 1.25} in rows(chart)
    assert {"regime": "a, moe", "speed_ratio": 0.8} in rows(chart)


def test_step_parts_stand_in_the_order_of_the_theme_with_their_total():
    row = {"step": "fp8, batch 1", "step_ms": 8.0, "floor_ms": 2.6}
    frame = pd.DataFrame([row | {"part": "fixed", "part_ms": 5.0}, row | {"part": "weights", "part_ms": 3.0}])
    held = rows(charts.step_parts(frame))
    ranks = {row["part"]: row["rank"] for row in held if "part" in row}
    assert ranks["weights"] < ranks["fixed"]
    assert [row for row in held if "part" not in row] == [row]
