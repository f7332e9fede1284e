// Drawing for the report page: charts on uPlot (axes, scales, zoom, resizing; the marks are drawn here, because markers
// must differ in shape and carry intervals), the heat table's colour, and the timeline of iterations as SVG.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

// Makes an element: el("td", {class: "text"}, "a", el("b", {}, "c")). Text is always text, never markup.
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value != null) node.setAttribute(name, value);
  node.append(...children.flat().filter(child => child != null));
  return node;
}
function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A colour by its name in report.css, as it is now: the scheme may change, and paper is light.
const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// Everything that is redrawn when the width, the scheme or the medium changes.
const redraws = [];
const redrawAll = () => redraws.forEach(redraw => redraw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
addEventListener("beforeprint", () => { document.documentElement.classList.add("printing"); redrawAll(); });
addEventListener("afterprint", () => { document.documentElement.classList.remove("printing"); redrawAll(); });

// Path of a marker around (0, 0) with radius r, in any context that has moveTo, lineTo, arc, closePath.
const MARKERS = {
  circle: (c, r) => c.arc(0, 0, r, 0, 2 * Math.PI),
  square: (c, r) => c.rect(-r * 0.9, -r * 0.9, 1.8 * r, 1.8 * r),
  triangle: (c, r) => { c.moveTo(0, -1.2 * r); c.lineTo(1.1 * r, 0.8 * r); c.lineTo(-1.1 * r, 0.8 * r); c.closePath(); },
  diamond: (c, r) => { c.moveTo(0, -1.3 * r); c.lineTo(1.3 * r, 0); c.lineTo(0, 1.3 * r); c.lineTo(-1.3 * r, 0); c.closePath(); },
  cross: (c, r) => { c.moveTo(-r, -r); c.lineTo(r, r); c.moveTo(r, -r); c.lineTo(-r, r); },
};
const MARKER_NAMES = ["circle", "square", "triangle", "diamond"];

function drawMarker(context, series, x, y, point, ratio) {
  const name = point.invalid ? "cross" : series.marker ?? "circle";
  const ink = colour(point.invalid ? "bad" : series.colour);
  context.save();
  context.translate(x, y);
  context.beginPath();
  MARKERS[name](context, (series.size ?? 4) * ratio);
  context.lineWidth = (name === "cross" ? 2 : 1.6) * ratio;
  context.strokeStyle = ink;
  context.fillStyle = series.hollow ? colour("paper") : ink;
  if (name !== "cross") context.fill();
  context.stroke();
  context.restore();
}

function drawInterval(context, series, x, low, high, ratio) {
  context.save();
  context.strokeStyle = colour(series.colour);
  context.globalAlpha = 0.55;
  context.lineWidth = 1.4 * ratio;
  const cap = 3.5 * ratio;
  context.beginPath();
  context.moveTo(x, low); context.lineTo(x, high);
  context.moveTo(x - cap, low); context.lineTo(x + cap, low);
  context.moveTo(x - cap, high); context.lineTo(x + cap, high);
  context.stroke();
  context.restore();
}

// Draws one series: its line (through valid points), intervals, then markers. Returns where its marks are, in CSS pixels.
function drawSeries(u, series) {
  const context = u.ctx, ratio = devicePixelRatio;
  const at = p => [u.valToPos(p.x, "x", true) + (series.shift ?? 0) * ratio, u.valToPos(p.y, "y", true)];
  if (series.line) {
    context.save();
    context.beginPath();
    series.points.filter(p => !p.invalid).forEach((p, i) => context[i ? "lineTo" : "moveTo"](...at(p)));
    context.strokeStyle = colour(series.colour);
    context.lineWidth = 1.8 * ratio;
    context.setLineDash((series.dash ?? []).map(length => length * ratio));
    context.stroke();
    context.restore();
  }
  return series.points.map(p => {
    const [x, y] = at(p);
    if (p.low != null && p.high != null)
      drawInterval(context, series, x, u.valToPos(p.low, "y", true), u.valToPos(p.high, "y", true), ratio);
    if (series.marker !== "none") drawMarker(context, series, x, y, p, ratio);
    return {left: (x - u.bbox.left) / ratio, top: (y - u.bbox.top) / ratio, text: p.text};
  });
}

function drawLevel(u, level) {
  const context = u.ctx, ratio = devicePixelRatio, y = u.valToPos(level, "y", true);
  context.save();
  context.strokeStyle = colour("soft");
  context.lineWidth = ratio;
  context.setLineDash([5 * ratio, 4 * ratio]);
  context.beginPath();
  context.moveTo(u.bbox.left, y);
  context.lineTo(u.bbox.left + u.bbox.width, y);
  context.stroke();
  context.restore();
}

// Zoom by dragging is uPlot's; a double click goes back. The tip shows the nearest mark within a finger's width.
function showTip(u, tip, marks) {
  const {left, top} = u.cursor;
  let nearest = null, least = 22;
  if (left >= 0)
    for (const mark of marks) {
      const distance = Math.hypot(mark.left - left, mark.top - top);
      if (mark.text && distance < least) [nearest, least] = [mark, distance];
    }
  tip.hidden = !nearest;
  if (!nearest) return;
  tip.textContent = nearest.text;
  const x = nearest.left + u.over.offsetLeft, rightSide = x > u.width / 2;
  tip.style.left = rightSide ? "auto" : `${x + 12}px`;
  tip.style.right = rightSide ? `${u.width - x + 12}px` : "auto";
  tip.style.top = `${Math.max(0, nearest.top + u.over.offsetTop - 18)}px`;
}

// A chart: {title, unit, xTitle, series: [{name, colour, marker, hollow, line, dash, size, shift,
// points: [{x, y, low, high, text, invalid}]}], level: y of a dashed line, yRange, height, percent}. Returns a <figure>.
function chart(spec) {
  const place = el("div", {class: "plot", role: "img", "aria-label": `${spec.title}; the same numbers stand in a table below`});
  const figure = el("figure", {}, el("figcaption", {}, spec.title, el("span", {}, ` ${spec.unit}`)), place);
  const points = spec.series.flatMap(series => series.points);
  if (points.length === 0) {
    place.append(el("p", {class: "absent"}, "Nothing was measured here."));
    return figure;
  }
  const order = points.map((p, i) => i).sort((a, b) => points[a].x - points[b].x);
  const column = get => order.map(i => get(points[i]) ?? null);
  const data = [column(p => p.x), column(p => p.y), column(p => p.low), column(p => p.high)];
  const tip = el("div", {class: "tip", hidden: ""});
  let marks = [];
  const axis = extra => ({
    stroke: () => colour("soft"), font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
    labelSize: 20, labelGap: 2, grid: {stroke: () => colour("rule"), width: 1}, ticks: {show: false}, gap: 6, ...extra,
  });
  const pad = (u, low, high) => {
    const margin = (high - low || Math.abs(high) || 1) * 0.07;
    return [low - margin, high + margin];
  };
  const fromZero = (u, low, high) => spec.yRange ?? [0, high * 1.08 || 1];
  let plot = null;
  const draw = () => {
    plot?.destroy();
    // On paper a column is about 85 mm wide, which the page does not know yet when it is asked to draw for it.
    const width = document.documentElement.classList.contains("printing") ? 320 : Math.floor(place.clientWidth) || 480;
    plot = new uPlot({
      width, height: spec.height ?? 270, legend: {show: false}, padding: [10, 14, 0, 0],
      cursor: {points: {show: false}, y: false, x: false, drag: {x: true, y: false}},
      scales: {x: {time: false, range: spec.xRange ?? pad}, y: {range: fromZero}},
      axes: [axis({label: spec.xTitle, size: 30}),
             axis({size: 48, values: (u, ticks) => ticks.map(v => spec.percent ? `${Math.round(v * 100)} %` : number(v))})],
      series: [{}, ...data.slice(1).map(() => ({paths: () => null, points: {show: false}}))],
      hooks: {
        draw: [u => {
          u.ctx.save();
          u.ctx.beginPath();
          u.ctx.rect(u.bbox.left - 8, u.bbox.top - 8, u.bbox.width + 16, u.bbox.height + 16);
          u.ctx.clip();
          if (spec.level != null) drawLevel(u, spec.level);
          marks = spec.series.flatMap(series => drawSeries(u, series));
          u.ctx.restore();
        }],
        setCursor: [u => showTip(u, tip, marks)],
      },
    }, data, place);
    place.append(tip);
  };
  redraws.push(draw);
  new ResizeObserver(() => {
    if (plot && Math.abs(plot.width - place.clientWidth) > 1) requestAnimationFrame(draw);
  }).observe(place);
  requestAnimationFrame(draw);
  return figure;
}

// What the markers mean: [{name, colour, marker, hollow, line, dash}].
function key(entries) {
  return el("ul", {class: "key"}, entries.map(entry => {
    const picture = svg("svg", {width: 26, height: 14, viewBox: "-13 -7 26 14", "aria-hidden": "true"});
    const ink = `var(--${entry.colour})`;
    if (entry.line)
      picture.append(svg("line", {x1: -12, x2: 12, y1: 0, y2: 0, style: `stroke: ${ink}; stroke-width: 1.8`,
                                  "stroke-dasharray": (entry.dash ?? []).join(" ")}));
    if (entry.marker && entry.marker !== "none") {
      const path = [];
      const pen = {moveTo: (x, y) => path.push(`M${x} ${y}`), lineTo: (x, y) => path.push(`L${x} ${y}`),
                   closePath: () => path.push("Z"), rect: (x, y, w, h) => path.push(`M${x} ${y}h${w}v${h}h${-w}Z`),
                   arc: (x, y, r) => path.push(`M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`)};
      MARKERS[entry.marker](pen, Math.min(entry.size ?? 4, 5));
      picture.append(svg("path", {d: path.join(""),
                                  style: `stroke: ${ink}; stroke-width: 1.6; fill: ${entry.hollow ? "var(--paper)" : ink}`}));
    }
    return el("li", {}, picture, entry.name);
  }));
}

// Requests that entered together in static batching hold their seats until the last of them ends.
function seatEnds(timeline) {
  const first = new Map();
  for (const step of timeline.steps)
    for (const lane of step.lanes) if (!first.has(lane.request)) first.set(lane.request, step.start_ms);
  const end = new Map(timeline.ended.map(e => [e.request, e.at_ms]));
  const seats = new Map();
  for (const [request, start] of first) {
    const mates = [...first].filter(([, other]) => other === start).map(([mate]) => end.get(mate) ?? 0);
    seats.set(request, {start, end: end.get(request), held: timeline.title === "static" ? Math.max(...mates) : end.get(request)});
  }
  return seats;
}

// One row per request, one box per iteration that it ran in; both timelines share the scale `until`.
function timelineSvg(timeline, until, title) {
  const place = el("div");
  const draw = () => {
    const width = place.clientWidth || 960, left = 78, right = 8, top = 22, row = 26;
    const seats = seatEnds(timeline), requests = [...seats.keys()].sort((a, b) => a - b);
    const height = top + requests.length * row + 26;
    const x = ms => left + (width - left - right) * ms / until;
    const y = request => top + requests.indexOf(request) * row;
    const picture = svg("svg", {class: "timeline", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title});
    timeline.steps.forEach((step, i) => {
      const middle = (x(step.start_ms) + x(step.end_ms)) / 2;
      picture.append(svg("line", {class: "tick", x1: x(step.end_ms), x2: x(step.end_ms), y1: top - 2, y2: height - 24}));
      if (x(step.end_ms) - x(step.start_ms) > 15 || i % 2 === 0)
        picture.append(svg("text", {x: middle, y: 12, "text-anchor": "middle"}, `${i + 1}`));
    });
    for (const request of requests) {
      const seat = seats.get(request), middle = y(request) + row / 2;
      picture.append(svg("text", {x: 0, y: middle + 4}, `request ${request}`));
      if (seat.start > 0)
        picture.append(svg("line", {class: "waiting", x1: x(0), x2: x(seat.start) - 3, y1: middle, y2: middle}));
      if (seat.held > seat.end + 1e-9) {
        const wide = x(seat.held) - x(seat.end);
        picture.append(svg("rect", {class: "empty", x: x(seat.end) + 2, y: y(request) + 5, width: wide - 4, height: row - 10, rx: 2}));
        if (wide > 80)
          picture.append(svg("text", {class: "empty-label", x: x(seat.end) + wide / 2, y: middle + 4, "text-anchor": "middle"}, "empty seat"));
      }
    }
    for (const step of timeline.steps)
      for (const lane of step.lanes) {
        const box = svg("rect", {class: lane.decode ? "decode" : "prefill", x: x(step.start_ms) + 1, y: y(lane.request) + 4,
                                 width: Math.max(1, x(step.end_ms) - x(step.start_ms) - 2), height: row - 8, rx: 2});
        box.append(svg("title", {}, `request ${lane.request}: ${lane.tokens} ${lane.decode ? "token decoded" : "prompt tokens"}`));
        picture.append(box);
      }
    for (let tick = 0; tick <= 4; ++tick)
      picture.append(svg("text", {x: x(until * tick / 4), y: height - 6, "text-anchor": tick === 4 ? "end" : tick ? "middle" : "start"},
                         `${number(until * tick / 4)} ms`));
    place.replaceChildren(picture);
  };
  redraws.push(draw);
  let drawnAt = 0;
  new ResizeObserver(() => {
    if (place.clientWidth === drawnAt) return;
    drawnAt = place.clientWidth;
    requestAnimationFrame(draw);
  }).observe(place);
  return place;
}
