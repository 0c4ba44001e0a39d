// Figures as SVG text, from numbers alone.  Colours are variables of page.css, so figures follow the light and the dark
// theme; `printed` puts colours in their place, for files.
const WIDTH = 360;
const HEIGHT = 230;
const LEFT = 60;
const RIGHT = 12;
const BOTTOM = 40;
const ROW = 18;

const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

// A number for readers: three digits, and commas between thousands.
function shown(value) {
  if (value === null || Number.isNaN(value)) return "no number";
  if (!Number.isFinite(value)) return value > 0 ? "infinite" : "minus infinite";
  if (value && !(Math.abs(value) >= 1e-4 && Math.abs(value) < 1e6)) return value.toExponential(1);
  return (+value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 8 });
}

// An SVG element; numbers are rounded, and attributes that are undefined are left out.
function tag(name, attributes, content = "") {
  const given = Object.entries(attributes).filter(([, value]) => value !== undefined);
  const texts = given.map(([key, value]) => ` ${key}="${typeof value === "number" ? +value.toFixed(3) : value}"`);
  return `<${name}${texts.join("")}>${escaped(content)}</${name}>`;
}

const at = (x, y) => `${x.toFixed(1)},${y.toFixed(1)}`;
const outline = (d, stroke, more = {}) => tag("path", { d, fill: "none", stroke, ...more });
const text = (x, y, content, more = {}) => tag("text", { x, y, ...more }, content);
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

// Parts of a line between the top and the bottom of the plot; a part that leaves the plot ends at its edge.
function inside(points, top, bottom) {
  const parts = [[]];
  for (const [x, y] of points) {
    if (!Number.isFinite(y)) {
      if (parts.at(-1).length) parts.push([]);
      continue;
    }
    const outside = y < top || y > bottom + 0.01;
    if (!outside || parts.at(-1).length) parts.at(-1).push([x, Math.min(bottom, Math.max(y, top))]);
    if (outside) parts.push([]);
  }
  return parts.filter((part) => part.length);
}

