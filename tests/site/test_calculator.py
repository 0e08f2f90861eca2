"""The calculator in a browser: what it shows is what NumPy computes, whatever is typed, and a link brings it back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser as look
import numpy as np
import pytest

from analysis.present import calculator, display
from analysis.publish.notebooks import BOOK

pytestmark = pytest.mark.browser

STATES = 80
PAGE = "book/calculator"
HOST = "#fig-calculator-chart"
#: Wait until the page has shown the numbers of the last change.
SET = """
async ([choices, typed]) => {
  const root = document.getElementById("calculator");
  const change = (selector, value, kind) => {
    const input = root.querySelector(selector);
    input.value = value;
    input.dispatchEvent(new Event(kind, { bubbles: true }));
  };
  for (const [name, option] of Object.entries(choices)) change(`[data-choice="${name}"]`, option, "change");
  for (const [name, [kind, value]] of Object.entries(typed)) change(`[data-${kind}="${name}"]`, value, "input");
  await new Promise((done) => setTimeout(done, 0));
  const view = document.querySelector("#fig-calculator-chart").view;
  await view.runAsync();
  await new Promise((done) => setTimeout(done, 0));
}
"""
READ = """
(names) => {
  const view = document.querySelector("#fig-calculator-chart").view;
  return [
    Object.fromEntries(names.map((name) => [name, view.signal(name)])),
    [...document.querySelectorAll("[data-cell]")].map((cell) => cell.textContent),
    document.querySelector(".calc-sentence").textContent,
  ];
}
"""
READY = "() => document.getElementById('calculator')?.dataset.done"


@pytest.fixture(scope="module")
def context(chromium: Any) -> Any:
    return chromium.new_context(viewport=look.DESK)


@pytest.fixture(scope="module")
def opened(context: Any, origin: str) -> Iterator[look.Visit]:
    visit = look.Visit(context, f"{origin}/{PAGE}.html", origin=origin)
    visit.page.wait_for_function(READY)
    visit.settle()
    yield visit
    visit.page.close()


@pytest.fixture
def visit(opened: look.Visit) -> look.Visit:
    """The page as it opens: one load for all tests, and a reset before each."""
    opened.page.click('[data-do="reset"]')
    opened.page.evaluate(SET, [{}, {}])
    opened.problems.clear()
    return opened


def stored() -> tuple[dict[str, Any], dict[str, Any]]:
    """The specification in the stored chapter, and what the page's script is handed."""
    notebook = json.loads((BOOK / "calculator.ipynb").read_text(encoding="utf-8"))
    (spec,) = (
        output["data"][display.VEGA_LITE]
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if "calculator" in output.get("data", {}).get(display.VEGA_LITE, {}).get("usermeta", {})
    )
    return spec, json.loads(spec["usermeta"]["calculator"])


def computed(typed: dict[str, float | None]) -> dict[str, Any]:
    """What NumPy makes of the numbers in the fields."""
    fields = {one.name: one for one in (*calculator.FIELDS, *calculator._CHOSEN)}
    return calculator.compute(
        {
            fields[name].symbol: None if value is None else value * float(fields[name].scale)
            for name, value in typed.items()
        }
    )


def test_numbers_are_those_of_numpy_at_random_states(visit: look.Visit) -> None:
    """One page, many states: choices, typed numbers and sliders; every line but those of a search to a billionth."""
    _, page = stored()
    draw = np.random.default_rng(20260721)
    sliders = {one.name: one for one in calculator.FIELDS if one.slider is not None}
    # once a search has converged, its ends are a matter of the last digit; what it found is not
    lines = [step.symbol.name for step in calculator.steps() if not re.search(r"_(top|now)\d+$", step.symbol.name)]
    fields = list(page["fields"])
    compared = 0
    answers = set()
    for _ in range(STATES):
        choices = {
            name: str(draw.choice([key for key, _ in choice["options"]])) for name, choice in page["choices"].items()
        }
        prompt = int(np.exp(draw.uniform(np.log(50), np.log(20_000))))
        typed = {
            "in_prompt": ("field", str(prompt)),
            "in_cached": ("field", str(int(draw.integers(0, prompt)))),
            "in_answer": ("field", str(int(draw.integers(1, 2000)))),
            "in_peak_req_per_s": ("field", f"{np.exp(draw.uniform(-2, 5)):.6g}"),
            "in_budget_s": ("field", f"{np.exp(draw.uniform(-1, 5)):.6g}"),
            "in_price": ("field", f"{draw.uniform(2, 100):.6g}"),
            "in_block": ("field", str(int(draw.integers(1, 256)))),
            "in_draft_length": ("field", str(int(draw.integers(1, 8)))),
        }
        for name, one in sliders.items():
            steps = int(draw.integers(1, int((min(one.high, 64) - one.low) / one.slider)))
            typed[name] = ("slider", f"{one.low + steps * one.slider:g}")
        visit.page.evaluate(SET, [choices, typed])
        got, cells, sentence = visit.page.evaluate(READ, [*fields, *lines])
        if visit.page.locator(".calc-problem").count():
            # words in the place of numbers: no NaN anywhere
            assert sentence.strip()
            assert set(cells) == {"–"}
            continue
        compared += 1
        for name, (_, value) in typed.items():
            assert got[name] == pytest.approx(float(value)), name
        expected = computed({name: got[name] for name in fields})
        for name in lines:
            assert got[name] == pytest.approx(float(expected[name]), rel=1e-9, abs=1e-300, nan_ok=True), name
        assert "NaN" not in sentence + "".join(cells)
        assert "undefined" not in sentence + "".join(cells)
        answers.add(int(got["choice"]))
    assert compared >= 50
    assert len(answers) >= 3
    assert visit.problems == []


