// Draws the charts of a page. Bundled with Vega at build time; DARK_TWINS and vegaEmbed come from there.
// Expressions run through Vega's interpreter (ast), because the content policy forbids eval.

const isDark = () => document.documentElement.dataset.theme === "dark";

const inThisTheme = (json) =>
  isDark() ? json.replace(/"(#[0-9a-f]{6})"/g, (all, colour) => `"${DARK_TWINS[colour] ?? colour}"`) : json;

// On a phone letters are a point smaller, and so is the room for names beside lines; the title of an axis ends where
// the axis does, as does a legend, so that long ones have the room of the labels before it; names keep their ends.
const NARROW_PX = 480;
const lessRoom = (all, before, pixels, after) => `${before}${Math.round(0.92 * pixels)}${after}`;

function fitted(json, width) {
  if (width >= NARROW_PX) return JSON.parse(json);
  const spec = JSON.parse(
    json
      .replace(/("range":\[)(\d+)(,\{"expr":"width"\}\])/g, lessRoom)
      .replace(/("range":\[0,\{"expr":"width - )(\d+)("\}\])/g, lessRoom),
  );
  const { axis, axisX, legend, text } = spec.config;
  const smaller = { labelFontSize: 11, titleFontSize: 11 };
  spec.config = {
    ...spec.config,
    axis: { ...axis, ...smaller, labelLimit: 200, labelSeparation: 6 },
    axisX: { ...axisX, titleAnchor: "end" },
    legend: { ...legend, ...smaller, layout: { top: { anchor: "end" }, bottom: { anchor: "end" } } },
    text: { ...text, fontSize: 11 },
  };
  return spec;
}

const drawn = new Map();

async function draw(script) {
  const host = script.previousElementSibling;
  const before = drawn.get(script);
  const spec = fitted(inThisTheme(script.textContent), host.clientWidth);
  const inputs = (spec.params ?? []).filter((param) => param.bind).map((param) => param.name);
  const kept = before ? inputs.map((name) => [name, before.view.signal(name)]) : [];
  before?.finalize();
  try {
    const result = await vegaEmbed(host, spec, { ast: true, renderer: "svg", actions: false });
    drawn.set(script, result);
    kept.forEach(([name, value]) => result.view.signal(name, value));
    await result.view.runAsync();
    host.dataset.drawn = isDark() ? "dark" : "light";
    // for scripts that set and read its numbers
    host.view = result.view;
    host.dispatchEvent(new CustomEvent("chart-drawn", { bubbles: true }));
  } catch (error) {
    host.textContent = "This chart could not be drawn. Its numbers stand in the table below.";
    console.error(error);
  }
}

async function drawAll() {
  for (const script of document.querySelectorAll("script[data-chart]")) await draw(script);
}

let drawing = Promise.resolve();
const later = () => (drawing = drawing.then(drawAll));

// a column also changes its width when the window does not, or later than the window: when a side bar moves
let width = 0;
let moved;
const column = new ResizeObserver(([seen]) => {
  const before = width;
  width = Math.round(seen.contentRect.width);
  if (before === 0 || before === width) return;
  clearTimeout(moved);
  moved = setTimeout(() => dispatchEvent(new Event("resize")), 100);
});
const follow = () => column.observe(document.querySelector(".chart").parentElement);

new MutationObserver(later).observe(document.documentElement, { attributeFilter: ["data-theme"] });
const begin = () => {
  follow();
  later();
};
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
else begin();