// Lines against x, with a legend of at most six entries.
//
// x, y: {label, log, from, to, floor, cap}; lines: [{name, colour, dash, points: [[x, y], ...], value}], where `value`
// stands in the legend; marks: [{x, text}], vertical lines.
function lineChart({ label, x, y, lines, marks = [] }) {
  const rows = Math.ceil(lines.length / 2);
  const top = 10 + rows * ROW;
  const height = HEIGHT + rows * ROW;
  const bottom = height - BOTTOM;
  const right = WIDTH - RIGHT;
  const all = lines.flatMap((line) => line.points);
  const first = [...all.map((point) => point[0]), ...marks.map((mark) => mark.x)];
  const second = all.map((point) => point[1]);
  const [from, to] = limits(first, x);
  const [low, high] = limits(second, y);
  const across = (value) => LEFT + (right - LEFT) * share(value, from, to, x.log);
  const down = (value) => bottom - (bottom - top) * share(value, low, high, y.log);
  let body = verticalAxis(ticksBetween(low, high, y.log), down, { text: y.label, at: (top + bottom) / 2 });
  lines.forEach((line, i) => {
    const [left, base] = [LEFT - 40 + (i % 2) * 165, 12 + Math.floor(i / 2) * ROW];
    const value = line.value === undefined ? "" : `: ${line.value}`;
    body += outline(`M${left},${base - 4}h22`, line.colour, { "stroke-width": 2.5, "stroke-dasharray": line.dash });
    body += text(left + 28, base, line.name + value);
  });
  for (const tick of ticksBetween(from, to, x.log)) {
    body += outline(`M${at(across(tick), bottom)}v4`, "var(--soft)");
    body += text(across(tick), bottom + 17, tickLabel(tick), { "text-anchor": "middle" });
  }
  body += outline(`M${LEFT},${bottom}H${right}`, "var(--soft)");
  body += text((LEFT + right) / 2, height - 6, x.label, soft("middle"));
  for (const mark of marks) {
    const place = across(mark.x);
    const turned = place > WIDTH / 2;
    body += outline(`M${at(place, top)}V${bottom}`, "var(--soft)", { "stroke-dasharray": "3 3" });
    body += text(place + (turned ? -5 : 5), top + 12, mark.text, soft(turned ? "end" : "start"));
  }
  for (const { colour, dash, points } of lines) {
    const kept = points.filter((point) => point[0] >= from * 0.999 && point[0] <= to * 1.001);
    const places = kept.map(([x0, y0]) => [across(x0), down(y.log ? Math.max(y0, low / 10) : y0)]);
    for (const part of inside(places, top, bottom)) {
      const look = { "stroke-width": 2, "stroke-linejoin": "round", "stroke-dasharray": dash };
      if (part.length === 1) body += tag("circle", { cx: part[0][0], cy: part[0][1], r: 2.5, fill: colour });
      else body += outline(`M${part.map((point) => at(...point)).join("L")}`, colour, look);
    }
  }
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

// The entries of A (2n x 2n) as squares: red is positive, blue is negative, full colour is the largest entry.
function matrixMap({ label, A, n }) {
  const size = 200;
  const side = size / (2 * n);
  const largest = A.reduce((most, entry) => Math.max(most, Math.abs(entry)), 0) || 1;
  let body = tag("rect", { width: size, height: size, fill: "var(--zero)" });
  A.forEach((entry, i) => {
    const strength = Math.abs(entry) / largest;
    if (!(strength > 0.004)) return;
    const place = { x: (i % (2 * n)) * side, y: Math.floor(i / (2 * n)) * side, width: side, height: side };
    body += tag("rect", { ...place, fill: `var(--${entry > 0 ? "plus" : "minus"})`, "fill-opacity": strength });
  });
  body += outline(`M${size / 2},0V${size}M0,${size / 2}H${size}`, "var(--soft)", { "stroke-width": 0.7 });
  return drawing(size, size, label, body);
}

// The states of a chain in a row with their transitions as arcs, and below each state its values, true and estimated.
function chainChart({ label, P, value, estimate, found, n }) {
  const [row, top, bottom] = [92, 200, 300];
  const step = (WIDTH - LEFT - RIGHT) / n;
  const across = (state) => LEFT + (state + 0.5) * step;
  const radius = Math.min(12, step * 0.32);
  const near = estimate.filter(Number.isFinite).map((entry) => Math.max(-1e3, Math.min(1e3, entry)));
  const [low, high] = limits([0, ...value, ...near], {});
  const down = (entry) => bottom - (bottom - top) * share(Math.max(low, Math.min(high, entry)), low, high);
  const ring = (cx, cy) => tag("circle", { cx, cy, r: 6, fill: "none", stroke: "var(--ink)", "stroke-width": 1.7 });
  const dot = (cx, cy) => tag("circle", { cx, cy, r: 3.2, fill: "var(--td)" });
  let body = verticalAxis(ticksBetween(low, high), down, { text: "value", at: (top + bottom) / 2 });
  P.forEach((p, i) => {
    const [from, to] = [Math.floor(i / n), i % n];
    if (p >= 0.01) body += arc(across(from), across(to), row, radius, p);
  });
  for (let state = 0; state < n; state++) {
    const x = across(state);
    body += tag("circle", {
      cx: x,
      cy: row,
      r: radius,
      fill: "var(--card)",
      stroke: "var(--ink)",
      "stroke-width": 1.5,
    });
    body += text(x, row + 4, state + 1, { "text-anchor": "middle", "font-size": 11 });
    body += ring(x, down(value[state]));
    if (Number.isFinite(estimate[state])) body += dot(x, down(estimate[state]));
  }
  body += ring(14, bottom + 18) + text(26, bottom + 22, "true value");
  body += dot(112, bottom + 18) + text(122, bottom + 22, found);
  return drawing(WIDTH, bottom + 30, label, body);
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