def test_cells_show_the_numbers_to_three_digits(visit: look.Visit) -> None:
    spec, page = stored()
    typed = {param["name"]: param["value"] for param in spec["params"] if "value" in param}
    expected = computed(typed)
    _, cells, sentence = visit.page.evaluate(READ, ["choice"])
    width = len(calculator.OPTIONS)
    for row, (words, line, kind, _, _) in enumerate(calculator.ROWS):
        cell = cells[row * width]
        if kind in ("usd", "s", "per_s"):
            number = float(re.sub(r"[^\d.]", "", cell))
            assert number == pytest.approx(float(expected[f"{line}_ar"]), rel=5e-3), words
    assert re.search(r"\$[\d.]+ a request", sentence)
    assert page["start"]["in_prompt"] == 8000


def test_second_chart_follows_the_form(visit: look.Visit) -> None:
    """Where its mark stands is what the table says, and its line goes through the mark."""
    visit.page.evaluate(SET, [{"workload": "3"}, {}])
    names = ["metric_s_ar", "each_req_per_s_ar", "budget_s", "room_dl"]
    (got, _, _) = visit.page.evaluate(READ, names)
    read = """(names) => {
      const view = document.querySelector("#fig-calculator-load-chart").view;
      return Object.fromEntries(names.map((name) => [name, view.signal(name)]));
    }"""
    visit.page.wait_for_function(
        "(time) => document.querySelector('#fig-calculator-load-chart').view.signal('metric_s_ar') === time",
        arg=got["metric_s_ar"],
    )
    assert visit.page.evaluate(read, names) == got
    assert visit.problems == []


def test_every_example_says_an_answer(visit: look.Visit) -> None:
    """Choose an example, read one sentence."""
    _, page = stored()
    sentences = []
    for key, _ in page["choices"]["workload"]["options"]:
        visit.page.evaluate(SET, [{"workload": key}, {}])
        sentences.append(visit.page.inner_text(".calc-sentence"))
        assert not visit.page.locator(".calc-problem").count()
    assert len(set(sentences)) == len(sentences)
    assert all(re.match(r"(Run \S+ yourself|Call \S+ at \S+|Nothing here)", sentence) for sentence in sentences)
    assert visit.problems == []


def test_share_link_holds_everything_and_ignores_the_strange(context: Any, origin: str, visit: look.Visit) -> None:
    typed = {"in_prompt": ("field", "1234"), "in_acceptance": ("slider", "0.6"), "in_price": ("field", "31.5")}
    visit.page.evaluate(SET, [{"model": "gpt-oss-120b", "gpus": "4"}, typed])
    first = visit.page.evaluate(READ, ["request_usd_ar", "in_prompt", "in_price", "in_acceptance"])
    link = visit.page.evaluate("location.href")
    again = look.Visit(context, link, origin=origin)
    again.page.wait_for_function(READY)
    again.settle()
    assert again.page.evaluate(READ, ["request_usd_ar", "in_prompt", "in_price", "in_acceptance"]) == first
    assert again.page.input_value('[data-choice="model"]') == "gpt-oss-120b"
    again_unread = again.page.inner_text(".calc-unread")
    again.page.close()
    strange = (
        "#model=none&in_prompt=1e99&in_answer=abc&in_price=&__proto__=1&constructor=2&in_cached=-1&in_peak_req_per_s=3"
    )
    wild = look.Visit(context, f"{origin}/{PAGE}.html{strange}", origin=origin)
    wild.page.wait_for_function(READY)
    wild.settle()
    got, _, _ = wild.page.evaluate(READ, ["in_prompt", "in_answer", "in_price", "in_peak_req_per_s"])
    _, page = stored()
    assert got == {name: page["start"][name] for name in got} | {"in_peak_req_per_s": 3}
    assert wild.page.inner_text(".calc-unread") == (
        "Part of this link could not be read: model, prompt, answer, price, __proto__, constructor, cached."
    )
    assert visit.page.inner_text(".calc-unread") == again_unread == ""
    assert wild.page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") <= 60
    assert wild.problems == visit.problems == again.problems == []
    wild.page.close()


