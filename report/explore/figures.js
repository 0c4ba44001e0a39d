// What the figures and the texts of the page show, drawn at the next frame from the newest message.

const NAMES = { transformer: "pretrained", theta_td: "θᵀᴰ", lstd: "LSTD", constant: "one constant", zero: "zero" };
const LOOKS = {
  transformer: { colour: "var(--td)" },
  theta_td: { colour: "var(--theta)", dash: "7 3" },
  lstd: { colour: "var(--lstd)", dash: "7 3 2 3" },
  constant: { colour: "var(--constant)", dash: "2 3" },
  zero: { colour: "var(--none)", dash: "1 5" },
};
const TRACED = ["chain", "prompt"];
const COURSE = [...TRACED, "A", "shares", "sizes", "error", "ones", "numbers"];
const MSVE = { label: "error (MSVE)", log: true, floor: 1e-6, cap: 1e4 };
const point = () => view.points[view.at];
const shownWeights = () => point()?.weights ?? thetaTd(view.settings.states, 0);
// The results that figures of the test show.
const RESULTS = { steps: "tested", depths: "curves" };

const traced = () => trace(shownWeights(), view.settings, view, view.settings.depth);

// The SVG text of a figure, or what it waits for.
function figure(name) {
  if (!(name in RESULTS) || view[RESULTS[name]]) {
    const [draw, given] = FIGURES[name]();
    return draw({ ...given, probe: view.probe?.name === name ? view.probe : undefined });
  }
  const none = view.divergedAt.length && !view.divergedAt.includes(0);
  return noteChart(none ? "No seed has finite weights." : "After pretraining, or in a pause.");
}

const taskAxis = () => ({ label: "tasks seen", log: true, from: 1, to: view.settings.tasks });
const presentMark = () => (view.follows || !point()?.seen ? [] : [{ x: point().seen, text: "" }]);
const described = (title, lines, y) => {
  const values = lines.map(({ name, value }) => `${name}: ${value === undefined ? "no value so far" : told(value, y)}`);
  return `${title}. ${values.join("; ")}.`;
};

function course(title, y, chosen) {
  const lines = chosen.map(([name, value, colour, dash, source = view.points]) => {
    const points = source.filter((each) => each.seen > 0).map((each) => [each.seen, value(each)]);
    return { name, colour, dash, points, value: point() && value(point()) };
  });
  const label = described(`${title} against tasks seen`, lines, y);
  return [lineChart, { label, x: taskAxis(), y, lines, marks: presentMark() }];
}

