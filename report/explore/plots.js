// Figures as SVG text, from numbers alone.  Colours are variables of page.css, so figures follow the light and the dark
// theme; `printed` puts colours in their place, for files.
const WIDTH = 360;
const HEIGHT = 230;
const LEFT = 60;
const RIGHT = 12;
const BOTTOM = 40;
const ROW = 18;

const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

// A number for readers: with three digits or fewer, and commas between thousands.
function shown(value, digits = 3) {
  if (value === null || Number.isNaN(value)) return "no number";
  if (!Number.isFinite(value)) return value > 0 ? "infinite" : "minus infinite";
  if (value && !(Math.abs(value) >= 1e-4 && Math.abs(value) < 1e6)) return value.toExponential(1);
  return (+value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 8 });
}

// A number on an axis, which may have an end.
const told = (value, { cap = Infinity }) => (value > cap ? `> ${tickLabel(cap)} ↑` : shown(value));

// An SVG element; numbers are rounded, and attributes that are undefined are left out.
function tag(name, attributes, content = "") {
  const given = Object.entries(attributes).filter(([, value]) => value !== undefined);
  const texts = given.map(([key, value]) => ` ${key}="${typeof value === "number" ? +value.toFixed(3) : value}"`);
  return `<${name}${texts.join("")}>${escaped(content)}</${name}>`;
}

const at = (x, y) => `${x.toFixed(1)},${y.toFixed(1)}`;
const outline = (d, stroke, more = {}) => tag("path", { d, fill: "none", stroke, ...more });
const text = (x, y, content, more = {}) => tag("text", { x, y, ...more }, content);
const READ = { class: "read" }; // Texts that say values, which a screen reader gets when the place changes.
const soft = (anchor) => ({ "text-anchor": anchor, fill: "var(--soft)" });

function drawing(width, height, label, body) {
  const names = `role="img" aria-label="${escaped(label)}"`;
  const look = 'font-family="system-ui, sans-serif" font-size="12" fill="var(--ink)"';
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" ${names} ${look}>${body}</svg>`;
}

// A sentence in place of a figure.
const noteChart = (note) => drawing(WIDTH, HEIGHT, note, text(WIDTH / 2, HEIGHT / 2, note, soft("middle")));

// The vertical axis: a grey line and a number at each tick, and its label.
function verticalAxis(ticks, down, label) {
  const lines = ticks.map((tick) => {
    const y = down(tick);
    const number = text(LEFT - 6, y + 4, tickLabel(tick), { "text-anchor": "end" });
    return outline(`M${at(LEFT, y)}H${WIDTH - RIGHT}`, "var(--line)") + number;
  });
  const turned = { transform: `translate(11 ${label.at}) rotate(-90)`, ...soft("middle") };
  return lines.join("") + tag("text", turned, label.text);
}

// An SVG text with the colours of `style` in place of variables, on its background, as a file.
function printed(svg, style) {
  const coloured = svg.replace(/var\((--\w+)\)/g, (_, name) => style.getPropertyValue(name).trim());
  return coloured.replace(/>/, `><rect width="100%" height="100%" fill="${style.getPropertyValue("--card").trim()}"/>`);
}

// Ticks of an axis from `low` to `high`, about five of them.
function ticksBetween(low, high, log) {
  if (!log) {
    const rough = (high - low) / 5 || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999) * power;
    const first = Math.ceil(low / step - 1e-9);
    const last = Math.floor(high / step + 1e-9);
    return Array.from({ length: last - first + 1 }, (_, i) => +((first + i) * step).toPrecision(12));
  }
  const from = Math.ceil(Math.log10(low) - 1e-9);
  const to = Math.floor(Math.log10(high) + 1e-9);
  const stride = Math.max(1, Math.ceil((to - from) / 5));
  const decades = [];
  for (let power = from; power <= to; power += stride) decades.push(+(10 ** power).toPrecision(12));
  if (decades.length > 2) return decades;
  const between = [];
  for (let power = from - 1; power <= to; power++) {
    for (const digit of [1, 2, 5]) between.push(+(digit * 10 ** power).toPrecision(12));
  }
  return between.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
}

// Limits of an axis around values, which are within `axis.floor` and `axis.cap`, or `axis.from` and `axis.to` if given.
function limits(values, axis) {
  const kept = values.filter((value) => Number.isFinite(value) && (!axis.log || value > 0));
  const cap = axis.cap ?? Infinity;
  let low = axis.from ?? Math.max(axis.floor ?? -Infinity, Math.min(...kept, cap));
  let high = axis.to ?? Math.min(cap, Math.max(...kept, low));
  if (!Number.isFinite(low)) [low, high] = [axis.log ? 0.1 : 0, 1];
  if (low >= high) [low, high] = axis.log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
  if (axis.log || axis.from !== undefined) return [low, high];
  const margin = 0.05 * (high - low);
  return [low - margin, high + margin];
}