def test_reset_brings_the_first_example_back(visit: look.Visit) -> None:
    before = visit.page.evaluate(READ, ["request_usd_ar"])
    visit.page.evaluate(SET, [{"workload": "3"}, {"in_prompt": ("field", "99")}])
    assert visit.page.evaluate(READ, ["request_usd_ar"]) != before
    visit.page.click('[data-do="reset"]')
    visit.page.evaluate(SET, [{}, {}])
    assert visit.page.evaluate(READ, ["request_usd_ar"]) == before
    assert "#" not in visit.page.evaluate("location.href")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"in_prompt": ("field", "")}, "Prompt: a number from 1"),
        ({"in_answer": ("field", "0")}, "Answer: a number from 1"),
        ({"in_price": ("field", "-3")}, "Price of the node: a number from 0.01"),
        ({"in_cached": ("field", "8000")}, "smaller than the prompt"),
        ({"in_spares": ("field", "0.5")}, "a whole number"),
        ({"in_budget_s": ("field", "1,5")}, "such as 1.5"),
        ({"in_prompt": ("field", "1 000")}, "such as 1.5"),
        ({"in_prompt": ("field", "200000")}, "longer than the context of llama-3.3-70b"),
    ],
)
def test_impossible_input_gives_words(visit: look.Visit, typed: dict[str, Any], words: str) -> None:
    visit.page.evaluate(SET, [{}, typed])
    _, cells, sentence = visit.page.evaluate(READ, ["in_prompt"])
    assert words in sentence
    assert set(cells) == {"–"}
    (name,) = typed
    assert visit.page.get_attribute(f'[data-field="{name}"]', "aria-invalid") == "true"


def test_price_that_no_table_has_is_asked_for(visit: look.Visit) -> None:
    visit.page.evaluate(SET, [{"node": "lambda gpu_8x_b200_sxm6", "ownership": "reserved"}, {}])
    assert "The tables know no price" in visit.page.inner_text(".calc-sentence")
    visit.page.evaluate(SET, [{}, {"in_price": ("field", "40")}])
    assert "$" in visit.page.inner_text(".calc-sentence")


def test_model_that_does_not_fit_is_said_so_and_not_called_slow(visit: look.Visit) -> None:
    visit.page.evaluate(SET, [{"workload": "0", "model": "deepseek-r1"}, {}])
    sentence = visit.page.inner_text(".calc-sentence")
    assert "deepseek-r1 and one request do not fit" in sentence
    assert "keeps the budget" not in sentence


def test_api_whose_speed_nobody_knows_is_called_on_a_condition(visit: look.Visit) -> None:
    """Support chat: its cheapest seller publishes no times; with times typed the condition goes, or with ten hours."""
    assert re.match(r"Call \S+ at \S+: \$", visit.page.inner_text(".calc-sentence"))
    visit.page.evaluate(SET, [{"workload": "2"}, {}])
    sentence = visit.page.inner_text(".calc-sentence")
    assert re.match(r"Call \S+ at \S+ if it is fast enough, which is not known: \$[\d.]+ a request", sentence)
    notes = visit.page.inner_text(".calc-notes")
    assert re.search(r"map of decisions this work lies at [\d.]+ requests together, the peak rate times", notes)
    assert re.search(r"at \$[\d.]+ for a million output tokens of the API", notes)
    visit.page.evaluate(SET, [{}, {"in_api_first_s": ("field", "0.3"), "in_api_tok_per_s": ("field", "100")}])
    assert re.match(r"Call \S+ at \S+: \$", visit.page.inner_text(".calc-sentence"))