const FIGURES = {
  chain() {
    const { task, length, values, rows } = traced();
    const { layer } = view;
    const estimates = Object.entries(rows).map(([name, each]) => {
      const path = each.map((row) => row.slice(length).map((entry) => -entry));
      return { name: NAMES[name], ...LOOKS[name], path, error: msveOf(task, values, path[layer]) };
    });
    const states = Array.from(values, (value, s) => {
      const found = estimates.map(({ name, path }) => `${name} ${shown(path[layer][s])}`);
      return `state ${s + 1}: true ${shown(value)}, ${found.join(", ")}`;
    });
    const label = `Estimates after ${counted(layer, "layer")}. ${states.join("; ")}.`;
    const given = { P: task.transition, reward: task.reward, value: values, n: values.length };
    return [chainChart, { label, ...given, estimates, layer }];
  },
  prompt() {
    const { task, columns, length, values, rows } = traced();
    const last = Object.entries(rows).map(([name, each]) => ({ name: NAMES[name], entries: each[view.layer] }));
    const texts = last.map(({ name, entries }) => `${name}: ${entries.map((entry) => shown(entry)).join(", ")}`);
    const label = `The prompt after ${counted(view.layer, "layer")}. Last row, ${texts.join("; ")}.`;
    const largest = largestOf([...values, ...task.reward]);
    return [promptChart, { label, columns, m: length, rows: last, largest }];
  },
  A() {
    const n = view.settings.states;
    const { A } = view.identifiable ? identifiable(shownWeights(), view.settings.discount) : shownWeights();
    const who = view.chosen === "mean" ? "mean over seeds" : `seed ${view.settings.seed + view.chosen}`;
    return [matrixMap, { label: `Map of A, ${who}. ${point() ? numbersText(point()) : ""}`, A, n }];
  },
  theta() {
    const n = view.settings.states;
    const label = "Map of A of θᵀᴰ: minus the identity beside the identity, and zeros below";
    return [matrixMap, { label, A: thetaTd(n).A, n }];
  },
  shares() {
    return course("Share of A explained", { label: "share of A", from: 0, to: 1 }, [
      ["α", (each) => each.measures.one, "var(--none)", "1 4"],
      ["α and β", (each) => each.measures.two, "var(--td)"],
      ["symmetry", (each) => each.measures.eight, "var(--theta)", "7 3"],
    ]);
  },
  sizes() {
    return course("Step sizes", { label: "step size" }, [
      ["α", (each) => each.measures.alpha, "var(--td)"],
      ["β", (each) => each.measures.beta, "var(--more)", "6 2"],
    ]);
  },
  error() {
    const lines = [["pretrained", (each) => each.error, "var(--td)"]];
    if (view.test.relabelled !== view.settings.relabelled) {
      const other = view.test.relabelled ? "renumbered" : "ordered";
      lines.push([other, (each) => each.other, "var(--more)", "6 2"]);
    }
    const reference = view.curves && thetaHere();
    if (reference !== null) {
      const ends = [{ seen: 1 }, { seen: view.settings.tasks }];
      lines.push(["θᵀᴰ", () => reference, "var(--theta)", "7 3", ends]);
    }
    return course("Error on unseen tasks", MSVE, lines);
  },
  steps() {
    const lines = Object.keys(NAMES).map((name) => {
      const points = view.tested[name].map((error, i) => [LENGTHS[i], error]);
      return { ...LOOKS[name], name: NAMES[name], points, value: points.at(-1)[1] };
    });
    const label = described("Error against steps in the prompt; with 100 steps", lines, MSVE);
    return [lineChart, { label, x: { label: "steps in the prompt", from: 0, to: 100 }, y: MSVE, lines }];
  },
  depths() {
    const [here, ...curve] = view.curves;
    const lines = ["transformer", "theta_td"].map((name) => ({
      ...LOOKS[name],
      name: NAMES[name],
      points: curve.map((each) => [each.x, each[name]]),
      value: here[name],
    }));
    const layers = counted(here.x, "layer");
    const label = described(`Error against layers, with ${layers}`, lines, MSVE);
    const x = { label: "layers at test", log: true, from: 1, to: 300 };
    return [lineChart, { label, x, y: MSVE, lines, marks: [{ x: here.x, text: layers }] }];
  },
  ones() {
    const layers = view.settings.depth;
    const given = { index: 0, rewards: "ones", steps: 0 };
    const { length, values, rows } = trace(shownWeights(), view.settings, given, 2 * layers);
    const lines = Object.entries(rows).map(([name, each]) => {
      const points = each.map((row, layer) => [layer, -meanOf(row.slice(length))]);
      return { ...LOOKS[name], name: NAMES[name], points, value: points[layers][1] };
    });
    const truth = [[0, values[0]], [2 * layers, values[0]]];
    lines.push({ name: "true value", colour: "var(--ink)", dash: "2 3", points: truth, value: values[0] });
    const y = { label: "mean estimate", cap: 4 * values[0] };
    const label = described(`Mean estimate if every reward is 1, after ${counted(layers, "layer")}`, lines, y);
    const marks = [{ x: layers, text: `${layers} layers` }];
    return [lineChart, { label, x: { label: "layers", from: 0, to: 2 * layers }, y, lines, marks }];
  },
};

