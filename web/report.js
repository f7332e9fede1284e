// The report page: reads the JSON of `goodput map --json` that stands in it and shows it, the answer first. Each section is
// a function of the data that returns elements, or nothing when the study has nothing for it. plots.js draws.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

// ---- numbers and words

// Three significant digits, never an exponent.
function number(value) {
  if (value == null) return "–";
  if (value === 0) return "0";
  const digits = Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value)))));
  return value.toLocaleString("en", {minimumFractionDigits: 0, maximumFractionDigits: digits});
}
const signed = value => (value > 0 ? "+" : value < 0 ? "−" : "") + number(Math.abs(value));
const share = (value, digits = 0) => value == null ? "–" : `${(value * 100).toFixed(digits).replace("-", "−")}\u00a0%`;
const signedShare = value => value == null ? "–" : `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value * 100).toFixed(0)}\u00a0%`;
const interval = (e, show = number) => e?.low != null && e?.high != null ? `${show(e.low)} to ${show(e.high)}` : null;
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const idOf = settings => JSON.stringify(settings);
const labelOf = settings => settings.batching === "static"
  ? `max_num_seqs ${settings.max_num_seqs}, static`
  : `max_num_seqs ${settings.max_num_seqs}, ${settings.max_num_batched_tokens} tokens, ${settings.scheduling_policy}`;

const chosenId = data.chosen && idOf(data.chosen.settings);
const frontierIds = new Set(data.frontier.map(c => idOf(c.settings)));
const measured = data.points.filter(p => p.audit);  // a load generator ran and audited itself; the others are predictions
const classNames = data.workload.classes.map(c => c.name);
const predictionOf = point => data.points.find(
  p => !p.audit && p.schedule_hash === point.schedule_hash && p.rate === point.rate && idOf(p.settings) === idOf(point.settings));

// Measured settings in the order of their goodput, each with its points by rate.
const measuredSettings = (() => {
  const groups = new Map();
  for (const p of measured) {
    if (p.phase !== "measure") continue;
    const id = idOf(p.settings);
    if (!groups.has(id)) groups.set(id, {id, settings: p.settings, label: labelOf(p.settings), points: []});
    groups.get(id).points.push(p);
  }
  for (const g of groups.values()) g.points.sort((a, b) => a.rate - b.rate);
  const rank = id => { const i = data.capacity.findIndex(c => idOf(c.settings) === id); return i < 0 ? 1e9 : i; };
  return [...groups.values()].sort((a, b) => (b.id === chosenId) - (a.id === chosenId) || rank(a.id) - rank(b.id));
})();

// ---- tables

// columns: [{head, unit, cell: row => text or node, text: left-aligned, wrap}]; the first column heads its row.
function table(caption, columns, rows, rowClass = () => null) {
  const headCell = c => el("th", {scope: "col", class: c.text ? "text" : null}, c.head, c.unit ? el("small", {}, c.unit) : null);
  const bodyCell = (c, row, i) => {
    const content = c.cell(row) ?? "–";
    const absent = content === "–" ? "absent" : null;
    return i === 0 ? el("th", {scope: "row"}, content)
                   : el("td", {class: c.wrap ? "wrap" : c.text ? "text" : absent}, content);
  };
  return el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
    el("table", {}, el("caption", {}, caption),
      el("thead", {}, el("tr", {}, columns.map(headCell))),
      el("tbody", {}, rows.map(row => el("tr", {class: rowClass(row)}, columns.map((c, i) => bodyCell(c, row, i)))))));
}
const folded = (summary, ...content) => el("details", {}, el("summary", {}, summary), ...content);
const section = (id, title, explanation, ...content) =>
  el("section", {"aria-labelledby": id}, el("h2", {id}, title), explanation ? el("p", {}, explanation) : null, ...content);

function settingsCell(id, label) {
  const tags = [];
  if (id === chosenId) tags.push(el("span", {class: "tag"}, "chosen"));
  if (frontierIds.has(id)) tags.push(el("span", {class: "on-frontier", title: "on the frontier"}, "◆"));
  return [label, ...tags];
}

// ---- the answer

