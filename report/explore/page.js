// The state of the page, messages to and from the worker, and what the page says.

const find = (id) => document.getElementById(id);
const form = find("settings");
const field = (name) => form.elements[name];

// What a new run has not yet.
const nothingSeen = () => ({
  points: [],
  at: 0,
  follows: true,
  paused: false,
  divergedAt: [],
  chosen: "mean",
  announced: 0,
  tested: null,
  curves: null,
  seen: 0,
  queue: [], // Settings of the runs that follow.
});

const view = {
  ...nothingSeen(),
  settings: { ...DEFAULT_SETTINGS },
  number: 0,
  done: true,
  identifiable: false,
  test: { relabelled: false, environment: "", format: "steps", depth: 30 },
  layer: 30,
  rewards: "random",
  steps: 0, // In the prompt of section 1; 0: a column for each state.
  index: 0,
  request: 0,
};

// The worker ----------------------------------------------------------------------------------------------------------

const engine = new Blob([`${find("engine").textContent}\nbeWorker();`], { type: "text/javascript" });
const worker = new Worker(URL.createObjectURL(engine));
worker.onmessage = (event) => received(event.data);
worker.onerror = (event) => fail(event.message ?? "the browser starts no worker");
const main = (message) => worker.postMessage(message);

function received(message) {
  if (message.number !== view.number) return;
  const current = message.request === undefined || message.request === view.request;
  if (current) RECEIVE[message.kind](message);
}

const RECEIVE = {
  point({ point, done, divergedAt }) {
    view.points.push(point);
    if (view.follows) view.at = view.points.length - 1;
    Object.assign(view, { divergedAt, done });
    announce();
    if (done) finished();
    redraw("run", ...COURSE);
  },
  progress({ seen }) {
    view.seen = seen;
    redraw("run");
  },
  history({ points }) {
    view.points = points;
    redraw(...COURSE);
  },
  tested({ result }) {
    view.tested = result;
    ask("curves");
    redraw("steps");
    if (!covered("steps")) speak(FIGURES.steps()[1].label);
  },
  curves({ result }) {
    view.curves = result;
    setTesting(false);
    redraw("depths", "error");
  },
  file({ bytes }) {
    save(new Blob([bytes]), `${fileName()}.npz`);
  },
};

// What the page says --------------------------------------------------------------------------------------------------

function say(text) {
  find("status").textContent = text;
}

function speak(text) {
  find("spoken").textContent = text;
}

function fail(text) {
  find("message").textContent =
    `The computation stopped: ${text.replace(/\.$/, "")}. Load the page again, or choose other settings.`;
  find("message").hidden = false;
  view.done = true;
  redraw("run");
}

// Read the present numbers out at each quarter of a run.
function announce() {
  const quarter = Math.floor((4 * view.points.at(-1).seen) / view.settings.tasks);
  if (quarter <= view.announced) return;
  view.announced = quarter;
  if (!covered("numbers")) speak(numbersText(view.points.at(-1)));
}

function numbersText({ seen, measures: found, error }) {
  if (Number.isNaN(found.alpha)) return `After ${counted(seen, "task")} the weights are not finite.`;
  const percent = (share) => `${(100 * share).toFixed(1)}%`;
  // The factor is that of the mean of A over labels; runs with labels in their order differ from it.
  const next = "if a layer changes all estimates equally, the next one changes them about";
  const factor = `${next} ${found.constantFactor.toFixed(3)} times as much; `;
  return (
    `After ${counted(seen, "task")}: α ${shown(found.alpha)}, β ${shown(found.beta)}; ` +
    `α explains ${percent(found.one)} of A, α and β ${percent(found.two)}, symmetry ${percent(found.eight)}; ` +
    `${view.settings.relabelled ? factor : ""}error on unseen tasks ${shown(error)}.` +
    (inPaper(view.settings) ? " The report has other random numbers, so its values differ a little." : "")
  );
}

const counted = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;

function divergence() {
  const lost = view.divergedAt.map((task, i) => [view.settings.seed + i, task]).filter(([, task]) => task > 0);
  if (!lost.length) return "";
  const first = lost[0];
  const others = lost.length > 1 ? ` and ${counted(lost.length - 1, "other seed")}` : "";
  const left = lost.length === view.divergedAt.length ? "no seed is left" : "means leave out such seeds";
  return `Seed ${first[0]}${others} diverged (at task ${first[1].toLocaleString("en")} numbers stopped being finite); ${left}. Take a lower learning rate or fewer layers.`;
}

