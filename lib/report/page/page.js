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
// A score as the plots show it: an accuracy in percent, R², or bits per byte.
const shown = score =>
    score === null ? null : +(score / data.score.unit).toPrecision(6);
// A key without its section if that says enough: "group_size", "model.name".
const short = key => tail(key) === "name" ? key : tail(key);
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

// The columns that describe a setting; those with its figures, data.columns, follow.
const OWN = [
  { title: "run", help: "", of: setting => setting.name },
  ...data.traits.map(({ key, help, is_number }, k) =>
    ({ title: key, help, is_number, of: setting => setting.traits[k] })),
  { title: "seeds", help: "", is_number: true, of: setting => setting.seeds },
];
const own = OWN.length;
const table = { column: -1, descending: false };

// The text in parts, with a place between them where a line may break.
const breakable = text => text.split(/(?<=[_\-,=/])/).flatMap(part => [part, element("wbr")]);

const classOf = i => i < own && !OWN[i].is_number ? { class: "words" } : {};

function orderOfRows() {
  const rows = data.settings.map((_, i) => i);
  if (table.column < 0) {
    return rows;  // as the program sorted them
  }
  const sign = table.descending ? -1 : 1;
  const cells = table.column < own ? null : data.columns[table.column - own].cells;
  return rows.sort((a, b) => {
    if (!cells) {
      const [x, y] = [a, b].map(i => OWN[table.column].of(data.settings[i]));
      return sign * x.localeCompare(y, "en", { numeric: true });
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
  [...OWN, ...data.columns].forEach(({ title, help }, i) => {
    const cell = element("th", undefined, classOf(i));
    cell.scope = "col";
    const button = element("button", title, { type: "button" });
    button.title = help;
    button.addEventListener("click", () => sortBy(i));
    if (table.column === i) {
      cell.setAttribute("aria-sort", table.descending ? "descending" : "ascending");
    }
    cell.append(button);
    head.append(cell);
  });
  const rows = orderOfRows().map(i => {
    const row = element("tr");
    OWN.forEach(({ of }, k) => {
      const cell = element("td", undefined, classOf(k));
      const text = of(data.settings[i]);
      cell.append(...(k === 0 ? breakable(text) : [text]));
      row.append(cell);
    });
    const swatch = element("span", undefined, { class: "swatch" });
    swatch.style.borderTopColor = color(i);
    swatch.style.borderTopStyle = CSS_DASHES[dash(i)];
    row.cells[0].prepend(swatch);
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

function remarks(title, lines, open = lines.length <= 5) {
  if (lines.length > 0) {
    const details = element("details");
    details.open = open;
    details.append(element("summary", `${title} (${lines.length})`), listOf(lines));
    $("remarks").append(details);
  }
}

const listOf = lines => {
  const list = element("ul");
  list.append(...lines.map(line => element("li", line)));
  return list;
};

// The verdict stands above the table, and what was spent on tuning below it.
function drawWords() {
  if (data.verdict.length > 0) {
    const section = element("section", undefined, { id: "verdict" });
    section.append(element("h2", "Verdict"), listOf(data.verdict));
    document.querySelector("main").prepend(section);
  }
  if (data.tuning !== null) {
    const section = element("section", undefined, { id: "tuning" });
    const [titles, ...rivals] = data.tuning.rows;
    const rowOf = (cells, tag) => {
      const row = element("tr");
      row.append(...cells.map(text => element(tag, text, { class: "words" })));
      return row;
    };
    const [thead, tbody] = [element("thead"), element("tbody")];
    thead.append(rowOf(titles, "th"));
    tbody.append(...rivals.map(cells => rowOf(cells, "td")));
    const [wide, rows] = [element("div", undefined, { class: "wide" }), element("table")];
    rows.append(thead, tbody);
    wide.append(rows);
    section.append(element("h2", "What each rival was given"), wide);
    if (data.tuning.left_out.length > 0) {
      section.append(listOf(data.tuning.left_out));
    }
    $("table").closest("section").after(section);
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
  // Rivals have keys of their own, which are not listed: names and columns say what is compared.
  const named = data.tuning === null && data.varying.length <= 5 ? data.varying : [];
  const keys = named.length === 0 ? "" : `. They differ in ${named.join(", ")}`;
  $("compared").textContent = count(data.runs.length, "run") + " of " +
    count(data.settings.length, "setting") + target + keys + ".";
  const parts = [];
  if (data.columns.some(c => c.cells.some(cell => cell.best))) {
    parts.push(`Marked: ${data.mark}. Click a heading to sort by it.`);
  }
  if (data.columns.some(c => c.cells.some(cell => cell.text.includes("±")))) {
    parts.push("± is the standard deviation over the seeds.");
  }
  if (data.cores) {
    parts.push(data.cores);
  }
  $("legend").textContent = parts.join(" ");
  if (named.length === 0) {
    remarks("Keys in which they differ", data.varying, false);
  }
  remarks("Runs that have not finished", data.unfinished);
  remarks("Skipped, because they could not be read", data.skipped);
  drawTable();
  drawWords();
}

// ---- What the plots share

const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A Plotly layout with the page's colors and fonts.
function layout(extra) {
  const axis = { gridcolor: style("--line"), zerolinecolor: style("--line"),
    linecolor: style("--faint"), automargin: true };
  const whole = {
    paper_bgcolor: style("--paper"), plot_bgcolor: style("--paper"),
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: style("--ink") },
    margin: { l: 60, r: 20, t: 32, b: 50 }, height: 420, hovermode: "closest", ...extra };
  whole.xaxis = { ...axis, ...extra.xaxis };
  whole.yaxis = { ...axis, ...extra.yaxis };
  return whole;
}

// `ticks`: the units of the axes whose ticks are set here, as { xaxis: "B" }.
async function plot(id, traces, extra, ticks = {}) {
  // If a legend is above the plot, the buttons stand beside the plot.
  const is_above = extra.legend?.orientation === "h";
  const whole = layout({ ...extra, modebar: { orientation: is_above ? "v" : "h" } });
  whole.margin.r = Math.max(whole.margin.r, is_above ? 48 : 0);
  await Plotly.react($(id), traces, whole, {
    displaylogo: false, responsive: true, doubleClick: "reset",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] });
  $(id).removeAllListeners("plotly_relayout");
  const set = () => {
    const changes = tickChanges($(id), ticks);
    return Object.keys(changes).length > 0 ? Plotly.relayout($(id), changes) : undefined;
  };
  await set();
  $(id).on("plotly_relayout", change => {
    if (!Object.keys(change).every(key => key.endsWith(".ticktext") || key.endsWith(".tickvals"))) {
      set();
    }
  });
}

// ---- Ticks. Plotly's own ticks overlap on logarithmic axes, and some have no unit.

const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

// Returns "5 MB", "0.1 s" or, for the unit "", "20 k". The unit null gives a
// plain number. Numbers far below 1 become powers of ten.
function tickText(value, unit) {
  const [scale, prefix] = unit === "s" || unit === null ? [1, ""]
    : PREFIXES.find(([least]) => Math.abs(value) >= least) || [1, ""];
  const number = +(value / scale).toPrecision(4);
  const [digit, power] = number.toExponential().split("e");
  const text = number === 0 || power > -3 ? String(number)
    : `${digit === "1" ? "" : digit + "·"}10<sup>${power}</sup>`;
  const after = prefix + (unit || "");
  return after ? `${text} ${after}` : text;
}

// The values that get a tick on an axis of `pixels` pixels, at least `apart`
// pixels from each other.
function tickValues([low, high], is_log, pixels, apart) {
  const most = Math.max(2, Math.floor(pixels / apart));
  if (is_log) {
    const decade = pixels / (high - low);
    const digits = [[1, 2, 5], [1, 3], [1]].find((_, k) => decade * [0.3, 0.47, 1][k] >= apart);
    const every = Math.max(1, Math.ceil(apart / decade));
    const values = [];
    for (let power = Math.floor(low); power <= high; ++power) {
      values.push(...(power % every === 0 ? digits || [1] : []).map(d => d * 10 ** power));
    }
    const shown = values.filter(v => Math.log10(v) >= low && Math.log10(v) <= high);
    if (shown.length > 1) {
      return shown;
    }
    [low, high] = [10 ** low, 10 ** high];
  }
  const least = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].find(d => d * power >= least) * power;
  const values = [];
  for (let i = Math.ceil(low / step); i * step <= high; ++i) {
    values.push(i * step);
  }
  return values;
}

function tickChanges(element, ticks) {
  const changes = {};
  for (const [name, unit] of Object.entries(ticks)) {
    const { range, domain = [0, 1], type } = element.layout[name];
    const { l, r, t, b } = element.layout.margin;
    const is_x = name.startsWith("x");
    const whole = is_x ? element.clientWidth - l - r : element.clientHeight - t - b;
    const pixels = whole * (domain[1] - domain[0]);
    const values = tickValues(range, type === "log", pixels, is_x ? 60 : 30);
    changes[name + ".tickvals"] = values;
    changes[name + ".ticktext"] = values.map(value => tickText(value, unit));
  }
  return changes;
}

// Shows a sentence in place of a plot.
function leaveOut(id, sentence) {
  Plotly.purge($(id));
  $(id).replaceChildren();
  const note = $(id + "-note") || $(id);
  note.textContent = sentence;
  return Promise.resolve();
}