// "23 % less (95\u00a0% interval 12 % to 33 %) than …"; honest when the interval holds 0.
function regretSentence(rule, name) {
  if (!rule) return null;
  if (chosenId && idOf(rule.settings) === chosenId) return `It is also ${name}.`;
  const r = rule.regret, range = interval(r, value => share(value));
  const how = rule.measured ? "" : ", simulated";
  const base = `${name[0].toUpperCase()}${name.slice(1)} (${rule.label})`;
  if (r.low != null && r.low <= 0 && r.high >= 0)
    return `${base} cannot be told apart from it: ${number(rule.goodput.value)} requests/s, a difference of ${signedShare(-r.value)} (95\u00a0% interval of the loss ${range}${how}).`;
  return `${base} finishes ${number(rule.goodput.value)} requests/s, ${share(Math.abs(r.value))} ${r.value >= 0 ? "less" : "more"}${range ? ` (95\u00a0% interval of the loss ${range}${how})` : how}.`;
}

function headline() {
  const c = data.chosen;
  const kicker = el("p", {class: "kicker"}, [data.model, data.machine, data.started].filter(Boolean).join(" · "));
  if (!c) {
    const found = data.capacity.length > 0 && data.capacity.every(row => row.rate == null);
    return [kicker, el("h1", {}, found
      ? `No setting keeps ${share(data.floor)} of every class inside its targets at any rate tried.`
      : "This study has no choice yet.")];
  }
  const range = interval(c.goodput);
  const title = el("h1", {}, "Run ", el("em", {}, c.label), `: it finishes ${number(c.goodput.value)} requests per second inside their targets`,
    range ? ` (95\u00a0% interval ${range}).` : ".");
  const lead = [regretSentence(data.largest_batch, "the largest batch"), c.undecided
    ? `Undecided: an interval of attainment straddles the floor of ${share(data.floor)}; a larger budget settles it.` : null];
  return [kicker, title, ...lead.filter(Boolean).map(text => el("p", {class: "lead"}, text))];
}

function figures() {
  const entries = [];
  const add = (name, value, unit, ...details) => entries.push(el("div", {}, el("dt", {}, name),
    el("dd", {}, el("span", {class: "value"}, value, unit ? el("small", {}, ` ${unit}`) : null),
      details.filter(Boolean).map(text => el("span", {class: "detail"}, text)))));
  const c = data.chosen;
  if (c) {
    add("Goodput of the choice", number(c.goodput.value), "requests/s", interval(c.goodput) && `95\u00a0% interval ${interval(c.goodput)}`,
      `confirmed on fresh seeds at ${number(c.offered_rate)} requests/s offered`);
    if (c.capacity_rate != null)
      add("Capacity", number(c.capacity_rate), "requests/s", `headroom ${signedShare(c.headroom)} over the confirmed rate`,
        `every class at least ${share(data.floor)} inside its targets`);
  }
  for (const [name, rule] of [["Regret of the largest batch", data.largest_batch], ["Regret of offline throughput", data.offline_throughput]])
    if (rule) add(name, signedShare(rule.regret.value), null, interval(rule.regret, share) && `95\u00a0% interval ${interval(rule.regret, share)}`,
      rule.label, rule.measured ? "measured" : "simulated");
  const b = data.background;
  if (b?.interactive_goodput_with && b.interactive_goodput_without) {
    const on = b.interactive_goodput_with, off = b.interactive_goodput_without;
    add("Cost of background work", signedShare(on.value / off.value - 1), null, "of the interactive classes’ goodput",
      `${number(on.value)} requests/s with it, ${number(off.value)} without`, b.measured ? "measured" : "simulated");
  }
  return entries.length ? el("dl", {class: "figures"}, entries) : null;
}

function whatToSet() {
  const c = data.chosen;
  if (!c) return null;
  const others = c.not_separable_labels;
  return el("div", {class: "set"}, el("h3", {}, "What to set"), el("pre", {}, c.flags),
    el("p", {}, c.why),
    others.length ? el("p", {class: "explain"}, `Not separable from it on this evidence: ${others.join("; ")}.`) : null);
}

