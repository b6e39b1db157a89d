// Draws the plots, and starts everything. Runs after page.js.
"use strict";

// The runs that have the score that is plotted; language models, for example, have no accuracy.
const drawn = data.runs.filter(run => run.curve.score.some(score => score !== null));

// The score over `what` ("bytes" or "seconds"): one line per run, one color
// per setting.
function drawCurves(what, unit) {
  if (drawn.length === 0) {
    return leaveOut(what, "No run has been evaluated.");
  }
  const is_log = $(what + "-log").checked;
  const named = new Set();
  const traces = drawn.map(run => {
    const i = run.setting;
    const is_first = !named.has(i);
    named.add(i);
    const name = plain(data.settings[i].name);
    return {
      x: run.curve[what],
      y: run.curve.score.map(shown),
      customdata: run.curve.step,
      name,
      legendgroup: String(i),
      showlegend: is_first,
      mode: 'lines+markers',
      line: {color: color(i), dash: DASHES[dash(i)], width: 1.8},
      marker: {size: 4},
      hovertemplate:
          `${name}, seed ${run.seed}<br>%{y:.${data.score.decimals}f}${
              data.score.suffix} at %{x:.4s}${unit}, ` +
          'step %{customdata}<extra></extra>',
    };
  });
  const shapes = data.target === null ? [] : [{
    type: 'line',
    xref: 'paper',
    x0: 0,
    x1: 1,
    y0: shown(data.target),
    y1: shown(data.target),
    line: {color: style('--faint'), width: 1.5, dash: 'dash'}
  }];
  const annotations = data.target === null ? [] : [{
    xref: 'paper',
    x: 1,
    xanchor: 'right',
    y: shown(data.target),
    yanchor: 'top',
    text: `target ${shown(data.target)}${data.score.suffix}`,
    showarrow: false,
    font: {color: style('--faint')}
  }];
  // A legend of more entries would leave no space for the plot.
  const has_legend = named.size <= 12;
  $(what + "-note").textContent =
    has_legend ? "" : "Colors as in the table; hover over a line to see its name.";
  const rows = has_legend ? Math.ceil(named.size / 4) : 0;
  return plot(what, traces, {
    shapes,
    annotations,
    height: 400 + 20 * rows,
    margin: {l: 60, r: 20, t: 20 + 20 * rows, b: 50},
    showlegend: has_legend,
    xaxis: {
      title: {
        text: what === 'bytes' ? 'bytes sent per worker' :
                                 'seconds of training'
      },
      type: is_log ? 'log' : 'linear'
    },
    yaxis: {title: {text: data.score.title}},
    legend: {orientation: 'h', yanchor: 'bottom', y: 1.02, x: 0},
  }, {xaxis: unit});
}

// True if the axis is logarithmic at first: if the totals of the runs differ by more than a factor
// of 12, as the bytes of different methods do.
function wantsLog(what) {
  const last = drawn.map(run => run.curve[what].at(-1)).filter(x => x > 0);
  return Math.max(...last) > 12 * Math.min(...last);
}

// ---- The front: the score against each cost, one line per configuration

const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star"];
const COSTS = {
  train_seconds: { title: "seconds of training", unit: "s" },
  link_seconds: { title: "seconds over the link", unit: "s" },
  bytes: { title: "bytes sent per worker", unit: "B" },
  parameters: { title: "parameters stored", unit: "" },
};

