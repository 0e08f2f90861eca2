"""Charts of the answer that cannot wait, as data: what stands in a cell, what is left empty, what survives JSON."""

import json

import pandas as pd
import pytest

from analysis.present import theme, wait_charts


def test_infeasible_is_strokes_and_never_a_number():
    found = wait_charts.counted(pd.Series([1.0, 9.0, 10.0, float("nan")]))
    assert found["text"].tolist() == ["1", "9", "10", wait_charts.NEVER]
    assert found["class"].tolist() == ["one node", "2 to 9", "10 or more", wait_charts.INFEASIBLE]
    assert not any(character.isdigit() for character in wait_charts.NEVER)


@pytest.mark.parametrize("classes", [wait_charts.COUNTED, wait_charts.COMPARED, wait_charts.MISSED, wait_charts.KEPT])
def test_a_board_keeps_its_rows_in_order_and_shades_only_what_is_there(classes):
    first = next(iter(classes))
    cells = pd.DataFrame(
        {
            "name": ["b", "a"],
            "x": ["10", "10"],
            "text": ["3", "╱╱╱"],
            "class": [first, wait_charts.INFEASIBLE],
        }
    )
    spec = json.loads(json.dumps(wait_charts.board(cells, x_title="Rate", classes=classes).to_dict()))
    encoding = spec["layer"][0]["encoding"]
    assert encoding["y"]["sort"] == ["b", "a"]
    assert encoding["color"]["scale"]["domain"] == [first, wait_charts.INFEASIBLE]
    assert encoding["color"]["scale"]["range"][-1] == theme.PAPER.colour


def test_every_shade_has_a_twin_on_a_dark_page():
    twins = theme.dark_twins()
    for shades in (
        wait_charts.COUNTED,
        wait_charts.COMPARED,
        wait_charts.MISSED,
        wait_charts.KEPT,
        wait_charts.SHARES,
    ):
        assert {mark.colour for mark in shades.values()} <= set(twins)


def test_shares_lie_end_to_end_and_the_product_is_written():
    rows = pd.DataFrame(
        [
            {"name": "a", "part": "day", "left": 0.5, "right": 1.0, "share": 0.5},
            {"name": "a", "part": "budget", "left": 0.05, "right": 0.5, "share": 0.1},
        ]
    )
    spec = wait_charts.falls(rows).to_dict()
    written = spec["datasets"][spec["layer"][1]["data"]["name"]]
    assert [row["left"] for row in written] == [0.05]
    assert spec["layer"][0]["encoding"]["x"]["scale"]["domain"][1] == 1.0


def test_seconds_show_the_budget_and_a_shape_for_each_set():
    rows = pd.DataFrame({"name": ["a", "a"], "seconds": [0.5, 2.0], "kind": ["own"] * 2, "set": ["8 bit", "16 bit"]})
    spec = wait_charts.seconds(rows, x_title="s", marks={"own": theme.OWNED}, budget_s=1.0, number=True).to_dict()
    assert len(spec["layer"]) == 4
    shapes = spec["layer"][2]["encoding"]["shape"]["scale"]
    assert shapes == {"domain": ["8 bit", "16 bit"], "range": ["circle", "square"]}