const notes = () => data.notes.length
  ? el("aside", {class: "note", "aria-label": "What a reader must know"}, el("ul", {}, data.notes.map(n => el("li", {}, n)))) : null;

// ---- sections

function frontierSection() {
  const rows = data.capacity.filter(c => c.rate != null);
  if (rows.length === 0) return null;
  // Settings are compared on one kind of evidence: predictions cover them all, measurements only a few.
  const simulated = rows.some(c => c.predicted);
  const evidence = c => simulated ? c.predicted : c.measured;
  const pointOf = (c, at, axis, how) => ({x: at[axis], y: at.goodput_rps,
    text: `${c.label}\n${number(at.goodput_rps)} requests/s inside their targets\n${number(at[axis])} ms · ${how}`});
  const pointFor = (c, axis) => pointOf(c, evidence(c), axis, simulated ? "predicted" : "measured");
  const series = axis => {
    const have = rows.filter(c => evidence(c)?.[axis] != null);
    const pick = test => have.filter(test).map(c => pointFor(c, axis));
    // The line: as latency is allowed to grow, the best goodput so far. In one plane the frontier of three figures is not a
    // curve, so its other members stand as diamonds below the line.
    const bestSoFar = have.map(c => pointFor(c, axis)).sort((a, b) => a.x - b.x || b.y - a.y)
      .filter((p, i, all) => all.slice(0, i).every(earlier => earlier.y < p.y)).map(p => ({...p, text: null}));
    const largest = data.largest_batch && idOf(data.largest_batch.settings);
    return [
      {name: simulated ? "predicted, at its capacity" : "measured", colour: "soft", marker: "circle", hollow: simulated, points: pick(() => true)},
      {name: "measured, at the largest rate tried that kept the floor", colour: "series-2", marker: "square", size: 4,
        points: simulated ? rows.filter(c => c.measured?.[axis] != null).map(c => pointOf(c, c.measured, axis, "measured")) : []},
      {name: "best goodput within that latency", colour: "accent", line: true, marker: "none", points: bestSoFar},
      {name: "frontier", colour: "accent", marker: "diamond", hollow: true, points: pick(c => frontierIds.has(idOf(c.settings)))},
      {name: "largest batch", colour: "series-1", marker: "triangle", size: 6, points: pick(c => idOf(c.settings) === largest)},
      {name: "chosen", colour: "accent", marker: "circle", size: 8, points: pick(c => idOf(c.settings) === chosenId)},
    ];
  };
  const plot = (axis, title) => chart({title, unit: "goodput in requests/s; up and left is better", xTitle: "ms, at the setting's own capacity", series: series(axis), height: 330});
  const none = data.capacity.length - rows.length;
  return section("frontier", "The batch goodput frontier",
    `Each mark is one setting at its own capacity: the largest rate at which every class keeps ${share(data.floor)} of its requests inside their targets. Diamonds are settings that no other beats in goodput, first token and gap at once. Settings are compared as predicted, since only a few were measured; squares show how those did.` +
    (none ? ` ${plural(none, "setting")} of ${data.capacity.length} kept no rate and ${none === 1 ? "is" : "are"} not drawn.` : ""),
    key(series("interactive_ttft_p95_ms").filter(s => s.points.length)),
    el("div", {class: "plots"}, plot("interactive_ttft_p95_ms", "Time to first token, p95 interactive"),
      plot("interactive_gap_p95_ms", "Gap between tokens, p95 interactive")));
}

