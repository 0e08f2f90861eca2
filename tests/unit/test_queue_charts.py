"""Charts of queues: they build, survive a round trip through JSON, and hold the rows they were handed."""

import json

import pandas as pd

from analysis.present import queue_charts

COUNTS = pd.DataFrame({"name": ["large", "small"], "count": [14, 2]})
PRICES = pd.DataFrame(
    {"name": ["own", "seller", "waiting"], "usd": [0.06, 1.2, 3.0], "whose": ["own node", "API", "API, batch"]}
)


def spec(chart):
    return json.loads(json.dumps(chart.to_dict()))


def test_bars_write_their_count_and_keep_the_order():
    drawn = spec(queue_charts.counts(COUNTS, x_title="Nodes", name_title="Model", rule=("one", 1.0)))
    bar = drawn["layer"][0]
    assert bar["mark"]["type"] == "bar"
    assert bar["encoding"]["y"]["sort"] == ["large", "small"]
    assert bar["encoding"]["x"]["title"] == "Nodes"
    assert [row["count"] for row in drawn["datasets"][bar["data"]["name"]]] == [14, 2]
    assert any(layer["mark"]["type"] == "rule" for layer in drawn["layer"] if "mark" in layer)


def test_without_a_level_there_is_no_rule():
    drawn = spec(queue_charts.counts(COUNTS, x_title="Nodes", name_title="Model"))
    assert not any(layer.get("mark", {}).get("type") == "rule" for layer in drawn["layer"])


def test_prices_stand_on_an_axis_by_ratio_and_differ_in_shape():
    drawn = spec(queue_charts.prices(PRICES, x_title="USD"))
    marks = next(layer for layer in drawn["layer"] if layer.get("mark", {}).get("type") == "point")
    assert marks["encoding"]["x"]["scale"]["type"] == "log"
    assert marks["encoding"]["shape"]["scale"]["domain"] == ["own node", "API", "API, batch"]
    assert len(set(marks["encoding"]["shape"]["scale"]["range"])) == 3
    low, high = marks["encoding"]["x"]["scale"]["domain"]
    assert low < 0.06 < 3.0 < high


def test_only_what_is_drawn_has_a_legend():
    drawn = spec(queue_charts.prices(PRICES.iloc[:2], x_title="USD"))
    marks = next(layer for layer in drawn["layer"] if layer.get("mark", {}).get("type") == "point")
    assert marks["encoding"]["shape"]["scale"]["domain"] == ["own node", "API"]
