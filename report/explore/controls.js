// Files, and the controls of the page.

const fileName = () => {
  const { target, environment, relabelled, states, depth } = view.settings;
  return `${target}-${relabelled ? "relabelled_" : ""}${environment}-${states}-${depth}`;
};

function pythonText() {
  const n = view.settings.states;
  const rows = view.chosen === "mean" && view.settings.seeds > 1 ? "  # a row for each seed" : "";
  return (
    `import ictd\n\nmodel = ictd.load_model("${fileName()}.npz")\n` +
    `context = ictd.Context.from_trajectory(states, rewards, n=${n})\nmodel.values(context)${rows}`
  );
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  say(`${name} is saved with the browser's downloads.`);
}

function valueOf(input) {
  if (input.type === "checkbox") return input.checked;
  return input.type === "select-one" ? input.value : numberOf(input.value);
}

function setValue(input, value) {
  input[input.type === "checkbox" ? "checked" : "value"] = value;
}

function readForm() {
  const given = IN_ADDRESS.map((name) => [name, valueOf(field(name))]);
  return { ...DEFAULT_SETTINGS, ...Object.fromEntries(given) };
}

function fillForm(settings) {
  for (const name of IN_ADDRESS) setValue(field(name), settings[name]);
  formChanged();
}

function showErrors(errors) {
  find("errors").textContent = errors.join(" ");
  find("errors").hidden = !errors.length;
  if (errors.length) find("choose").open = true;
  find("start").disabled = errors.length > 0;
}

const sameRun = (first, second) => addressOf(first) === addressOf(second);

function formChanged() {
  const settings = readForm();
  const errors = checkSettings(settings);
  showOutputs(form);
  showErrors(errors);
  for (const button of document.querySelectorAll("#cells button")) {
    button.setAttribute("aria-pressed", sameRun(CELLS[button.dataset.cell], settings));
  }
  const stale = view.number > 0 && !sameRun(settings, view.settings);
  find("start").hidden = view.number > 0 && !stale;
  find("views").classList.toggle("stale", stale);
  say(stale ? "The settings have changed: figures show the earlier run until you press Run." : "");
}

// Write the values of sliders beside them.
function showOutputs(parent) {
  for (const value of parent.querySelectorAll("label > .value")) {
    const input = value.parentElement.querySelector("input");
    value.textContent = input.value;
  }
}

function fillChoices() {
  const { seeds, seed } = view.settings;
  const one = Array.from({ length: seeds }, (_, i) => `<option value="${i}">seed ${seed + i}</option>`);
  find("chosen").innerHTML =
    `<option value="mean">${seeds > 1 ? `mean of ${seeds} seeds` : "the seed"}</option>${seeds > 1 ? one.join("") : ""}`;
  find("chosen").value = view.chosen;
}

function fillTest() {
  for (const [name, value] of Object.entries(view.test)) setValue(find(`test-${name}`), value);
  find("identifiable").checked = view.identifiable;
  showOutputs(find("worth"));
  fillTrace();
}

const TRACE = ["layer", "rewards", "steps"];
function fillTrace() {
  find("trace-layer").max = view.settings.depth;
  for (const name of TRACE) find(`trace-${name}`).value = view[name];
  showOutputs(find("mechanism"));
  redraw(...TRACED);
}

let playing;
// Show the layers one after the other, from the first one; or stop.
function play() {
  if (playing) return stop();
  view.layer %= view.settings.depth;
  find("play").textContent = "Stop";
  playing = setInterval(() => {
    view.layer = Math.min(view.layer + 1, view.settings.depth);
    fillTrace();
    if (view.layer === view.settings.depth) stop();
  }, 200);
}

function stop() {
  clearInterval(playing);
  playing = undefined;
  find("play").textContent = "Play";
}

for (const [name, [min, max]] of Object.entries(LIMITS)) Object.assign(field(name), { min, max });
const CELLS = PAPER_SETTINGS.flatMap((changes) =>
  ["td", "mc"].map((target) => ({ ...DEFAULT_SETTINGS, ...changes, target })),
);
const inPaper = (settings) => CELLS.some((cell) => sameRun(cell, settings));
const CHAINS = { boyan: "Boyan", loop: "Loop" };
find("cells").tBodies[0].innerHTML = PAPER_SETTINGS.map((_, i) => {
  const { environment, states, depth } = CELLS[2 * i];
  const button = (cell, name) =>
    `<td><button type="button" data-cell="${cell}" aria-label="Run ${name}, ${CHAINS[environment]}, ${states} states, ${depth} layers">${name}</button></td>`;
  return `<tr><td>${CHAINS[environment]}</td><td>${states}</td><td>${depth}</td>${button(2 * i, "TD")}${button(2 * i + 1, "MC")}</tr>`;
}).join("");
find("cells").addEventListener("click", (event) => {
  if (event.target.dataset.cell) start(CELLS[event.target.dataset.cell]);
});
form.addEventListener("input", formChanged);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  start(readForm());
});
find("pause").addEventListener("click", pause);
find("time").addEventListener("input", (event) => {
  view.at = Math.min(+event.target.value, view.points.length - 1);
  view.follows = view.at === view.points.length - 1;
  redraw("run", ...COURSE);
});
find("time").addEventListener("change", askTests);
find("chosen").addEventListener("change", (event) => {
  view.chosen = event.target.value === "mean" ? "mean" : +event.target.value;
  main({ kind: "choose", chosen: view.chosen });
  redraw("run");
  askTests();
});
find("identifiable").addEventListener("change", (event) => {
  view.identifiable = event.target.checked;
  redraw("A");
});
for (const name of Object.keys(view.test)) {
  find(`test-${name}`).addEventListener("input", (event) => {
    view.test[name] = valueOf(event.target);
    showOutputs(find("worth"));
    redraw("error");
    askTests();
  });
}
for (const name of TRACE) {
  find(`trace-${name}`).addEventListener("input", (event) => {
    if (name === "layer") stop();
    view[name] = name === "rewards" ? event.target.value : +event.target.value;
    fillTrace();
  });
}
find("play").addEventListener("click", play);
find("another").addEventListener("click", () => {
  view.index += 1;
  redraw(...TRACED);
});
find("weights").addEventListener("click", () => {
  if (view.divergedAt.includes(0)) main({ kind: "file", at: view.at });
  else say("No seed has finite weights, so there is no file.");
});
addEventListener("hashchange", () => {
  const settings = settingsOf(location.hash.slice(1));
  const target = location.hash.slice(1);
  if (!document.getElementById(target) && addressOf(settings) !== addressOf(view.settings)) openSettings(settings);
});