// The error of theta^TD with the layers of pretraining, if the test has them and the chains of pretraining.
function thetaHere() {
  const same = view.test.depth === view.settings.depth && !view.test.environment;
  return same ? view.curves[0].theta_td : null;
}

const TEXTS = {
  numbers: () => (find("numbers").textContent = point() ? numbersText(point()) : ""),
  run: showRun,
};

function showRun() {
  const { settings, points, paused, done } = view;
  const present = point()?.seen ?? 0;
  const seen = view.follows && !done ? Math.max(present, view.seen ?? 0) : present;
  find("seen").textContent = `${seen.toLocaleString("en")} of ${settings.tasks.toLocaleString("en")} tasks`;
  find("time").max = Math.max(1, done ? points.length - 1 : keptAt(settings.tasks).length - 1);
  find("time").value = view.at;
  find("time").ariaValueText = counted(present, "task");
  find("pause").hidden = done;
  find("pause").textContent = paused ? "Go on" : "Pause";
  find("python").textContent = pythonText();
}

const dirty = new Set();
// Draw these figures and texts at the next frame.
function redraw(...names) {
  if (!dirty.size) requestAnimationFrame(draw);
  names.forEach((name) => dirty.add(name));
}

// Draw what fits into a frame; the rest follows in the next ones.
function draw() {
  const until = performance.now() + 5;
  for (const name of dirty) {
    if (performance.now() > until) break;
    dirty.delete(name);
    if (TEXTS[name]) TEXTS[name]();
    else PLOTS[name].innerHTML = figure(name);
  }
  if (dirty.size) requestAnimationFrame(draw);
}

// The place in a figure whose values are shown: that of the pointer, or where the arrow keys lead.
function probe(name, place) {
  view.probe = place && { name, ...place };
  redraw(name);
}

const ARROWS = { ArrowLeft: [-9, 0], ArrowRight: [9, 0], ArrowUp: [0, -9], ArrowDown: [0, 9] };

const PLOTS = {};
for (const place of document.querySelectorAll("figure")) {
  const name = place.dataset.figure;
  const plot = document.createElement("div");
  const title = place.querySelector("figcaption").textContent;
  Object.assign(plot, { tabIndex: 0, role: "group", ariaLabel: `${title}. Arrow keys read values.` });
  const point = (event) => {
    const svg = plot.firstElementChild;
    const { left, top, width } = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / width;
    probe(name, { x: (event.clientX - left) * scale, y: (event.clientY - top) * scale });
  };
  plot.addEventListener("pointerdown", point);
  plot.addEventListener("pointermove", point);
  // A finger leaves when it is lifted; what it touched stays until something else has the focus.
  plot.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && probe(name));
  plot.addEventListener("blur", () => probe(name));
  plot.addEventListener("keydown", (event) => {
    if (!ARROWS[event.key]) return;
    event.preventDefault();
    const { x, y } = view.probe ?? { x: LEFT, y: 0 };
    const [right, below] = ARROWS[event.key];
    probe(name, { x: Math.max(0, x + right), y: Math.max(0, y + below) });
    const read = () => Array.from(plot.querySelectorAll(".read"), (each) => each.textContent).join(", ");
    requestAnimationFrame(() => speak(read()));
  });
  place.querySelector("figcaption").after(plot);
  PLOTS[name] = plot;
  const button = document.createElement("button");
  const ariaLabel = `Save as SVG: ${title}`;
  Object.assign(button, { className: "save", type: "button", textContent: "SVG", ariaLabel });
  button.addEventListener("click", () => {
    const svg = printed(figure(name), getComputedStyle(find("light")));
    save(new Blob([svg], { type: "image/svg+xml" }), `${fileName()}-${name}.svg`);
  });
  place.append(button);
}

// The element of a figure, or another one by its name.
const placeOf = (name) => PLOTS[name]?.parentElement ?? find(name);
const covered = (name) => placeOf(name).matches(".covered");
