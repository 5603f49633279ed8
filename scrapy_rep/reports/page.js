"use strict";
// Sorts and filters the tables of origins. The page is complete without this.
(() => {
  const tables = [...document.querySelectorAll("table.origins")];
  if (!tables.length) return;
  const together = tables[0].tBodies.length;
  const numbers = new Set([3, 4, 5, 6]);
  let rows = tables.flatMap((table) => [...table.tBodies]);

  const cell = (body, column) => body.rows[0].cells[column];
  const key = (body, column) => {
    const found = cell(body, column);
    if (!numbers.has(column)) return found.textContent;
    return Number(found.dataset.value ?? found.textContent.replaceAll(",", ""));
  };

  const tools = document.createElement("div");
  tools.className = "tools";
  const control = (name, element) => {
    const label = document.createElement("label");
    label.append(name, element);
    tools.append(label);
    return element;
  };
  const text = control("Origins that contain", document.createElement("input"));
  text.type = "search";
  const choice = (name, values) => {
    const select = control(name, document.createElement("select"));
    select.append(new Option("All", ""));
    for (const [value, text] of new Map(values)) select.append(new Option(text, value));
    select.addEventListener("change", () => place());
    return select;
  };
  const state = choice("Status", rows.map((body) => [body.dataset.state, body.querySelector(".state").textContent]));
  const chips = rows.flatMap((body) => [...body.rows[0].querySelectorAll("[data-mark]")]);
  const mark = choice("Mark", chips.map((chip) => [chip.dataset.mark, chip.textContent]));
  const result = document.createElement("p");
  result.className = "note";
  result.setAttribute("role", "status");
  tools.append(result);
  tables[0].parentElement.before(tools);

  const place = () => {
    const wanted = text.value.trim().toLowerCase();
    const found = rows.filter(
      (body) =>
        (!state.value || body.dataset.state === state.value) &&
        (!mark.value || body.dataset.marks.split(" ").includes(mark.value)) &&
        cell(body, 0).textContent.toLowerCase().includes(wanted),
    );
    tables.forEach((table, number) => {
      const part = found.slice(number * together, (number + 1) * together);
      table.replaceChildren(table.caption, table.tHead, ...part);
      table.parentElement.hidden = number > 0 && !part.length;
      const first = number * together;
      table.caption.textContent = `Origins ${first + 1} to ${first + part.length}`;
    });
    result.textContent = `${found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} origins`;
  };
  text.addEventListener("input", place);
  for (const link of document.querySelectorAll("a.rows[data-mark]:not([data-mark=''])")) {
    link.addEventListener("click", () => {
      text.value = state.value = "";
      mark.value = link.dataset.mark;
      place();
    });
  }

  for (const table of tables) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const first = numbers.has(column) ? "descending" : "ascending";
        const second = numbers.has(column) ? "ascending" : "descending";
        const order = head.getAttribute("aria-sort") === first ? second : first;
        const sign = order === "ascending" ? 1 : -1;
        const keyed = rows.map((body) => [key(body, column), body]);
        keyed.sort(([a], [b]) => sign * (a < b ? -1 : a > b ? 1 : 0));
        rows = keyed.map(([, body]) => body);
        for (const { tHead } of tables) {
          [...tHead.rows[0].cells].forEach((other, index) => {
            if (index === column) other.setAttribute("aria-sort", order);
            else other.removeAttribute("aria-sort");
          });
        }
        place();
      });
    });
  }
})();