function capacitySection() {
  if (data.capacity.length === 0) return null;
  const attainment = name => ({head: name, unit: "attained", cell: c => c.attainment_by_class?.[name] == null ? "–" : share(c.attainment_by_class[name])});
  const best = c => c.measured ?? c.predicted;
  const offline = data.capacity.some(c => c.offline_tokens_per_s != null);
  const columns = [
    {head: "Setting", cell: c => settingsCell(idOf(c.settings), c.label)},
    {head: "Goodput", unit: "requests/s", cell: c => number(c.goodput_rps)},
    {head: "Predicted rate", unit: "requests/s", cell: c => number(c.predicted?.rate)},
    {head: "Measured rate", unit: "requests/s", cell: c => number(c.measured?.rate)},
    ...classNames.map(attainment),
    {head: "TTFT p95", unit: "interactive, ms", cell: c => number(best(c)?.interactive_ttft_p95_ms)},
    {head: "Gap p95", unit: "interactive, ms", cell: c => number(best(c)?.interactive_gap_p95_ms)},
    ...(offline ? [{head: "Offline", unit: "output tokens/s", cell: c => number(c.offline_tokens_per_s)}] : []),
  ];
  const chosenClass = c => idOf(c.settings) === chosenId ? "chosen" : null;
  const short = data.capacity.filter((c, i) => i < 8 || chosenClass(c) || (data.largest_batch && idOf(c.settings) === idOf(data.largest_batch.settings)));
  const rest = data.capacity.length - short.length;
  return section("capacity", "Capacity of every setting",
    "Goodput at capacity, best first. Where a setting was measured, the figures are the measured ones; all others are predicted by the same scheduler on virtual time. A measured rate is the largest tried that kept the floor, so it can lie below the predicted capacity. ◆: on the frontier.",
    table(rest > 0 ? `The best settings, the choice and the largest batch` : "All settings", columns, short, chosenClass),
    rest > 0 ? folded(`All ${data.capacity.length} settings`, table("All settings, best first", columns, data.capacity, chosenClass)) : null);
}

const pointText = p => `${number(p.rate)} requests/s offered\n${plural(p.requests, "request")}, ${p.regime}${p.verdict.valid ? "" : `\nINVALID: ${p.verdict.reasons.join(", ")}`}`;

function percentileSection() {
  if (measuredSettings.length === 0) return null;
  const lines = (group, metric, percentile, extra) => {
    const mark = (p, source) => source?.[metric][percentile] == null ? null
      : {x: p.rate, y: source[metric][percentile], invalid: source === p && !p.verdict.valid,
         text: `${source === p ? "measured" : "predicted"} ${percentile}: ${number(source[metric][percentile])} ms\n${pointText(p)}`};
    const keep = marks => marks.filter(Boolean);
    return [
      {name: `predicted ${percentile}`, line: true, dash: [5, 4], hollow: true, size: 3, ...extra, points: keep(group.points.map(p => mark(p, predictionOf(p))))},
      {name: `measured ${percentile}`, line: true, ...extra, points: keep(group.points.map(p => mark(p, p)))},
    ];
  };
  const p50 = {colour: "series-0", marker: "circle"}, p95 = {colour: "series-1", marker: "square"};
  const charts = measuredSettings.flatMap(group => [
    chart({title: group.label + (group.id === chosenId ? " (chosen)" : ""), unit: "TTFT in ms", xTitle: "requests/s offered",
      series: [...lines(group, "ttft_ms", "p50", p50), ...lines(group, "ttft_ms", "p95", p95)], height: 230}),
    chart({title: "", unit: "TPOT in ms, the same setting", xTitle: "requests/s offered", series: [...lines(group, "tpot_ms", "p50", p50), ...lines(group, "tpot_ms", "p95", p95)], height: 230}),
  ]);
  return section("percentiles", "Latency over the offered rate",
    "All classes together, per measured setting: what was measured, beside what the simulator had said for the same schedule. A percentile without a 95\u00a0% upper bound at its number of requests is left out.",
    key([{name: "p50 measured", line: true, ...p50}, {name: "p95 measured", line: true, ...p95},
         {name: "p50 predicted", line: true, dash: [4, 3], hollow: true, ...p50}, {name: "p95 predicted", line: true, dash: [4, 3], hollow: true, ...p95},
         ...(measured.some(p => !p.verdict.valid) ? [{name: "INVALID point", colour: "bad", marker: "cross"}] : [])]),
    el("div", {class: "plots"}, charts));
}

