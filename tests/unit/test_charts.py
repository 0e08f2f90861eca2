"""Charts as data: a chart builds, survives a round trip, and holds the rows that it was given."""

import json

import pandas as pd

from analysis.present import charts, theme

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


def encoded(chart, channel):
    """Fields that layers of a chart put on one channel, layers within layers included."""

    def walk(part):
        if isinstance(part, dict):
            field = part.get("encoding", {}).get(channel, {}).get("field")
            yield from ([field] if field else [])
            for inner in part.get("layer", []):
                yield from walk(inner)

    return set(walk(chart.to_dict()))


def test_cells_say_two_digits_and_what_does_not_fit():
    frame = pd.DataFrame({"ratio": [0.0123, 0.156, 2.04, 9.96, 46.2], "fits": [True] * 4 + [False]})
    made = charts.cells(frame, "ratio", bounds=[1, 10], classes=["a", "b", "c"], outside="no")
    assert made["text"].tolist() == ["0.01", "0.16", "2.0", "10", "–"]
    assert made["class"].tolist() == ["a", "a", "b", "b", "no"]


def test_a_map_leaves_what_cannot_be_on_paper():
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 3], "text": ["7", "–"], "class": ["low", "no"]})
    chart = charts.grid_map(frame, x="a", y="b", x_title="A", y_title="B", classes=["low", "high"], outside="no")
    scale = chart.to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True))["no"] == theme.PAPER.colour
    assert frame.to_dict("records") == rows(chart)


def test_named_lines_name_each_line_once_and_draw_measured_points():
    frame = pd.DataFrame({"batch": [1, 2, 1, 4], "gain": [1.0, 1.9, 1.0, 3.0], "name": ["a", "a", "b", "b"]})
    points = frame.assign(set="fitted", source="s")
    chart = charts.named_lines(
        frame,
        x="batch",
        y="gain",
        x_title="Batch",
        y_title="Gain",
        x_ticks=[1, 2, 4],
        marks=[theme.AUTOREGRESSIVE, theme.SPARSE],
        points=points,
        rule=("level", 2.0),
    )
    held = rows(chart)
    assert [row for row in held if row.get("source") == "s"] == points.to_dict("records")
    assert {"gain": 2.0, "word": "level"} in held
    assert encoded(chart, "shape") == {"set"}


def test_ratios_keep_their_order_and_leave_out_what_is_not_predicted():
    frame = pd.DataFrame({"name": ["b", "a"], "measured": [12.0, 60.0], "predicted": [13.0, float("nan")]})
    frame = frame.assign(set=["fitted", "no prediction"], source="s")
    chart = charts.ratios(frame, title="Ratio", low=10, high=30, word="article")
    assert {"measured": 10, "until": 30, "word": "article"} in rows(chart)
    assert chart.to_dict()["layer"][3]["encoding"]["y"]["sort"] == ["b", "a"]
    assert [row["predicted"] for row in rows(chart) if "predicted" in row] == [13.0, None]


def test_trade_writes_every_measured_batch():
    frame = pd.DataFrame({"stream_tok_per_s": [50.0, 40.0], "node_tok_per_s": [50.0, 80.0], "batch": [1, 2]})
    chart = charts.trade(frame.assign(name="a"), frame.assign(name="a", set="fitted", source="s"))
    assert {row["text"] for row in rows(chart) if "text" in row} == {"1", "2"}


def test_parts_stand_one_after_the_other():
    frame = pd.DataFrame({"name": "a", "part": ["communication", "computing"], "size": [2.0, 3.0], "text": ["2", "3"]})
    held = {row["part"]: (row["start"], row["end"]) for row in rows(charts.parts(frame, name_title="N", x_title="ms"))}
    assert held == {"computing": (0, 3), "communication": (3, 5)}


def test_agreement_holds_its_points_and_the_band():
    point = {"measured": 10.0, "predicted": 11.0, "name": "a", "set": "fitted", "source": "s", "group": "g"}
    held = rows(charts.agreement(pd.DataFrame([point]), unit="ms", within=0.25))
    assert point in held
    band = next(row for row in held if "least" in row)
    assert band["least"] == 0.75 * band["measured"]
