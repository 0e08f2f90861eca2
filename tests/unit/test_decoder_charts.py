"""Charts of the chapters on decoders as data: they build, hold their rows, and keep order, hue and shape."""

import json

import pandas as pd

from analysis.present import decoder_charts, theme

ROWS = pd.DataFrame(
    {
        "name": ["b", "a"],
        "measured": [2.0, 1.5],
        "predicted": [2.2, 1.4],
        "kind": ["speculative", "diffusion"],
        "set": ["fitted", "judged only"],
        "source": "s",
    }
)
SPAN = pd.DataFrame(
    {
        "name": ["b", "a"],
        "low": [1.1, 2.0],
        "median": [1.5, 3.0],
        "high": [2.0, 6.5],
        "settings": [3, 4],
        "group": ["serving engine", "research loop"],
        "source": "s",
    }
)
MARKS = {"speculative": theme.SPECULATIVE, "diffusion": theme.DIFFUSION}


def rows(chart):
    spec = json.loads(chart.to_json())
    return [row for data in spec["datasets"].values() for row in data]


def test_measured_and_predicted_stand_in_the_order_given():
    chart = decoder_charts.beside(ROWS, x_title="Gain", marks=MARKS)
    assert all(row in rows(chart) for row in ROWS.to_dict("records"))
    stroke, tick, point = chart.to_dict()["layer"]
    assert stroke["encoding"]["y"]["sort"] == ["b", "a"]
    assert (stroke["encoding"]["x"]["field"], stroke["encoding"]["x2"]["field"]) == ("measured", "predicted")
    assert tick["encoding"]["x"]["field"] == "predicted"
    assert point["encoding"]["color"]["scale"]["range"] == [theme.SPECULATIVE.colour, theme.DIFFUSION.colour]
    assert point["encoding"]["shape"]["scale"]["range"] == ["square", "circle"]


def test_a_linear_axis_starts_at_zero_and_a_log_one_below_the_least():
    linear, log = (decoder_charts.beside(ROWS, x_title="x", marks=MARKS, log=log).to_dict() for log in (False, True))
    assert linear["layer"][0]["encoding"]["x"]["scale"]["domain"][0] == 0
    scale = log["layer"][0]["encoding"]["x"]["scale"]
    assert scale["type"] == "log"
    assert 0 < scale["domain"][0] < 1.4


def test_ranges_hold_the_band_and_tell_two_groups_apart_by_shape_too():
    chart = decoder_charts.ranges(SPAN, x_title="Gain", low=2, high=4, word="article")
    assert {"low": 2, "until": 4, "word": "article"} in rows(chart)
    point = chart.to_dict()["layer"][-1]["encoding"]
    assert point["shape"]["scale"]["range"] == ["square", "circle"]
    assert point["x"]["scale"]["domain"][1] > 6.5


def test_every_row_has_room():
    for chart, frame in ((decoder_charts.beside(ROWS, x_title="x", marks=MARKS), ROWS),):
        assert chart.to_dict()["height"] == decoder_charts.ROW * len(frame)
        assert chart.to_dict()["width"] == "container"
