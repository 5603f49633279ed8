"use strict";
// Sorts and filters the table of origins. The page is complete without this.
(() => {
  const table = document.querySelector("table.origins");
  if (!table) return;
  const rows = [...table.tBodies];
  const numbers = new Set([3, 4, 5, 6, 7]);

  const cell = (body, column) => body.rows[0].cells[column];
  const key = (body, column) => {
    const found = cell(body, column);
    if (!numbers.has(column)) return found.textContent;
    return Number(found.dataset.value ?? found.textContent.replaceAll(",", ""));
  };

  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const first = numbers.has(column) ? "descending" : "ascending";
      const second = numbers.has(column) ? "ascending" : "descending";
      const order = head.ariaSort === first ? second : first;
      const sign = order === "ascending" ? 1 : -1;
      const keyed = rows.map((body) => [key(body, column), body]);
      keyed.sort(([a], [b]) => sign * (a < b ? -1 : a > b ? 1 : 0));
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order);
      table.append(...keyed.map(([, body]) => body));
    });
  });

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
  const state = control("Status", document.createElement("select"));
  state.append(new Option("All", ""));
  const names = new Map(rows.map((body) => [body.dataset.state, body.querySelector(".state").textContent]));
  for (const [value, name] of names) state.append(new Option(name, value));
  const result = document.createElement("p");
  result.className = "note";
  result.setAttribute("role", "status");
  tools.append(result);
  table.before(tools);

  const filter = () => {
    const wanted = text.value.trim().toLowerCase();
    let number = 0;
    for (const body of rows) {
      body.hidden =
        (state.value && body.dataset.state !== state.value) ||
        !cell(body, 0).textContent.toLowerCase().includes(wanted);
      number += body.hidden ? 0 : 1;
    }
    result.textContent = `${number.toLocaleString("en")} of ${rows.length.toLocaleString("en")} origins`;
  };
  text.addEventListener("input", filter);
  state.addEventListener("change", filter);
})();