// Lines against x, with a legend of at most six entries.
//
// x, y: {label, log, from, to, floor, cap}; lines: [{name, colour, dash, points: [[x, y], ...], value}], where `value`
// stands in the legend; marks: [{x, text}], vertical lines.  `probe`, a place {x, y} in the drawing, puts the values at
// the nearest x into the legend.
function lineChart({ label, x, y, lines, marks = [], probe }) {
  const rows = Math.ceil(lines.length / 2);
  const top = 22 + rows * ROW;
  const height = HEIGHT + 12 + rows * ROW;
  const bottom = height - BOTTOM;
  const right = WIDTH - RIGHT;
  const all = lines.flatMap((line) => line.points);
  const first = [...all.map((point) => point[0]), ...marks.map((mark) => mark.x)];
  const second = all.map((point) => point[1]);
  const [from, to] = limits(first, x);
  const [low, high] = limits(second, y);
  const across = (value) => LEFT + (right - LEFT) * share(value, from, to, x.log);
  const down = (value) => bottom - (bottom - top) * share(value, low, high, y.log);
  const far = (point) => Math.abs(across(point[0]) - probe.x);
  const nearest = (points) => points.reduce((best, point) => (far(point) < far(best) ? point : best), points[0]);
  const probed = probe && nearest(all)?.[0];
  let body = verticalAxis(ticksBetween(low, high, y.log), down, { text: y.label, at: (top + bottom) / 2 });
  lines.forEach((line, i) => {
    const [left, base] = [LEFT - 40 + (i % 2) * 165, 12 + Math.floor(i / 2) * ROW];
    const value = probed === undefined || !line.points.length ? line.value : nearest(line.points)[1];
    body += outline(`M${left},${base - 4}h22`, line.colour, { "stroke-width": 2.5, "stroke-dasharray": line.dash });
    body += text(left + 28, base, line.name + (value === undefined ? "" : `: ${told(value, y)}`), READ);
  });
  for (const tick of ticksBetween(from, to, x.log)) {
    body += outline(`M${at(across(tick), bottom)}v4`, "var(--soft)");
    body += text(across(tick), bottom + 17, tickLabel(tick), { "text-anchor": "middle" });
  }
  body += outline(`M${LEFT},${bottom}H${right}`, "var(--soft)");
  body += text((LEFT + right) / 2, height - 6, x.label, soft("middle"));
  for (const mark of probed === undefined ? marks : [{ x: probed, text: `${tickLabel(probed)} ${x.label}` }]) {
    const place = across(mark.x);
    const turned = soft(place > WIDTH / 2 ? "end" : "start");
    body += outline(`M${at(place, top)}V${bottom}`, "var(--soft)", { "stroke-dasharray": "3 3" });
    body += text(place, top - 5, mark.text, { ...READ, ...turned });
  }
  // The lines are in a drawing of their own, which ends at the edges of the plot.
  const curves = lines.map(({ colour, dash, points }) => {
    const places = points.map(([x0, y0]) => [across(x0), Math.max(-1e3, Math.min(1e3, down(y0)))]);
    const finite = places.filter(([, place]) => !Number.isNaN(place));
    const d = finite.map((place, i) => (i ? "L" : "M") + at(...place)).join("");
    return outline(d, colour, { "stroke-width": 2, "stroke-linejoin": "round", "stroke-dasharray": dash });
  });
  const edges = `${LEFT} ${top - 1} ${right - LEFT + 1} ${bottom - top + 2}`;
  const [left, above, width, tall] = edges.split(" ");
  const frame = `x="${left}" y="${above}" width="${width}" height="${tall}" viewBox="${edges}"`;
  body += `<svg ${frame}>${curves.join("")}</svg>`;
  return drawing(WIDTH, height, label, body);
}

// Where a value is between two others, from 0 to 1.
function share(value, from, to, log) {
  const scale = log ? Math.log10 : Number;
  return (scale(value) - scale(from)) / (scale(to) - scale(from));
}

function tickLabel(tick) {
  const power = Math.abs(tick) >= 1e6 || (tick && Math.abs(tick) < 0.001);
  return power ? tick.toExponential(0).replace("e+", "e") : tick.toLocaleString("en", { maximumFractionDigits: 6 });
}