function attainmentSection() {
  if (measuredSettings.length === 0) return null;
  const seriesOf = group => classNames.map((name, i) => ({
    name, colour: `series-${i % 5}`, marker: MARKER_NAMES[i % 4], line: true, shift: (i - (classNames.length - 1) / 2) * 6,
    points: group.points.filter(p => p.attainment.by_class[name]).map(p => {
      const a = p.attainment.by_class[name];
      return {x: p.rate, y: a.value, low: a.low, high: a.high, invalid: !p.verdict.valid,
        text: `${name}: ${share(a.value, 1)}${interval(a, share) ? ` (95\u00a0% interval ${interval(a, share)})` : ""}\n${pointText(p)}`};
    }),
  }));
  const lows = measuredSettings.flatMap(g => g.points.flatMap(p => Object.values(p.attainment.by_class).map(a => a?.low ?? a?.value ?? 1)));
  const bottom = Math.max(0, Math.floor(Math.min(data.floor, ...lows) * 10 - 0.5) / 10);
  return section("attainment", "Attainment per class",
    `The share of scheduled requests that ended well and inside every target of their class; failures count as misses. Bars are 95\u00a0% intervals, the dashed line is the floor of ${share(data.floor)}.`,
    key(classNames.map((name, i) => ({name, colour: `series-${i % 5}`, marker: MARKER_NAMES[i % 4], line: true}))),
    el("div", {class: "plots"}, measuredSettings.map(group => chart({
      title: group.label + (group.id === chosenId ? " (chosen)" : ""), unit: "", xTitle: "requests/s offered", percent: true,
      yRange: [bottom, 1 + (1 - bottom) * 0.05], level: data.floor, series: seriesOf(group), height: 230}))));
}

function pointsSection() {
  if (measured.length === 0) return null;
  const failed = p => Object.entries(p.outcomes).filter(([name, n]) => name !== "ok" && n > 0).map(([name, n]) => `${n} ${name}`).join(", ") || "0";
  const state = p => p.verdict.valid ? p.regime : [el("span", {class: "tag bad"}, "INVALID"), ` ${p.verdict.reasons.join(", ")}`];
  const columns = [
    {head: "Setting", cell: p => settingsCell(idOf(p.settings), labelOf(p.settings))},
    {head: "Phase", text: true, cell: p => p.phase},
    {head: "Offered", unit: "requests/s", cell: p => number(p.rate)},
    {head: "Requests", cell: p => number(p.requests)},
    {head: "Goodput", unit: "requests/s", cell: p => number(p.goodput_rps)},
    ...classNames.map(name => ({head: name, unit: "attained (95 %)", cell: p => {
      const a = p.attainment.by_class[name];
      return a ? `${share(a.value)}${a.low != null ? ` (${(a.low * 100).toFixed(0)}–${(a.high * 100).toFixed(0)})` : ""}` : "–";
    }})),
    {head: "TTFT p50", unit: "ms", cell: p => number(p.ttft_ms.p50)}, {head: "TTFT p95", unit: "ms", cell: p => number(p.ttft_ms.p95)},
    {head: "TPOT p50", unit: "ms", cell: p => number(p.tpot_ms.p50)}, {head: "E2E p50", unit: "ms", cell: p => number(p.e2e_ms.p50)},
    {head: "Output", unit: "tokens/s", cell: p => number(p.throughput.output_tokens_per_s)},
    {head: "Running", unit: "mean", cell: p => number(p.observed.running.mean)}, {head: "KV use", unit: "mean", cell: p => share(p.observed.kv_usage.mean)},
    {head: "Preempted", cell: p => number(p.observed.preemptions)}, {head: "Prefix hits", cell: p => share(p.observed.prefix_hit_rate)},
    {head: "Not ok", cell: failed}, {head: "State", text: true, cell: state},
  ];
  return section("points", "Measured points",
    "Everything above rests on these. Attainment counts the requests scheduled in the window, throughput what was delivered in it. An INVALID point is kept and shown, and never used to recommend.",
    folded(`${plural(measured.length, "point")}, ${measured.filter(p => !p.verdict.valid).length} INVALID`, table("Measured points in the order in which they were run", columns, measured)));
}