function drawFront() {
  const {scores, lines, costs} = data.front;
  if (scores.every(a => a === null)) {
    return leaveOut("front", "No run has finished.");
  }
  $('front-note').textContent =
      `Filled: no other setting${data.traits.some(t => t.key === "data") ? " of the same data" : ""} ` +
      'is as good for as little. A line joins what no other ' +
      'length of the same configuration (train.steps, train.epochs) beats. Bars go from the lowest to the highest seed.';
  const across = $("front").clientWidth < 900 ? 1 : costs.length;
  const down = Math.ceil(costs.length / across);
  const axis = { gridcolor: style("--line"), linecolor: style("--faint"), automargin: true };
  const has_legend = lines.length <= 12;
  const rows = has_legend ? Math.ceil(lines.length / 6) : 0;
  const height = 330 * down + 20 * rows;
  const extra = { height, showlegend: has_legend, margin: { l: 60, r: 20, t: 20 + 20 * rows, b: 50 },
    legend: { orientation: "h", yanchor: "bottom", y: 1.02, x: 0 } };
  const [wide, tall] = [1 / across - 0.05, 1 / down - (down > 1 ? 0.09 : 0)];
  const traces = [];
  const ticks = {};
  costs.forEach((cost, k) => {
    const n = k === 0 ? "" : k + 1;
    const { title, unit } = COSTS[cost.key];
    const left = (k % across) / across;
    const top = 1 - Math.floor(k / across) / down;
    extra["xaxis" + n] = { ...axis, type: "log", title: { text: title }, anchor: "y" + n,
      domain: [left, left + wide] };
    ticks["xaxis" + n] = unit;
    extra['yaxis' + n] = {
      ...axis,
      title: {text: k % across === 0 ? data.score.title : ''},
      anchor: 'x' + n,
      domain: [Math.max(0, top - tall), top],
      ...(k > 0 ? {matches: 'y'} : {})
    };
    lines.forEach((line, i) => {
      const known =
          line.settings
              .filter(
                  s => scores[s] !== null && cost.points[s] !== null &&
                      cost.points[s].value > 0)
              .sort((a, b) => cost.points[a].value - cost.points[b].value);
      if (known.length === 0) {
        return;
      }
      const of = settings => ({
        x: settings.map(s => cost.points[s].value),
        y: settings.map(s => shown(scores[s].mean)),
        xaxis: 'x' + n,
        yaxis: 'y' + n,
        name: plain(line.name),
        legendgroup: String(i)
      });
      const between = (a, b) =>
          known.map(s => shown(scores[s][a] - scores[s][b]));
      const joined = known.filter(s => cost.points[s].in_line);
      if (joined.length > 1) {
        traces.push({ ...of(joined), mode: "lines", showlegend: false, hoverinfo: "skip",
          line: { color: color(i), dash: DASHES[dash(i)], width: 1.8 } });
      }
      traces.push({
        ...of(known),
        mode: 'markers',
        showlegend: k === 0,
        customdata: known.map(
            s => `${plain(data.settings[s].name)}, seeds ${
                data.settings[s].seeds}`),
        error_y: {
          type: 'data',
          symmetric: false,
          array: between('high', 'mean'),
          arrayminus: between('mean', 'low'),
          thickness: 1,
          width: 3
        },
        marker: {
          color: color(i),
          size: 9,
          line: {width: 1.5},
          symbol: known.map(
              s => SYMBOLS
                       [(i + Math.floor(i / COLORS.length)) % SYMBOLS.length] +
                  (cost.points[s].in_all ? '' : '-open'))
        },
        hovertemplate: `%{customdata}<br>%{y:.${data.score.decimals}f}${
            data.score.suffix} for %{x:.4s}${unit}<extra></extra>`
      });
    });
  });
  return plot("front", traces, extra, ticks);
}

// ---- Heat map of a figure over two keys

// The sorted distinct values of a key in these settings.
function valuesOf(key, settings) {
  const values = [...new Set(settings.map(s => s.config[key]))];
  return values.sort((a, b) => a - b || a.localeCompare(b, "en", { numeric: true }));
}

// The settings that use all these keys: only AB-training uses method.rank and group_size, and a
// rank parameter belongs to one rank rule.
function settingsWith(keys) {
  const all = data.settings.map((s, i) => ({ ...s, index: i }));
  const is_rank = key => key.startsWith("method.rank.") && key !== "method.rank.rule";
  const is_own = key => key === "method.group_size" || key.startsWith("method.rank.");
  const own = keys.some(is_own) ? all.filter(s => s.method === "ab") : all;
  const rank = keys.find(is_rank);
  const rules = { rank: "fixed", cut: "sigma", keep: "energy" };
  const rule = rank && rules[tail(rank)];
  return rule ? own.filter(s => s.rule === rule) : own;
}

const mapKeys = data.varying.filter(key => valuesOf(key, settingsWith([key])).length > 1);

// The axes at first: group size across and a rank parameter up if both differ,
// else the keys with the most values.
function bestAxes() {
  const many = [...mapKeys].sort((a, b) =>
    valuesOf(b, settingsWith([b])).length - valuesOf(a, settingsWith([a])).length);
  const group = mapKeys.find(key => key === "method.group_size");
  const rank = many.find(key => key.startsWith("method.rank."));
  const x = group || many.find(key => key !== rank);
  return [x, rank || many.find(key => key !== x)];
}

