// Draws the page's head and table from its data block, and defines what plots.js
// shares. Text is always inserted as text, never as HTML.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);

// Colors that color-blind readers can tell apart (Okabe and Ito), on a dark
// background too; after the last one they repeat with another dash pattern.
const COLORS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c8c8c"];
const DASHES = ["solid", "dash", "dot", "dashdot"];
const CSS_DASHES = ["solid", "dashed", "dotted", "double"];
const color = i => COLORS[i % COLORS.length];
const dash = i => Math.floor(i / COLORS.length) % DASHES.length;

// Plotly interprets tags and entities in names.
const plain = text => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;");
const tail = key => key.slice(key.lastIndexOf(".") + 1);
// A score as the plots show it: an accuracy in percent, or bits per byte.
const shown = score =>
    score === null ? null : +(score / data.score.unit).toPrecision(6);
const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) {
    made.textContent = text;
  }
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, value);
  }
  return made;
}

function fill(select, labels, chosen = 0) {
  labels.forEach((label, i) => select.append(element("option", label, { value: i })));
  select.value = chosen;
}

// ---- The page's head and its table

// The columns that every page has, before those of data.columns.
const OWN = { name: "run", method: "method", seeds: "seeds" };
const own = Object.keys(OWN).length;
const table = { column: -1, descending: false };

function orderOfRows() {
  const rows = data.settings.map((_, i) => i);
  if (table.column < 0) {
    return rows;  // as the program sorted them
  }
  const sign = table.descending ? -1 : 1;
  const cells = table.column < own ? null : data.columns[table.column - own].cells;
  return rows.sort((a, b) => {
    if (!cells) {
      const key = Object.keys(OWN)[table.column];
      const options = { numeric: true };
      return sign * data.settings[a][key].localeCompare(data.settings[b][key], "en", options);
    }
    const [x, y] = [cells[a].value, cells[b].value];
    if (x === null || y === null) {
      return (x === null) - (y === null);  // a cell without a value sorts last, either way
    }
    return sign * (x - y);
  });
}

function sortBy(column) {
  const better = column < own ? "lower" : data.columns[column - own].better;
  table.descending = table.column === column ? !table.descending : better === "higher";
  table.column = column;
  drawTable();
}

function drawTable() {
  const head = element("tr");
  const titles = [...Object.values(OWN), ...data.columns.map(c => c.title)];
  titles.forEach((title, i) => {
    const cell = element("th", undefined, { scope: "col" });
    const button = element("button", title, { type: "button" });
    button.title = i < own ? "" : data.columns[i - own].help;
    button.addEventListener("click", () => sortBy(i));
    if (table.column === i) {
      cell.setAttribute("aria-sort", table.descending ? "descending" : "ascending");
    }
    cell.append(button);
    head.append(cell);
  });
  const rows = orderOfRows().map(i => {
    const row = element("tr");
    const name = element("td");
    const swatch = element("span", undefined, { class: "swatch" });
    swatch.style.borderTopColor = color(i);
    swatch.style.borderTopStyle = CSS_DASHES[dash(i)];
    name.append(swatch, data.settings[i].name);
    row.append(name, element("td", data.settings[i].method), element("td", data.settings[i].seeds));
    for (const column of data.columns) {
      const cell = column.cells[i];
      row.append(element("td", cell.text, cell.best ? { class: "best" } : {}));
    }
    return row;
  });
  const [thead, tbody] = [element("thead"), element("tbody")];
  thead.append(head);
  tbody.append(...rows);
  $("table").replaceChildren(thead, tbody);
}

function remarks(title, lines) {
  if (lines.length > 0) {
    const details = element("details");
    const list = element("ul");
    list.append(...lines.map(line => element("li", line)));
    details.open = lines.length <= 5;
    details.append(element("summary", `${title} (${lines.length})`), list);
    $("remarks").append(details);
  }
}

function drawHead() {
  $("made").textContent = data.made;
  const target = data.target === null ?
      '' :
      `, target ${shown(data.target)}${data.score.suffix}` +
          (data.score.unit === 1 ? '' : ' accuracy');
  for (const part of document.querySelectorAll('.score')) {
    part.textContent = data.score.title.split(',')[0];
  }
  const keys = data.varying.length === 0 ? "" : `. They differ in ${data.varying.join(", ")}`;
  $("compared").textContent = count(data.runs.length, "run") + " of " +
    count(data.settings.length, "setting") + target + keys + ".";
  const parts = [];
  if (data.columns.some(c => c.cells.some(cell => cell.best))) {
    parts.push(`Marked: ${data.mark}. Click a heading to sort by it.`);
  }
  if (data.columns.some(c => c.cells.some(cell => cell.text.includes("±")))) {
    parts.push("± is the standard deviation over the seeds.");
  }
  $("legend").textContent = parts.join(" ");
  remarks("Runs that have not finished", data.unfinished);
  remarks("Skipped, because they could not be read", data.skipped);
  drawTable();
}