function ttftSection() {
  const map = data.ttft_map;
  if (!map || map.measured.length + map.predicted.length === 0) return null;
  const all = [...map.measured, ...map.predicted];
  const most = Math.max(...all.map(c => c.ttft_p50_ms ?? 0)), least = Math.min(...all.map(c => c.ttft_p50_ms ?? Infinity));
  const weight = ms => most > least ? Math.log(ms / least) / Math.log(most / least) : 0.5;
  const heat = (title, cells) => {
    if (cells.length === 0) return null;
    const bins = axis => [...new Map(cells.map(c => [c[axis].join(), c[axis]])).values()].sort((a, b) => a[0] - b[0]);
    const range = ([low, high]) => high - low === 1 ? `${low}` : `${number(low)}–${number(high - 1)}`;
    const running = bins("running"), prompts = bins("prompt_tokens");
    const cell = (p, r) => {
      const found = cells.find(c => c.prompt_tokens[0] === p[0] && c.running[0] === r[0]);
      if (found?.ttft_p50_ms == null) return el("td", {class: "absent"}, "–");
      return el("td", {style: `background: rgba(var(--heat), ${(0.06 + 0.5 * weight(found.ttft_p50_ms)).toFixed(3)})`},
        number(found.ttft_p50_ms), el("small", {}, `n ${found.n}`));
    };
    return el("div", {}, el("h3", {}, title), el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": title}, el("table", {class: "heat"},
      el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "tokens ↓ running →"), running.map(r => el("th", {scope: "col"}, range(r))))),
      el("tbody", {}, prompts.map(p => el("tr", {}, el("th", {scope: "row"}, range(p)), running.map(r => cell(p, r))))))));
  };
  return section("ttft", "First token by prompt length and running sequences",
    `Median TTFT in ms of the requests with that prompt length that found that many sequences running when they arrived; ${map.label}. Stronger colour is slower.`,
    el("div", {class: "plots"}, heat("Measured", map.measured), heat("Predicted", map.predicted)));
}

function timelineSection() {
  if (data.timelines.length === 0) return null;
  const until = Math.max(...data.timelines.flatMap(t => t.steps.map(s => s.end_ms)));
  const ends = t => table(`${t.title} batching: when each request's last token came`,
    [{head: "Request", cell: e => `${e.request}`}, {head: "Last token", unit: "ms", cell: e => number(e.at_ms)}], t.ended);
  return section("timeline", "Who ran in each iteration",
    "The same requests with room for four at once. A static batch keeps a finished request's seat empty until its last member is done, and those that wait keep waiting; a continuous one gives the seat away in the next iteration. Numbers count iterations.",
    key([{name: "prefill: prompt tokens", colour: "series-0", marker: "square", size: 5},
         {name: "decode: one token", colour: "decode", marker: "square", size: 5},
         ...(data.timelines.some(t => t.title === "static") ? [{name: "empty seat", colour: "bad", marker: "square", hollow: true, size: 5}] : []), {name: "waiting", colour: "soft", line: true, dash: [2, 4]}]),
    data.timelines.map(t => [el("h3", {}, `${t.title[0].toUpperCase()}${t.title.slice(1)} batching`),
      timelineSvg(t, until, `${t.title} batching: ${plural(t.steps.length, "iteration")}`)]).flat(),
    folded("As tables", el("div", {class: "plots"}, data.timelines.map(ends))));
}

function predictionSection() {
  const e = data.prediction_error;
  if (!e) return null;
  const cell = (name, of = row => row) => row => signedShare(of(row)[name]);
  const atSpeed = row => row.at_speed;
  const largest = errors => `${signedShare(errors.goodput)} of goodput, ${signedShare(errors.ttft_p50)} of median TTFT, ${signedShare(errors.tpot_p50)} of median TPOT`;
  return section("prediction", "How far the prediction was off",
    `Predicted ÷ measured − 1 on every measured point. The largest: ${largest(e)}. A shared machine changes its speed from minute to minute: “slowdown” is how much longer the iterations of a point took than the probe’s costs say of the same iterations. With that taken out, the largest errors are ${largest(e.at_speed)}.`,
    table("Error of prediction per measured point", [
      {head: "Setting", cell: row => row.label}, {head: "Offered", unit: "requests/s", cell: row => number(row.rate)},
      {head: "Goodput", cell: cell("goodput")}, {head: "TTFT p50", cell: cell("ttft_p50")}, {head: "TPOT p50", cell: cell("tpot_p50")},
      {head: "Slowdown", unit: "of the machine", cell: row => number(row.slowdown)},
      {head: "Goodput", unit: "at that speed", cell: cell("goodput", atSpeed)}, {head: "TTFT p50", unit: "at that speed", cell: cell("ttft_p50", atSpeed)},
      {head: "TPOT p50", unit: "at that speed", cell: cell("tpot_p50", atSpeed)},
    ], e.rows));
}