function drawMap() {
  const column = data.columns[$("map-figure").value];
  const [x, y] = [mapKeys[$("map-x").value], mapKeys[$("map-y").value]];
  $("map-title").textContent = `${column.title}: ${short(x)} x ${short(y)}`;
  $("map-note").textContent = "";
  const settings = settingsWith([x, y]);
  const [across, up] = [valuesOf(x, settings), valuesOf(y, settings)];
  if (x === y || across.length < 2 || up.length < 2) {
    return leaveOut("map", `No two settings differ in both ${x} and ${y}: choose other keys.`);
  }
  let most = 0;
  const cells = up.map(v => across.map(u => {
    const here = settings.filter(s => s.config[x] === u && s.config[y] === v)
      .map(s => column.cells[s.index].value).filter(value => value !== null);
    most = Math.max(most, here.length);
    return here.length === 0 ? null : here.reduce((a, b) => a + b) / here.length;
  }));
  const digits = value => value === null ? ""
    : column.decimals < 0 ? value.toPrecision(-column.decimals) : value.toFixed(column.decimals);
  if (most > 1) {
    $("map-note").textContent =
      `Each cell is the mean of up to ${count(most, "setting")}, as other keys differ too.`;
  }
  $("map").style.maxWidth = `${320 + 140 * across.length}px`;
  return plot("map", [{
    type: "heatmap", x: across.map(plain), y: up.map(plain), z: cells,
    text: cells.map(row => row.map(digits)), texttemplate: "%{text}",
    colorscale: "Cividis", reversescale: column.better === "lower", xgap: 2, ygap: 2,
    colorbar: { title: { text: plain(column.title) }, outlinewidth: 0 }, hoverongaps: false,
    hovertemplate: `${short(x)} %{x}, ${short(y)} %{y}: %{text}<extra></extra>`,
  }], {
    height: 160 + 60 * Math.min(up.length, 12),
    xaxis: { title: { text: x }, type: "category", showgrid: false },
    yaxis: { title: { text: y, standoff: 12 }, type: "category", showgrid: false },
  });
}

// ---- One run: its ranks and singular values

const factored = data.runs.filter(run => run.ranks !== null);
const chosenRun = () => factored[document.querySelector("select.run").value];

function drawRanks() {
  const { step, layers } = chosenRun().ranks;
  const cut = layers.filter(layer => layer.rank.some(rank => rank > 0));
  const dense = layers.filter(layer => !cut.includes(layer)).map(layer => layer.name);
  $("ranks-note").textContent = (cut.length === 0 ? "" :
    "Each point is a decomposition; in a gap the layer was dense. ") +
    (dense.length === 0 ? "" : `Never factored: ${dense.join(", ")}.`);
  if (cut.length === 0) {
    return leaveOut("ranks", "No layer of this run was ever factored.");
  }
  return plot("ranks", cut.map((layer, i) => ({
    x: step, y: layer.rank.map(rank => rank > 0 ? rank : null), name: plain(layer.name),
    mode: "lines+markers",
    // Ranks are often equal; dashes keep the lines below visible.
    line: { shape: "hv", color: color(i), width: 2, dash: DASHES[i % DASHES.length] },
    marker: { size: 5 },
    hovertemplate: `${plain(layer.name)}: rank %{y} of ${layer.full} at step %{x}<extra></extra>`,
  })), {
    height: Math.max(380, Math.min(700, 90 + 20 * cut.length)),
    showlegend: true,
    xaxis: { title: { text: "step" } },
    yaxis: { title: { text: "rank" }, rangemode: "tozero" },
  });
}

