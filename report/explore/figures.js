// What the figures and the texts of the page show, drawn at the next frame from the newest message.

const NAMES = { transformer: "pretrained", theta_td: "θᵀᴰ", lstd: "LSTD", constant: "one constant", zero: "zero" };
const LOOKS = {
  transformer: { colour: "var(--td)" },
  theta_td: { colour: "var(--theta)", dash: "7 3" },
  lstd: { colour: "var(--lstd)", dash: "7 3 2 3" },
  constant: { colour: "var(--constant)", dash: "2 3" },
  zero: { colour: "var(--none)", dash: "1 5" },
};
const COURSE = ["A", "shares", "sizes", "error", "numbers"];
const MSVE = { label: "error (MSVE)", log: true, floor: 1e-4, cap: 1e4 };
const point = () => view.points[view.at];
// The results that figures of the test show.
const RESULTS = { steps: "tested", depths: "curves", discounts: "curves", chain: "task" };

// The SVG text of a figure, or what it waits for.
function figure(name) {
  if (!(name in RESULTS) || view[RESULTS[name]]) return FIGURES[name]();
  const none = view.divergedAt.length && !view.divergedAt.includes(0);
  return noteChart(none ? "No seed has finite weights." : "After pretraining, or in a pause.");
}

const taskAxis = () => ({ label: "tasks seen", log: true, from: 1, to: view.settings.tasks });
const presentMark = () => (view.follows || !point()?.seen ? [] : [{ x: point().seen, text: "" }]);
const described = (title, lines) =>
  `${title}. ${lines.map((line) => `${line.name}: ${line.value ?? "no value so far"}`).join("; ")}.`;

function course(title, y, chosen) {
  const lines = chosen.map(([name, value, colour, dash, source = view.points]) => {
    const points = source.filter((each) => each.seen > 0).map((each) => [each.seen, value(each)]);
    const last = source === view.points ? point() : source.at(-1);
    return { name, colour, dash, points, value: last ? shown(value(last)) : undefined };
  });
  return lineChart({
    label: described(`${title} against tasks seen`, lines),
    x: taskAxis(),
    y,
    lines,
    marks: presentMark(),
  });
}

// Pretrained weights beside theta^TD, against depth or discount.
function curve(axis, x, here, marks) {
  const lines = ["transformer", "theta_td"].map((name) => ({
    ...LOOKS[name],
    name: NAMES[name],
    points: view.curves[axis].map((each) => [each.x, each[name]]),
    value: shown(view.curves.here[0][name]),
  }));
  const label = described(`Error against ${x.label}, at ${here}`, lines);
  return lineChart({ label, x, y: MSVE, lines, marks });
}

// The smallest discount of the curve at which the iteration diverges in half of the tasks.
const divergesFrom = () => view.curves.discount.find((each) => each.expanding >= 0.5)?.x;