function methodSection() {
  const lengths = l => l.kind === "fixed" ? `${l.tokens}` : l.kind === "uniform" ? `${l.low}–${l.high}` : `${l.low}–${l.high}, median ${number(l.median)}`;
  const targets = name => Object.entries(data.targets[name] ?? {}).map(([k, ms]) => `${k.replace(/_ms$/, "").toUpperCase()} ≤ ${number(ms)} ms`).join(", ") || "none";
  const total = data.workload.classes.reduce((sum, c) => sum + c.share, 0);
  const unloaded = name => { const u = data.unloaded_ms[name]; return u ? `${number(u.ttft_p50)} / ${number(u.tpot_p50)}` : "–"; };
  const classes = table("The load: classes of requests", [
    {head: "Class", cell: c => c.name}, {head: "Share", unit: "of arrivals", cell: c => share(c.share / total)}, {head: "Priority", unit: "lower first", cell: c => `${c.priority}`},
    {head: "Prompt", unit: "tokens", cell: c => lengths(c.prompt_tokens) + (c.shared_documents ? ` over ${c.shared_documents} documents` : "")},
    {head: "Output", unit: "tokens", cell: c => lengths(c.output_tokens)}, {head: "Targets", text: true, cell: c => targets(c.name)},
    {head: "Unloaded", unit: "TTFT / TPOT p50, ms", cell: c => unloaded(c.name)},
  ], data.workload.classes);
  const k = data.step_cost, us = ns => number(ns / 1000);
  const facts = [
    ["Program", data.version], ["Machine", data.machine], ["Model", data.model], ["Started", data.started],
    ["Seed", data.seed], ["Workload", `${data.workload.name}, ${data.workload.arrivals} arrivals`], ["Workload hash", data.workload.hash],
    ["Schedules", [...new Set(measured.map(p => `${p.schedule_hash.slice(0, 12)} (seed ${p.seed}, ${number(p.rate)} requests/s)`))].join("; ")],
    ["Cost of a step", k && `${us(k.base_ns)} µs + ${us(k.prefill_ns)} µs per prompt token + ${us(k.decode_ns)} µs per decoding sequence + ${number(k.kv_ns)} ns per KV position read; further terms for long, crowded and mixed iterations stand in the JSON` +
      (k.median_relative_error != null ? `; median error ${share(k.median_relative_error, 1)}, p90 ${share(k.p90_relative_error, 1)}` : "")],
    ["Study file", data.study_file],
  ].filter(([, value]) => value);
  return section("method", "Method", "Latency counts from the scheduled time of a request, arrivals are never slowed down to what the server can take, and each scheduled request ends in exactly one outcome. What is claimed is claimed for this machine, this model and this mix. Intervals are 95 %: Student’s over replicates, for attainment no narrower than Wilson’s; percentiles are nearest rank over requests that ended well.",
    classes, el("div", {class: "scroll"}, el("table", {class: "facts"}, el("caption", {}, "To repeat it"),
      el("tbody", {}, facts.map(([name, value]) => el("tr", {}, el("th", {scope: "row"}, name), el("td", {}, value)))))));
}

// ---- the page

document.title = data.chosen ? `goodput: ${data.chosen.label}` : "goodput: map";
document.getElementById("report").replaceChildren(...[
  el("header", {}, headline()), figures(), whatToSet(), notes(),
  frontierSection(), capacitySection(), attainmentSection(), percentileSection(), ttftSection(), timelineSection(),
  predictionSection(), pointsSection(), methodSection(),
  el("footer", {}, `${data.version}. The data of this page stand in it as JSON, schema ${data.schema}; goodput study show reads the study file.`),
].filter(Boolean));
// Paper shows everything.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));