// Squares with the entries of a matrix, given as rows: red is positive, blue is negative, full colour is `largest`.
function squares(rows, { x, y, width, height }, largest) {
  let body = tag("rect", { x, y, width: width * rows[0].length, height: height * rows.length, fill: "var(--zero)" });
  rows.forEach((row, i) =>
    row.forEach((entry, j) => {
      const strength = Math.min(1, Math.abs(entry) / largest);
      if (!(strength > 0.004)) return;
      const place = { x: x + j * width, y: y + i * height, width, height };
      body += tag("rect", { ...place, fill: `var(--${entry > 0 ? "plus" : "minus"})`, "fill-opacity": strength });
    }),
  );
  return body;
}

const rowsOf = (A, wide) => Array.from({ length: A.length / wide }, (_, i) => A.slice(i * wide, (i + 1) * wide));
const largestOf = (entries) => entries.reduce((most, entry) => Math.max(most, Math.abs(entry)), 0) || 1;

// The entries of A (2n x 2n), and below them the entry at the place of the probe.
function matrixMap({ label, A, n, probe }) {
  const size = 200;
  const side = size / (2 * n);
  let body = squares(rowsOf(A, 2 * n), { x: 0, y: 0, width: side, height: side }, largestOf(A));
  body += outline(`M${size / 2},0V${size}M0,${size / 2}H${size}`, "var(--soft)", { "stroke-width": 0.7 });
  if (probe) {
    const [i, j] = [probe.y, probe.x].map((place) => Math.max(0, Math.min(2 * n - 1, Math.floor(place / side))));
    const name = (k) => `${k < n ? "" : "next "}${(k % n) + 1}`;
    body += tag("rect", { x: j * side, y: i * side, width: side, height: side, fill: "none", stroke: "var(--ink)" });
    body += text(0, size + 14, `row ${name(i)}, column ${name(j)}: ${shown(A[i * 2 * n + j])}`, READ);
  }
  return drawing(size, size + 18, label, body);
}

// A prompt, its context of m columns and its queries, and a last row for each of several `rows`, [{name, entries}].
function promptChart({ label, columns, m, rows, largest, probe }) {
  const n = columns.length - m;
  const [top, height, last, left, gap] = [20, Math.min(17, 190 / (2 * n)), 20, LEFT + 8, 8];
  const width = (WIDTH - left - gap) / columns.length;
  const across = (c) => left + c * width + (c < m ? 0 : gap);
  const parts = (entries, y, tall, most) =>
    [[0, m], [m, columns.length]].map(([from, to]) => {
      const place = { x: across(from), y, width, height: tall };
      return squares(entries.map((row) => row.slice(from, to)), place, most);
    }).join("");
  const foot = top + 2 * n * height + 10;
  const end = foot + rows.length * (last + 6);
  let body = text(left, 12, `context, ${m} columns`, soft("start"));
  body += text(WIDTH, 12, `query, states 1 to ${n}`, soft("end"));
  body += text(left - 6, top + (n * height) / 2 + 4, "state", soft("end"));
  body += text(left - 6, top + 1.5 * n * height + 4, "γ next", soft("end"));
  body += parts(Array.from({ length: 2 * n }, (_, i) => columns.map(({ column }) => column[i])), top, height, 1);
  rows.forEach(({ name, entries }, k) => {
    const y = foot + k * (last + 6);
    body += text(left - 6, y + 14, name, { "text-anchor": "end", "font-size": 11 });
    body += parts([entries], y, last, largest);
    if (width < 24) return;
    entries.forEach((entry, c) => {
      const look = { "text-anchor": "middle", "font-size": 9.5 };
      body += text(across(c) + width / 2, y + 13.5, entry.toFixed(Math.abs(entry) < 10 ? 2 : 1), look);
    });
  });
  if (probe) {
    const c = columns.findLastIndex((_, i) => i === 0 || across(i) <= probe.x);
    const values = rows.map(({ name, entries }) => `${name} ${shown(entries[c])}`);
    const kind = c < m ? `column ${c + 1}` : "query";
    body += tag("rect", { x: across(c), y: top, width, height: end - top - 6, fill: "none", stroke: "var(--ink)" });
    body += text(0, end + 14, `${kind}, state ${columns[c].state + 1}: ${values.join(", ")}`, READ);
  }
  return drawing(WIDTH, end + 20, label, body);
}

