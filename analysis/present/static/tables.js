// Tables: on a narrow page rows with sentences become cards, and a table that says by what its rows can be chosen
// gets controls for that. Without this script every row shows, and a wide table scrolls by itself.
(() => {
  const words = (node) => node.textContent.replace(/\s+/g, " ").trim();

  // ------------------------------------------------------------------------------------------------ cards

  const stack = (table) => {
    const heads = [...table.querySelectorAll("thead th")].map(words);
    table.classList.add("stacks");
    // as a card a row is no table row to a browser; the roles keep it one for who listens
    table.setAttribute("role", "table");
    for (const part of table.querySelectorAll("thead, tbody")) part.setAttribute("role", "rowgroup");
    for (const head of table.querySelectorAll("th")) head.setAttribute("role", "columnheader");
    for (const row of table.querySelectorAll("tr")) {
      row.setAttribute("role", "row");
      [...row.querySelectorAll("td")].forEach((cell, place) => {
        cell.setAttribute("role", "cell");
        cell.dataset.label = heads[place];
        // a card leaves out what is not there
        cell.classList.toggle("absent", words(cell) === "–");
      });
    }
  };

  // ----------------------------------------------------------------------------------------------- choices

  const element = (name, attributes, text) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  const chooser = (table, number) => {
    const rows = [...table.querySelectorAll("tbody tr")];
    const texts = new Map(rows.map((row) => [row, words(row).toLowerCase()]));
    const form = element("form", { class: "choices", role: "search", "aria-label": "Choose rows of the table" });
    const labelled = (label, control) => {
      control.id = `choice-${number}-${form.children.length}`;
      const group = element("div", {});
      group.append(element("label", { for: control.id }, label), control);
      form.append(group);
      return control;
    };
    const selects = JSON.parse(table.dataset.choices).map((label, place) => {
      const counts = new Map();
      for (const row of rows) {
        const word = row.getAttribute(`data-choice-${place}`);
        counts.set(word, (counts.get(word) ?? 0) + 1);
      }
      const select = element("select", {});
      select.append(element("option", { value: "" }, "all"));
      for (const [word, count] of [...counts].sort(([a], [b]) => a.localeCompare(b, "en")))
        select.append(element("option", { value: word }, `${word} (${count})`));
      return labelled(label, select);
    });
    const typed = labelled("Words", element("input", { type: "search", autocomplete: "off", spellcheck: "false" }));
    form.append(element("button", { type: "reset" }, "Show all"));
    const told = element("output", { role: "status", "aria-live": "polite" });
    form.append(told);

    const choose = () => {
      const sought = typed.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const row of rows) {
        const kept =
          selects.every((select, place) => !select.value || row.getAttribute(`data-choice-${place}`) === select.value) &&
          sought.every((word) => texts.get(row).includes(word));
        row.hidden = !kept;
        count += kept;
      }
      told.textContent = `${count} of ${rows.length} rows`;
    };
    form.addEventListener("input", choose);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(choose));
    // whoever follows a link to a row sees it, whatever was chosen before
    const meet = () => {
      const row = rows.find((one) => one.id && `#${one.id}` === location.hash);
      if (row?.hidden) {
        form.reset();
        setTimeout(() => row.scrollIntoView());
      }
    };
    addEventListener("hashchange", meet);
    table.closest(".table-scroll").before(form);
    choose();
  };

  // ------------------------------------------------------------------------------------------ wide tables

  // a folded table has no width until it is unfolded: the observer sees that too
  const watch = (box) =>
    new ResizeObserver(() => box.toggleAttribute("data-wide", box.scrollWidth > box.clientWidth + 1)).observe(box);

  const start = () => {
    document.querySelectorAll(".table-scroll").forEach(watch);
    for (const table of document.querySelectorAll("table.data-table:has(td.long)")) stack(table);
    document.querySelectorAll("table[data-choices]").forEach(chooser);
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