const FIGURES = {
  A() {
    const n = view.settings.states;
    const weights = point()?.weights ?? thetaTd(n, 0);
    const { A } = view.identifiable ? identifiable(weights, view.settings.discount) : weights;
    const who = view.chosen === "mean" ? "mean over seeds" : `seed ${view.settings.seed + view.chosen}`;
    return matrixMap({ label: `Map of A, ${who}. ${point() ? numbersText(point()) : ""}`, A, n });
  },
  theta() {
    const n = view.settings.states;
    return matrixMap({
      label: "Map of A of θᵀᴰ: minus the identity beside the identity, and zeros below",
      A: thetaTd(n).A,
      n,
    });
  },
  shares() {
    const share = { label: "share of A", from: 0, to: 1 };
    return course("Share of A's squared norm", share, [
      ["one number", (each) => each.measures.one, "var(--none)", "1 4"],
      ["two", (each) => each.measures.two, "var(--td)"],
      ["four", (each) => each.measures.four, "var(--constant)", "6 3"],
      ["eight", (each) => each.measures.eight, "var(--theta)"],
    ]);
  },
  sizes() {
    return course("Step sizes", { label: "step size" }, [
      ["α", (each) => each.measures.alpha, "var(--td)"],
      ["β", (each) => each.measures.beta, "var(--more)"],
      ["α predicted", (each) => each.alpha, "var(--td)", "2 4", view.predicted],
      ["β predicted", (each) => each.beta, "var(--more)", "2 4", view.predicted],
    ]);
  },
  error() {
    const reference = view.curves && thetaHere();
    const lines = [["pretrained", (each) => each.error, "var(--td)"]];
    if (view.test.relabelled !== view.settings.relabelled) {
      const other = view.test.relabelled ? "on relabelled tasks" : "on ordered tasks";
      lines.push([other, (each) => each.other, "var(--more)", "6 2"]);
    }
    if (reference !== null) {
      const ends = [{ seen: 1 }, { seen: view.settings.tasks }];
      lines.push(["θᵀᴰ", () => reference, "var(--theta)", "7 3", ends]);
    }
    return course("Error on unseen tasks", MSVE, lines);
  },
  steps() {
    const lines = Object.keys(NAMES).map((name) => {
      const errors = view.tested[name];
      return {
        ...LOOKS[name],
        name: NAMES[name],
        points: errors.map((error, i) => [LENGTHS[i], error]),
        value: shown(errors.at(-1)),
      };
    });
    const label = described("Error against steps in the prompt; with 100 steps", lines);
    return lineChart({ label, x: { label: "steps in the prompt", from: 0, to: 100 }, y: MSVE, lines });
  },
  depths() {
    const marks = [{ x: view.test.depth, text: `${view.test.depth} layers` }];
    return curve("depth", { label: "layers at test", log: true, from: 1, to: 300 }, `${view.test.depth} layers`, marks);
  },
  discounts() {
    const border = divergesFrom();
    const marks = border ? [{ x: border, text: "pretrained diverges →" }] : [];
    return curve("discount", { label: "discount at test", from: 0.5, to: 1 }, `discount ${view.test.discount}`, marks);
  },
  chain() {
    const n = view.settings.states;
    const { task, values, estimate, error } = view.task;
    const seed = view.settings.seed + (view.chosen === "mean" ? view.divergedAt.indexOf(0) : view.chosen);
    const states = Array.from(
      values,
      (value, i) => `state ${i + 1}: true ${shown(value)}, estimated ${shown(estimate[i])}`,
    );
    const label = `Task ${view.index + 1}, ${view.steps || "all"} steps. Estimates of seed ${seed}. ${states.join("; ")}. MSVE ${shown(error)}.`;
    return chainChart({
      label,
      P: task.transition,
      value: Array.from(values),
      estimate: Array.from(estimate),
      found: `estimate of seed ${seed}, MSVE ${shown(error)}`,
      n,
    });
  },
};

// The error of theta^TD with the layers and the discount of pretraining, if the test has them.
function thetaHere() {
  const { depth, discount } = view.settings;
  const same =
    view.test.depth === depth && view.test.discount === discount && view.test.relabelled === view.settings.relabelled;
  return same ? view.curves.here[0].theta_td : null;
}

const TEXTS = {
  numbers: () => (find("numbers").textContent = point() ? numbersText(point()) : ""),
  border: () => (find("border").textContent = borderText()),
  run: showRun,
};

function borderText() {
  if (!view.curves || !point()) return "";
  const { depth, discount } = view.test;
  const here = view.curves.here[0];
  const factor = measures(point().weights, discount).constantFactor;
  const border = divergesFrom();
  const from = border ? `, and from a discount of about ${border} on half of them or more` : "";
  return (
    `At discount ${discount} a layer multiplies equal errors of all states by ${factor.toFixed(3)} (mean over labels). Repeated without end, it diverges on ` +
    `${Math.round(100 * here.expanding)}% of the tasks${from}. With ${counted(depth, "layer")} the error is ${shown(here.transformer)}.`
  );
}

function showRun() {
  const { settings, points, paused, done } = view;
  const present = point()?.seen ?? 0;
  const seen = view.follows && !done ? Math.max(present, view.seen ?? 0) : present;
  find("seen").textContent = `${seen.toLocaleString("en")} of ${settings.tasks.toLocaleString("en")} tasks`;
  find("time").max = Math.max(1, done ? points.length - 1 : keptAt(settings.tasks).length - 1);
  find("time").value = view.at;
  find("time").setAttribute("aria-valuetext", counted(present, "task"));
  find("pause").disabled = done;
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

const PLOTS = {};
for (const place of document.querySelectorAll("figure")) {
  const name = place.dataset.figure;
  const plot = document.createElement("div");
  place.querySelector("figcaption").after(plot);
  PLOTS[name] = plot;
  const button = document.createElement("button");
  Object.assign(button, { className: "save", type: "button", textContent: "SVG" });
  button.setAttribute("aria-label", `Save as SVG: ${place.querySelector("figcaption").textContent}`);
  button.addEventListener("click", () => {
    const svg = printed(figure(name), getComputedStyle(find("light")));
    save(new Blob([svg], { type: "image/svg+xml" }), `${fileName()}-${name}.svg`);
  });
  place.append(button);
}