def test_rival_that_is_another_model_is_noted(visit: look.Visit) -> None:
    assert "another model" not in visit.page.inner_text(".calc-notes")
    visit.page.evaluate(SET, [{"api": "gpt-5-mini"}, {}])
    assert "The rival is another model, gpt-5-mini" in visit.page.inner_text(".calc-notes")
    visit.page.evaluate(SET, [{}, {"in_block": ("field", "8"), "in_passes": ("field", "12")}])
    assert "more passes here than it has tokens" in visit.page.inner_text(".calc-notes")


def test_keyboard_alone_suffices(visit: look.Visit) -> None:
    """From the example to the answer by Tab, arrows and digits; every field has a label and a help text."""
    page = visit.page
    page.focus('[data-choice="workload"]')
    page.keyboard.press("ArrowDown")
    page.evaluate(SET, [{}, {}])
    live = page.inner_text(".calc-sentence")
    page.keyboard.press("Tab")
    focused = [page.evaluate("document.activeElement.dataset.field ?? document.activeElement.dataset.choice")]
    assert focused == ["in_prompt"]
    page.keyboard.press("Control+a")
    page.keyboard.type("3000")
    page.evaluate(SET, [{}, {}])
    assert page.evaluate(READ, ["in_prompt"])[0]["in_prompt"] == 3000
    assert page.inner_text(".calc-sentence") != live
    page.keyboard.press("ArrowUp")
    page.evaluate(SET, [{}, {}])
    assert page.evaluate(READ, ["in_prompt"])[0]["in_prompt"] == 3100
    page.focus('[data-slider="in_day_share"]')
    before = page.evaluate(READ, ["in_day_share"])[0]["in_day_share"]
    page.keyboard.press("ArrowRight")
    page.evaluate(SET, [{}, {}])
    assert page.evaluate(READ, ["in_day_share"])[0]["in_day_share"] == pytest.approx(before + 0.01, abs=0.005)
    lacking = page.evaluate(
        """() => [...document.querySelectorAll("#calculator [data-field], #calculator [data-choice]")].filter(
        (input) => !input.labels.length || !document.getElementById(input.getAttribute("aria-describedby"))
        ).map((input) => input.id)"""
    )
    assert lacking == []
    assert page.get_attribute(".calc-sentence", "aria-live") == "polite"


def test_from_a_file_on_a_phone_in_the_dark(context: Any, site: Path) -> None:
    """The air-gapped reader: no server, no network, 360 px."""
    visit = look.Visit(context, look.as_file(site, PAGE) + "#workload=1", origin=site.resolve().as_uri())
    visit.page.set_viewport_size(look.PHONE)
    visit.page.wait_for_function(READY)
    visit.settle()
    visit.check_charts()
    visit.check_width()
    visit.check_dark()
    visit.page.evaluate("document.querySelectorAll('#calculator details').forEach((part) => { part.open = true; })")
    visit.check_width()
    visit.page.evaluate(SET, [{}, {"in_prompt": ("field", "700")}])
    assert visit.page.evaluate(READ, ["in_prompt"])[0]["in_prompt"] == 700
    assert "in_prompt=700" in visit.page.evaluate("location.hash")
    visit.page.close()
    assert visit.problems == []


def test_command_below_the_table_is_understood(visit: look.Visit) -> None:
    """What is copied from the page runs: every option is known to the command line."""
    from click.testing import CliRunner

    from analysis.cli import cli

    text = visit.page.inner_text(".calc-command").replace("--method simulation", "--method closed-form --json")
    words = text.split()
    assert words[:3] == ["python", "-m", "analysis"]
    done = CliRunner().invoke(cli, words[3:])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["nodes"] >= 1


def test_slider_of_a_chapter_moves_its_line(context: Any, origin: str) -> None:
    """Twice the price, twice the utilization from which a node is cheaper: 33 USD an hour at 3,000 tokens a second."""
    visit = look.Visit(context, f"{origin}/book/cost.html", origin=origin)
    visit.settle()
    move = """(value) => {
      const host = document.querySelector("#fig-cost-move-chart");
      const slider = host.querySelector('input[name="price"]');
      slider.value = value;
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      return host.view.runAsync().then(() => [...host.querySelectorAll("svg text")].map((text) => text.textContent));
    }"""

    def even(price: float) -> float:
        texts = " ".join(visit.page.evaluate(move, price))
        return float(re.search(r"cheaper from ([\d.]+)%", texts)[1])

    assert even(60) == pytest.approx(2 * even(30), rel=0.05)
    assert visit.problems == []
    visit.page.close()