// The states of a chain in a row with their transitions as arcs and their rewards, and below each state its values: a
// line for the true value, and a dot for each estimate, [{name, colour, path, error}], whose `path` has those of all
// layers.  `layer` is that of the dots.
function chainChart({ label, P, reward, value, estimates, layer, n, probe }) {
  const [row, top, bottom] = [76, 176, 330];
  const step = (WIDTH - LEFT) / n;
  const across = (state) => LEFT + (state + 0.5) * step;
  const radius = Math.min(12, step * 0.32);
  const apart = Math.min(9, step / 4);
  const near = estimates.flatMap(({ path }) => path.flatMap((each) => [...each])).filter(Number.isFinite);
  const most = 3 * largestOf(value);
  const [low, high] = limits([0, ...value, ...near.map((entry) => Math.max(-most, Math.min(most, entry)))], {});
  const down = (entry) => bottom - (bottom - top) * share(Math.max(low, Math.min(high, entry)), low, high);
  const line = (x, y) => outline(`M${at(x - 16, y)}h32`, "var(--ink)", { "stroke-width": 2 });
  const dot = (cx, cy, fill, r = 4, opacity = 1) => tag("circle", { cx, cy, r, fill, "fill-opacity": opacity });
  let body = verticalAxis(ticksBetween(low, high), down, { text: "value", at: (top + bottom) / 2 });
  P.forEach((p, i) => {
    const [from, to] = [Math.floor(i / n), i % n];
    if (p >= 0.01) body += arc(across(from), across(to), row, radius, p);
  });
  body += text(LEFT - 6, 158, "reward", soft("end"));
  for (let state = 0; state < n; state++) {
    const x = across(state);
    const look = { fill: "var(--card)", stroke: "var(--ink)", "stroke-width": 1.5 };
    body += tag("circle", { cx: x, cy: row, r: radius, ...look });
    body += text(x, row + 4, state + 1, { "text-anchor": "middle", "font-size": 11 });
    body += text(x, 158, reward[state].toFixed(n > 6 ? 1 : 2), { "text-anchor": "middle", "font-size": 11 });
    body += line(x, down(value[state]));
    estimates.forEach(({ colour, path }, k) => {
      const place = x + (k ? apart : -apart);
      const reached = path.slice(0, layer + 1).map((each) => down(each[state])).filter(Number.isFinite);
      for (const y of reached.slice(0, -1)) body += dot(place, y, colour, 1.7, 0.45);
      if (Number.isFinite(path[layer][state])) body += dot(place, reached.at(-1), colour);
    });
  }
  body += line(20, bottom + 20) + text(40, bottom + 24, "true value", { "font-size": 11 });
  estimates.forEach(({ name, colour, error }, k) => {
    const x = 112 + 148 * k;
    body += dot(x, bottom + 20, colour);
    body += text(x + 8, bottom + 24, `${name}: error ${shown(error, 2)}`, { "font-size": 10.5 });
  });
  if (probe) {
    const state = Math.max(0, Math.min(n - 1, Math.floor((probe.x - LEFT) / step)));
    const found = estimates.map(({ name, path }) => `${name} ${shown(path[layer][state])}`);
    body += text(8, bottom + 44, `state ${state + 1}: true ${shown(value[state])}, ${found.join(", ")}`, READ);
  }
  return drawing(WIDTH, bottom + 50, label, body);
}

// A transition as an arc with an arrowhead, above the row if it leads to the right; its strength is its probability.
function arc(start, end, row, radius, p) {
  const strength = 0.15 + 0.85 * p;
  const look = { "stroke-opacity": strength, "stroke-width": 0.6 + 2 * p };
  if (start === end) return outline(`M${at(start - 4, row + radius)}q-9,22 4,22q13,0 5,-20`, "var(--ink)", look);
  const side = end > start ? -1 : 1;
  const [middle, foot] = [(start + end) / 2, row + side * radius];
  const bend = foot + side * 1.3 * Math.min(82, 16 + 0.28 * Math.abs(end - start));
  const tip = [end, foot + 2 * side];
  // The unit vector from the tip along the arc, for the arrowhead.
  const back = [middle - tip[0], bend - tip[1]];
  const [x, y] = back.map((part) => part / Math.hypot(...back));
  const wing = (turn) => at(tip[0] + 6 * x + turn * 3 * y, tip[1] + 6 * y - turn * 3 * x);
  const head = { d: `M${wing(1)}L${at(...tip)}L${wing(-1)}z`, fill: "var(--ink)", "fill-opacity": strength };
  return outline(`M${at(start, foot)}Q${at(middle, bend)} ${at(...tip)}`, "var(--ink)", look) + tag("path", head);
}