// One small plot per layer, with the first and the last decomposition.
function drawSpectra() {
  const spectra = chosenRun().spectra;
  if (spectra === null) {
    return leaveOut("spectra", "This run logged no singular values.");
  }
  const { layers, first_step, last_step } = spectra;
  $("spectra-note").textContent = "One plot per layer, both axes logarithmic; dots mark the rank that was kept.";
  const across = Math.min(layers.length, $("spectra").clientWidth < 900 ? 3 : 4);
  const down = Math.ceil(layers.length / across);
  const height = 190 * down + 90;
  const gaps = { x: 0.3 / across, y: 60 / (height - 90) };
  const extra = { height, annotations: [], margin: { l: 55, r: 15, t: 30, b: 60 },
    legend: { orientation: "h", yanchor: "bottom", y: 1 + 24 / (height - 90), x: 0 } };
  const axis = { type: "log", gridcolor: style("--line"), tickfont: { size: 11 } };
  const ticks = {};
  const width = (1 - gaps.x * (across - 1)) / across;
  const tall = (1 - gaps.y * (down - 1)) / down;
  const traces = [];
  layers.forEach((layer, i) => {
    const n = i === 0 ? "" : i + 1;
    const left = (i % across) * (width + gaps.x);
    const top = 1 - Math.floor(i / across) * (tall + gaps.y);
    extra["xaxis" + n] = { ...axis, domain: [left, left + width], anchor: "y" + n };
    extra["yaxis" + n] = { ...axis, domain: [Math.max(0, top - tall), top], anchor: "x" + n };
    ticks["xaxis" + n] = ticks["yaxis" + n] = null;
    extra.annotations.push({ text: plain(layer.name), showarrow: false, xref: "paper",
      yref: "paper", x: left + width / 2, y: top, xanchor: "center", yanchor: "bottom" });
    ["first", "last"].forEach((when, k) => {
      const { index, value, rank } = layer[when];
      const name = `${when} decomposition, step ${k === 0 ? first_step : last_step}`;
      // A logarithmic axis cannot show zeros.
      const line = { x: index, y: value.map(v => v > 0 ? v : null), xaxis: "x" + n,
        yaxis: "y" + n, name, legendgroup: when, showlegend: i === 0, mode: "lines",
        line: { color: color(k), width: 2, dash: DASHES[k] },
        hovertemplate: `${plain(layer.name)}: %{y:.4g} at %{x}<extra>${name}</extra>` };
      traces.push(line);
      const at = index.findIndex(j => j >= rank);
      if (rank > 0 && at >= 0 && value[at] > 0) {
        traces.push({ ...line, x: [index[at]], y: [value[at]], mode: "markers",
          showlegend: false, marker: { color: color(k), size: 8 },
          hovertemplate: `${plain(layer.name)}: rank ${rank}<extra>${name}</extra>` });
      }
    });
  });
  return plot("spectra", traces, extra, ticks);
}

// ---- All together

function drawRun() {
  return factored.length === 0
    ? Promise.all([leaveOut("ranks", "None of these runs has factored layers."),
        leaveOut("spectra", "None of these runs has factored layers.")])
    : Promise.all([drawRanks(), drawSpectra()]);
}

function drawAll() {
  const curves = [drawCurves("bytes", "B"), drawCurves("seconds", "s")];
  const map = mapKeys.length > 1 ? drawMap() : leaveOut("map", data.varying.length === 0
    ? "All runs share one configuration apart from their seeds: there are no keys to compare over."
    : `A heat map needs two keys with several values each; here ${
        mapKeys.length === 1 ? "only " + mapKeys[0] + " has them" : "no key has them"}.`);
  return Promise.all([drawFront(), ...curves, map, drawRun()]);
}

function start() {
  drawHead();
  for (const [what, unit] of [["bytes", "B"], ["seconds", "s"]]) {
    $(what + "-log").checked = wantsLog(what);
    $(what + "-log").addEventListener("change", () => drawCurves(what, unit));
  }
  if (mapKeys.length > 1) {
    const [x, y] = bestAxes();
    fill($("map-figure"), data.columns.map(c => c.title));
    fill($("map-x"), mapKeys, mapKeys.indexOf(x));
    fill($("map-y"), mapKeys, mapKeys.indexOf(y));
    for (const id of ["map-figure", "map-x", "map-y"]) {
      $(id).addEventListener("change", drawMap);
    }
  } else {
    $("map-controls").hidden = true;
  }
  // Both selectors choose the same run; at first one with singular values.
  const withSpectra = Math.max(0, factored.findIndex(run => run.spectra !== null));
  const selectors = document.querySelectorAll("select.run");
  for (const select of selectors) {
    fill(select, factored.map(run => run.folder), withSpectra);
    select.closest("p").hidden = factored.length === 0;
    select.addEventListener("change", () => {
      selectors.forEach(other => { other.value = select.value; });
      drawRun();
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  drawAll().then(() => { document.body.dataset.drawn = "all"; });
}

start();
