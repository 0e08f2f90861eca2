// Draws the charts of a page. Bundled with Vega at build time; DARK_TWINS and vegaEmbed come from there.
// Expressions run through Vega's interpreter (ast), because the content policy forbids eval.

const isDark = () => document.documentElement.dataset.theme === "dark";

const inThisTheme = (json) =>
  isDark() ? json.replace(/"(#[0-9a-f]{6})"/g, (all, colour) => `"${DARK_TWINS[colour] ?? colour}"`) : json;

const drawn = new Map();

async function draw(script) {
  const host = script.previousElementSibling;
  const before = drawn.get(script);
  const spec = JSON.parse(inThisTheme(script.textContent));
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

new MutationObserver(later).observe(document.documentElement, { attributeFilter: ["data-theme"] });
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", later);
else later();
