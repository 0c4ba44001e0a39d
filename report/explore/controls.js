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

const NUMBERS = ["states", "depth", "discount", "learningRate", "tasks", "seeds", "seed"];

function readForm() {
  const settings = {
    ...DEFAULT_SETTINGS,
    environment: field("environment").value,
    target: field("target").value,
    relabelled: field("relabelled").checked,
  };
  for (const name of NUMBERS) settings[name] = numberOf(field(name).value);
  if (settings.environment === "own") {
    settings.own = parseOwn(find("own-transition").value, find("own-rewards").value);
    settings.states = settings.own.transition.length;
  }
  return settings;
}

function fillForm(settings) {
  for (const name of [...NUMBERS, "environment", "target"]) field(name).value = settings[name];
  field("relabelled").checked = settings.relabelled;
  if (settings.own) {
    find("own-transition").value = settings.own.transition.map((row) => row.join(" ")).join("\n");
    find("own-rewards").value = (settings.own.rewards ?? []).join(" ");
  }
  formChanged();
}

function showErrors(settings, errors = checkSettings(settings)) {
  find("errors").textContent = errors.join(" ");
  find("errors").hidden = !errors.length;
  if (errors.length) find("choose").querySelector("details").open = true;
  const warnings = errors.length ? [] : settingsWarnings(settings);
  find("warnings").textContent = warnings.join(" ");
  find("warnings").hidden = !warnings.length;
  find("start").disabled = errors.length > 0;
}

const sameRun = (first, second) => addressOf(first) === addressOf(second);

function formChanged() {
  const settings = readForm();
  const own = settings.environment === "own";
  find("own").hidden = !own;
  field("states").disabled = own;
  if (own && Number.isFinite(settings.states)) field("states").value = settings.states;
  showOutputs(form);
  showErrors(settings);
  const errors = checkSettings(settings);
  for (const button of document.querySelectorAll("#cells button")) {
    button.setAttribute("aria-pressed", !errors.length && sameRun(CELLS[button.dataset.cell], settings));
  }
  find("start").textContent =
    view.number && errors.length === 0 && sameRun(settings, view.settings) ? "Run again" : "Run";
}

// Write the values of sliders beside them.
function showOutputs(parent) {
  for (const value of parent.querySelectorAll("label > .value")) {
    const input = value.parentElement.querySelector("input");
    value.textContent = input.id === "task-steps" && input.value === "0" ? "one column for each state" : input.value;
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
  find("test-relabelled").checked = view.test.relabelled;
  find("test-environment").value = view.test.environment;
  find("test-format").value = view.test.format;
  find("test-depth").value = view.test.depth;
  find("test-discount").value = view.test.discount;
  find("task-steps").value = view.steps;
  find("identifiable").checked = view.identifiable;
  find("average").value = view.average;
  showOutputs(find("test"));
}

const CELLS = PAPER_SETTINGS.flatMap((changes) =>
  ["td", "mc"].map((target) => ({ ...DEFAULT_SETTINGS, ...changes, target })),
);
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
find("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied; it shows the same run.");
  } catch {
    say("The browser does not let the page copy; copy the address from the address bar.");
  }
});
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
find("average").addEventListener("change", (event) => {
  view.average = event.target.value;
  redraw(...COURSE, "steps", "depths", "discounts", "border");
});
const TEST_FIELDS = {
  "test-relabelled": (input) => (view.test.relabelled = input.checked),
  "test-environment": (input) => (view.test.environment = input.value),
  "test-format": (input) => (view.test.format = input.value),
  "test-depth": (input) => (view.test.depth = +input.value),
  "test-discount": (input) => (view.test.discount = +input.value),
};
for (const [id, change] of Object.entries(TEST_FIELDS)) {
  find(id).addEventListener("input", (event) => {
    change(event.target);
    showOutputs(find("test"));
    redraw("error", "depths", "discounts");
    askTests();
  });
}
find("task-steps").addEventListener("input", (event) => {
  view.steps = +event.target.value;
  showOutputs(find("test"));
  askTask();
});
find("another").addEventListener("click", () => {
  view.index = (view.index + 1) % TEST_TASKS;
  askTask();
});
find("weights").addEventListener("click", () => {
  if (view.divergedAt.includes(0)) main({ kind: "file", at: view.at });
  else say("No seed has finite weights, so there is no file.");
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden && view.running) view.hidden = true;
});
addEventListener("hashchange", () => {
  const settings = settingsOf(location.hash.slice(1));
  const target = location.hash.slice(1);
  if (!document.getElementById(target) && addressOf(settings) !== addressOf(view.settings)) openSettings(settings);
});
