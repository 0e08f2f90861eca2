"""Charts of decoders as data: they build, survive a round trip, and hold the rows that they were given."""

import json

import pandas as pd

from analysis.present import rival_charts, theme


def rows(chart):
    """Rows of every dataset of a chart that survived a round trip through JSON."""
    spec = json.loads(chart.to_json())
    return [row for data in spec["datasets"].values() for row in data]


def test_a_map_of_winners_carries_letters_and_leaves_empty_what_does_not_fit():
    frame = pd.DataFrame(
        {
            "batch": [1, 8, 256],
            "input_tokens": 500,
            "winner": ["diffusion", "speculation", ""],
            "lead": [2.0, 1.23, float("nan")],
        }
    )
    chart = rival_charts.winner_map(frame, x="batch", y="input_tokens", x_title="Batch", y_title="Prompt")
    assert [row["text"] for row in rows(chart)] == ["D 100%", "S 23%", "–"]
    scale = chart.to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert scale["domain"] == ["S: speculation", "D: diffusion", rival_charts.NOT_HELD]
    assert scale["range"][1] == theme.WINNERS["diffusion"].colour


def test_shades_of_winners_have_dark_twins():
    assert {mark.colour for mark in theme.WINNERS.values()} <= set(theme.dark_twins())
    assert set(theme.WINNERS) == set(rival_charts.LETTERS)


def test_two_predictions_stand_beside_what_was_measured():
    frame = pd.DataFrame(
        [
            {"name": "a", "kind": "dense", "measured": 1.2, "evenly": 1.4, "skewed": 1.4, "source": "s"},
            {"name": "b", "kind": "sparse", "measured": 1.7, "evenly": 2.0, "skewed": 1.9, "source": "s"},
        ]
    )
    chart = rival_charts.predicted_two_ways(frame, title="Ratio")
    assert rows(chart) == frame.to_dict("records")
    assert chart.to_dict()["layer"][3]["encoding"]["shape"]["scale"]["range"] == ["circle", "diamond"]


def test_gains_shade_where_plain_decoding_is_faster():
    frame = pd.DataFrame({"batch": [1.0, 64.0], "gain": [3.0, 0.5], "name": "diffusion"})
    chart = rival_charts.gains(frame, marks={"diffusion": theme.DIFFUSION}, x_ticks=[1, 8, 64])
    held = rows(chart)
    assert {"batch": 1.0, "gain": 3.0, "name": "diffusion"} in held
    (shade,) = [row for row in held if "level" in row]
    assert shade["level"] == 1
    assert shade["gain"] < 0.5


def test_names_that_would_cover_each_other_move_apart():
    frame = pd.DataFrame({"batch": [1.0, 8.0] * 2, "gain": [1.6, 0.8, 1.61, 1.1], "name": ["a", "a", "b", "b"]})
    marks = {"a": theme.DIFFUSION, "b": theme.SPECULATIVE}
    spec = rival_charts.gains(frame, marks=marks, x_ticks=[1, 8]).to_dict()
    ends = [row for data in spec["datasets"].values() if len(data) == 2 for row in data if "name" in row]
    heights = {row["name"]: row["gain"] for row in ends}
    assert heights["a"] == 1.6
    assert heights["b"] > 1.65
