// The page "Your workload": numbers from the form into the dataflow, numbers and words out of it. No formula stands
// here: what is computed is the chain in the chart's specification, printed from the derivations.

(() => {
  const root = document.getElementById("calculator");
  const source = document.querySelector("script[data-calculator]");
  if (!root || !source) return;
  const page = JSON.parse(source.textContent);
  const inputs = new Map([...root.querySelectorAll("[data-field]")].map((input) => [input.dataset.field, input]));
  const sliders = new Map([...root.querySelectorAll("[data-slider]")].map((input) => [input.dataset.slider, input]));
  const selects = new Map([...root.querySelectorAll("[data-choice]")].map((input) => [input.dataset.choice, input]));
  const cells = [...root.querySelectorAll("[data-cell]")].map((cell) => {
    const [row, column] = cell.dataset.cell.split(".").map(Number);
    return [cell, page.cells[row][column]];
  });
  const sentence = root.querySelector(".calc-sentence");
  const notes = root.querySelector(".calc-notes");
  const command = root.querySelector(".calc-command");
  const shared = root.querySelector(".calc-shared");
  const unread = root.querySelector(".calc-unread");
  const PLAIN = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  // what is empty is not known; what is no plain number is none: a comma may stand for a point or for thousands
  const read = (text) => (text.trim() === "" ? null : PLAIN.test(text.trim()) ? Number(text) : NaN);

  const start = () => ({ choices: { workload: page.choices.workload.default }, typed: {} });
  let state = start();
  let view = null;
  // charts beside it that show the same numbers otherwise
  const followers = new Map();

  // ---------------------------------------------------------------------- what the choices fill in

  function filled(choices) {
    const chosen = { ...choices };
    const values = Object.fromEntries(Object.entries(page.fields).map(([name, field]) => [name, field.default]));
    for (const table of page.tables) {
      const row = table.rows[table.keys.map((key) => chosen[key]).join("|")];
      table.fields.forEach((name, i) => (values[name] = row ? row[table.sets.length + i] : null));
      table.sets.forEach((name, i) => {
        if (row && row[i] !== null && !(name in choices)) chosen[name] = row[i];
      });
    }
    return { chosen, values };
  }

  function choose(name, option) {
    if (name === "workload") {
      state = { choices: { workload: option }, typed: {} };
      return;
    }
    const before = filled(state.choices).values;
    state.choices[name] = option;
    const after = filled(state.choices).values;
    // what a choice fills in anew takes the place of what was typed
    for (const field of Object.keys(after)) if (after[field] !== before[field]) delete state.typed[field];
  }

  // ------------------------------------------------------------------------------------ what is wrong

  function wrong(values, known) {
    const found = new Map();
    for (const [name, field] of Object.entries(page.fields)) {
      const value = values[name];
      if (value === null && field.optional) continue;
      const range = `${field.label}: a ${field.whole ? "whole " : ""}number from ${field.low} to ${field.high}, please.`;
      const plain = `${field.label}: write a plain number with a point, such as 1.5, and without commas, please.`;
      if (Number.isNaN(value)) found.set(name, plain);
      else if (value === null) found.set(name, page.missing[name] ?? range);
      else if (!(value >= field.low && value <= field.high)) found.set(name, range);
      else if (field.whole && !Number.isInteger(value)) found.set(name, range);
    }
    for (const rule of page.rules) {
      if (values[rule.large] === null || [...rule.small, rule.large].some((name) => found.has(name))) continue;
      const [small, large] = [rule.small.reduce((sum, name) => sum + values[name], 0), values[rule.large]];
      if (rule.strict ? small >= large : small > large) found.set(rule.small[0], fill(rule.words, known));
    }
    return found;
  }

  // ------------------------------------------------------------------------------------- what is shown

  const writers = Object.fromEntries(
    Object.entries(page.formats).map(([kind, { options, after }]) => {
      const format = new Intl.NumberFormat("en-US", options);
      return [kind, (value) => (Number.isFinite(value) ? format.format(value) + after : "–")];
    }),
  );
  const line = (name) => view.signal(name);
  const holds = (when = {}) => Object.entries(when).every(([name, number]) => line(name) === number);

  function fill(text, known) {
    return text.replace(/\{([a-z0-9_]+)(?:\|([a-z_]+))?\}/g, (all, name, kind) =>
      kind ? writers[kind](line(name)) : String(known[name] ?? ""),
    );
  }

  function cellText(cell) {
    if (!cell) return "";
    for (const { line: name, words } of cell.unless) if (words[line(name)]) return words[line(name)];
    if (cell.words) return cell.words[line(cell.line)];
    return writers[cell.format](line(cell.line)) + (cell.mark ? cell.mark.words[line(cell.mark.line)] : "");
  }

  function show(chosen, values) {
    const known = { ...chosen, ...values };
    for (const [cell, spec] of cells) cell.textContent = cellText(spec);
    sentence.textContent = fill(page.answers.find((answer) => holds(answer.when)).text, known);
    notes.replaceChildren(
      ...page.notes
        .filter((note) => holds(note.when))
        .filter(({ differ }) => !differ || known[differ[0]] !== known[differ[1]])
        .filter(({ above }) => !above || known[above[0]] > known[above[1]])
        .map((note) => Object.assign(document.createElement("li"), { textContent: fill(note.text, known) })),
    );
    command.textContent = page.command
      .filter((part) => holds(part.when))
      .filter((part) => !Object.entries(part.unless ?? {}).some(([name, key]) => chosen[name] === key))
      .map((part) => fill(part.text, known))
      .join(" ");
  }

  function showProblems(problems) {
    sentence.textContent = [...problems.values()][0];
    for (const [cell] of cells) cell.textContent = "–";
    notes.replaceChildren();
    command.textContent = "";
  }

  function mark(problems) {
    for (const [name, input] of inputs) {
      const bad = problems.has(name);
      input.toggleAttribute("data-wrong", bad);
      if (bad) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
      if (bad) input.closest("details")?.setAttribute("open", "");
    }
    root.classList.toggle("calc-problem", problems.size > 0);
  }

  // ------------------------------------------------------------------------------------------ running

  let turn = 0;

  async function update({ write = true } = {}) {
    const mine = ++turn;
    const { chosen, values } = filled(state.choices);
    Object.assign(values, state.typed);
    if (write) writeForm(chosen, values);
    const problems = wrong(values, { ...chosen, ...values });
    mark(problems);
    remember();
    if (problems.size) showProblems(problems);
    else if (view) {
      for (const name of Object.keys(page.fields)) view.signal(name, values[name] ?? 0);
      await view.runAsync();
      if (mine !== turn) return;
      show(chosen, values);
      await Promise.all([...followers.values()].map(follow));
    } else return;
    root.dataset.done = String(mine);
  }

  function follow(other) {
    for (const name of page.copies) other.signal(name, line(name));
    return other.runAsync();
  }

  function writeForm(chosen, values) {
    for (const [name, select] of selects) select.value = chosen[name];
    for (const [name, input] of inputs) {
      if (Number.isNaN(values[name])) continue;
      if (document.activeElement !== input || !(name in state.typed)) input.value = values[name] ?? "";
    }
    for (const [name, slider] of sliders) if (Number.isFinite(values[name])) slider.value = values[name];
  }

  // -------------------------------------------------------------------------------------- a link to it

  function remember() {
    const link = new URLSearchParams();
    for (const [name, option] of Object.entries(state.choices)) link.set(name, option);
    for (const [name, value] of Object.entries(state.typed)) if (value !== null && Number.isFinite(value)) link.set(name, value);
    const same = [...link].length === 1 && state.choices.workload === page.choices.workload.default;
    history.replaceState(null, "", same ? location.pathname + location.search : "#" + link);
  }

  function recall() {
    state = start();
    const link = new URLSearchParams(location.hash.slice(1));
    const lost = new Set(link.keys());
    for (const [name, text] of link) {
      const choice = Object.hasOwn(page.choices, name) && page.choices[name];
      if (choice && choice.options.some(([key]) => key === text)) {
        state.choices[name] = text;
        lost.delete(name);
      }
    }
    for (const [name, text] of link) {
      const field = Object.hasOwn(page.fields, name) && inputs.has(name) && page.fields[name];
      const value = read(text) ?? NaN;
      if (field && value >= field.low && value <= field.high) {
        state.typed[name] = value;
        lost.delete(name);
      }
    }
    const names = [...lost].map((name) => name.replace(/^in_/, ""));
    unread.textContent = names.length ? `Part of this link could not be read: ${names.join(", ")}.` : "";
  }

  const actions = {
    reset() {
      state = start();
      shared.textContent = unread.textContent = "";
    },
    share() {
      const done = () => (shared.textContent = "Copied.");
      const other = () => (shared.textContent = "The address of this page holds all numbers: copy it from there.");
      if (navigator.clipboard) navigator.clipboard.writeText(location.href).then(done, other);
      else other();
    },
  };

  // arrows step a number by about a hundredth to a tenth of it, whole numbers by whole ones
  function stepped(field, value, up) {
    const step = value === 0 ? 1 : 10 ** (Math.floor(Math.log10(Math.abs(value))) - 1);
    const next = value + (up ? 1 : -1) * (field.whole ? Math.max(1, step) : Math.min(step, field.high / 100));
    return Math.min(Math.max(Number(next.toPrecision(12)), field.low), field.high);
  }
  root.addEventListener("keydown", (event) => {
    const field = page.fields[event.target.dataset.field];
    if (!field || event.altKey || event.ctrlKey || event.metaKey || !/^Arrow(Up|Down)$/.test(event.key)) return;
    const value = read(event.target.value);
    if (!Number.isFinite(value) || value === null) return;
    event.preventDefault();
    event.target.value = stepped(field, value, event.key === "ArrowUp");
    event.target.dispatchEvent(new Event("input", { bubbles: true }));
  });
  root.addEventListener("input", (event) => {
    const { field, slider } = event.target.dataset;
    const name = field ?? slider;
    if (!name) return;
    const text = event.target.value;
    state.typed[name] = read(text);
    if (slider) inputs.get(name).value = text;
    else if (sliders.has(name)) sliders.get(name).value = text;
    update({ write: false });
  });
  root.addEventListener("change", (event) => {
    const { choice } = event.target.dataset;
    if (!choice) return;
    choose(choice, event.target.value);
    update();
  });
  root.addEventListener("click", (event) => {
    const action = actions[event.target.dataset.do];
    if (!action) return;
    action();
    update();
  });
  root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", () => {
    recall();
    update();
  });
  document.addEventListener("chart-drawn", (event) => {
    if (event.target.id === source.dataset.calculator) view = event.target.view;
    else if (event.target.id.startsWith("fig-calculator-")) followers.set(event.target.id, event.target.view);
    else return;
    update();
  });
  recall();
  update();
})();