// What to do about a run that did harm.
function harm() {
  const [before, after] = [view.points[0], view.points.at(-1)].map((each) => each.error);
  if (!(after > before)) return "";
  return ` The error is larger than before pretraining (${shown(before)}). Take a lower learning rate or fewer layers.`;
}

// A run ---------------------------------------------------------------------------------------------------------------

function start(settings) {
  const errors = checkSettings(settings);
  showErrors(errors);
  if (errors.length) return;
  const sameLabels = view.number && settings.relabelled === view.settings.relabelled;
  Object.assign(view, nothingSeen(), {
    settings: { ...settings },
    number: view.number + 1,
    done: false,
    request: view.request + 1,
    began: performance.now(),
  });
  view.test.depth = settings.depth;
  view.layer = settings.depth;
  if (!sameLabels) view.test.relabelled = settings.relabelled;
  find("message").hidden = true;
  fillForm(settings);
  fillChoices();
  fillTest();
  const address = `#${addressOf(settings)}`;
  if (location.hash !== address) history.replaceState(null, "", address);
  say("");
  main({ kind: "run", settings: view.settings, chosen: view.chosen, number: view.number });
  redraw("run", "numbers", ...Object.keys(FIGURES));
}

// Run settings one after the other, unless the first ones run already.
function runAll([first = view.settings, ...queue]) {
  if (!view.number || !sameRun(first, view.settings)) start(first);
  view.queue = queue;
}

function finished() {
  const seconds = (performance.now() - view.began) / 1000;
  const run = `${counted(view.settings.seeds, "seed")} of ${counted(view.settings.tasks, "task")} in ${seconds.toFixed(1)} s.`;
  say(divergence() || run + harm());
  addRun();
  if (view.queue.length) return runAll(view.queue);
  redraw(...Object.keys(RESULTS));
  askTests();
}

// Settings of a run in words, except for the number of different tasks.
const partsOf = ({ environment, relabelled, states, depth, discount, target, learningRate, tasks, seeds, seed }) => [
  CHAINS[environment],
  relabelled ? "renumbered" : "ordered",
  `${states} states`,
  counted(depth, "layer"),
  `γ = ${discount}`,
  target.toUpperCase(),
  `learning rate ${learningRate}`,
  counted(tasks, "task"),
  counted(seeds, "seed"),
  `first seed ${seed}`,
];

const ran = new Set();
// Add the finished run to the table of runs, once.
function addRun() {
  const address = addressOf(view.settings);
  if (ran.has(address)) return;
  ran.add(address);
  const { measures: found, error } = view.points.at(-1);
  const usual = partsOf(DEFAULT_SETTINGS);
  const own = partsOf(view.settings).filter((part) => !usual.includes(part));
  const row = find("runs").tBodies[0].insertRow();
  for (const words of [view.settings.different || "all", own.join(", ") || "–", shown(found.alpha), shown(found.beta), shown(error)]) {
    row.insertCell().textContent = words;
  }
}

function pause() {
  view.paused = !view.paused;
  main({ kind: "pause", paused: view.paused });
  if (view.paused) {
    say("The run is paused; tests are those of the present weights.");
    askTests();
  } else say("");
  redraw("run");
}

let waiting;
// Test the weights that are shown, shortly after the last change.
function askTests() {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    if (!testable()) return;
    view.request++;
    setTesting(true);
    ask("test");
  }, 120);
}

// Whether there are weights to test: at the end or in a pause, of a seed that did not diverge.
function testable() {
  return view.points.length && (view.done || view.paused) && view.divergedAt.includes(0);
}

// Say whether figures of the test are about to change.
function setTesting(testing) {
  view.testing = testing;
  find("worth").setAttribute("aria-busy", testing);
}

// Ask for a "test" or "curves".
function ask(kind) {
  if (!testable()) return;
  const environment = view.test.environment || view.settings.environment;
  const options = { ...view.test, environment, discount: view.settings.discount };
  main({ kind, at: view.at, request: view.request, options });
}
