// What computes for the page: a run, tests of its weights, and a prediction, in slices of some milliseconds.  The same
// code is a worker, or works between the frames of the page if the browser has no workers.

const TEST_TASKS = 100;
const TUNING_TASKS = 1000; // Many, because a step size that is too large diverges on few tasks only.
const CURVE_DEPTHS = [1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 35, 40, 50, 60, 75, 90, 120, 150, 200, 250, 300];
const CURVE_DISCOUNTS = [
  0.5, 0.6, 0.7, 0.75, 0.8, 0.84, 0.87, 0.89, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99,
];

// Numbers of tasks after which weights are kept and shown: a hundred evenly spaced, and more at the beginning.
function keptAt(total) {
  const counts = new Set([0]);
  for (let i = 0; i <= 40; i++) counts.add(Math.round(total ** (i / 40)));
  for (let i = 1; i <= 100; i++) counts.add(Math.round((total * i) / 100));
  return [...counts].sort((a, b) => a - b);
}

class Host {
  // `post` sends a message to the page, `later` calls a function soon, and a slice takes `slice` milliseconds.
  constructor(post, later, slice) {
    Object.assign(this, { post, later, slice, asked: {}, awake: false, paused: false });
  }

  // Do what a message asks for: its `kind` is the name of a method.
  receive(message) {
    try {
      this[message.kind](message);
    } catch (error) {
      this.post({ kind: "failed", text: String(error.message ?? error) });
    }
    this.wake();
  }

  run({ settings, chosen, number }) {
    Object.assign(this, { settings, chosen, number, asked: {}, paused: false, history: [] });
    this.job = new Run(settings);
    this.counts = keptAt(settings.tasks);
    this.unseen = unseenTasks(settings, TEST_TASKS);
    this.unseenOther = unseenTasks({ ...settings, relabelled: !settings.relabelled }, TEST_TASKS);
    this.keep();
  }

  predict({ settings, number }) {
    Object.assign(this, { number, prediction: new Prediction(settings), discount: settings.discount });
    this.predictedAt = keptAt(settings.tasks).filter((count) => count > 0);
  }

  stop() {
    this.prediction = null;
  }

  pause({ paused }) {
    this.paused = paused;
  }

  // Show the mean over seeds, or one seed, from now on, and in what was shown before.
  choose({ chosen }) {
    this.chosen = chosen;
    if (this.history)
      this.post({ kind: "history", number: this.number, points: this.history.map((kept) => this.measured(kept)) });
  }

  test(message) {
    this.asked.test = { message, job: null };
  }

  curves(message) {
    this.asked.curves = { message };
  }

  task(message) {
    this.asked.task = { message };
  }

  file({ at }) {
    const weights = this.chosenWeights(at);
    const bytes = modelFile(weights.length === 1 ? weights[0] : weights, this.settings);
    this.post({ kind: "file", number: this.number, bytes });
  }

  // Keep the weights of all seeds, and tell the page about them.
  keep() {
    const kept = {
      seen: this.job.seen,
      mean: runWeights(this.job, "mean"),
      seeds: this.job.seeds.map((_, i) => runWeights(this.job, i)),
    };
    this.history.push(kept);
    this.post({
      kind: "point",
      number: this.number,
      point: this.measured(kept),
      done: this.job.done,
      divergedAt: Array.from(this.job.divergedAt),
    });
  }

  // What the page shows of weights: those of the choice, their measures, and the errors on unseen tasks, also with other labels.
  measured(kept) {
    const weights = this.chosen === "mean" ? kept.mean : kept.seeds[this.chosen];
    const list = this.chosen === "mean" ? this.converged(kept) : [weights];
    const { depth, discount } = this.settings;
    const error = meanError(list, this.unseen, depth, discount);
    const other = meanError(list, this.unseenOther, depth, discount);
    return { seen: kept.seen, weights, measures: measures(weights, discount), error, other };
  }

  converged(kept) {
    return kept.seeds.filter((_, i) => !this.job.divergedAt[i]);
  }

  // Weights of the choice at a point of the history: a list, of all seeds for the mean.
  chosenWeights(at) {
    const kept = this.history[Math.min(at, this.history.length - 1)];
    return this.chosen === "mean" ? this.converged(kept) : [kept.seeds[this.chosen]];
  }

  wake() {
    if (this.awake || !this.busy()) return;
    this.awake = true;
    this.later(() => this.turn());
  }

  busy() {
    return Object.keys(this.asked).length || this.prediction || (this.job && !this.job.done && !this.paused);
  }

  // One slice of each thing to do.
  turn() {
    this.awake = false;
    try {
      if (this.asked.task) this.answerTask();
      else if (this.asked.curves) this.answerCurves();
      else if (this.asked.test) this.advanceTest();
      if (this.job && !this.job.done && !this.paused) this.advanceRun();
      if (this.prediction) this.advancePrediction();
    } catch (error) {
      this.asked = {};
      this.prediction = null;
      this.paused = true;
      this.post({ kind: "failed", text: String(error.message ?? error) });
    }
    this.wake();
  }

  advanceRun() {
    const limit = this.counts[this.history.length];
    advance(this.job, this.slice, limit);
    if (this.job.seen >= limit || this.job.done) this.keep();
    else this.post({ kind: "progress", number: this.number, seen: this.job.seen });
  }

  advancePrediction() {
    const limit = this.predictedAt[0];
    advance(this.prediction, this.slice, limit);
    if (this.prediction.seen < limit && !this.prediction.done) return;
    const { alpha, beta } = measures(this.prediction.weights, this.discount);
    this.post({ kind: "predicted", number: this.number, point: { seen: this.prediction.seen, alpha, beta } });
    this.predictedAt.shift();
    if (this.prediction.done || !this.predictedAt.length) this.prediction = null;
  }

  advanceTest() {
    const asked = this.asked.test;
    asked.job ??= new Test(this.chosenWeights(asked.message.at), this.settings, asked.message.options);
    if (!advance(asked.job, this.slice)) return;
    delete this.asked.test;
    this.post({ kind: "tested", number: this.number, request: asked.message.request, result: asked.job.result });
  }

  answerTask() {
    const { message } = this.asked.task;
    delete this.asked.task;
    const result = oneTask(this.chosenWeights(message.at)[0], this.settings, message.options);
    this.post({ kind: "task", number: this.number, request: message.request, result });
  }

  // Errors on enumerated prompts against the depth and against the discount, with the best step size of theta^TD.
  answerCurves() {
    const asked = this.asked.curves;
    const { at, request, depth, discount, relabelled, environment } = asked.message;
    const settings = { ...this.settings, relabelled, environment };
    const { states, seed } = settings;
    asked.unseen ??= unseenTasks(settings, TEST_TASKS);
    asked.tuning ??= unseenTasks(settings, TUNING_TASKS, seed, "tuning tasks");
    asked.models ??= { transformer: this.chosenWeights(at), theta_td: [thetaTd(states)] };
    asked.least ??= Infinity;
    // Attention divides by the number of columns, here n.
    asked.left ??= [
      ...STEP_SIZES.map((size) => ["size", (size * states) / 5, depth, discount]),
      ...CURVE_DEPTHS.map((x) => ["depth", x, x, discount]),
      ...CURVE_DISCOUNTS.map((x) => ["discount", x, depth, x]),
      ["here", depth, depth, discount],
    ];
    asked.found ??= { depth: [], discount: [], here: [] };
    const until = Date.now() + this.slice;
    while (asked.left.length && Date.now() < until) {
      const [axis, x, layers, gamma] = asked.left.shift();
      if (axis === "size") {
        const { mean } = meanError([thetaTd(states, x)], asked.tuning, layers, gamma);
        if (mean < asked.least) asked.models.theta_td = [thetaTd(states, x)];
        asked.least = Math.min(asked.least, mean);
        continue;
      }
      const point = { x };
      for (const [name, list] of Object.entries(asked.models)) {
        point[name] = meanError(list, asked.unseen, layers, gamma);
      }
      if (axis !== "depth") {
        const shares = divided(asked.models.transformer, asked.unseen).map(([weights, tasks]) =>
          expanding(weights, tasks, gamma),
        );
        point.expanding = shares.reduce((sum, share) => sum + share, 0) / shares.length;
      }
      asked.found[axis].push(point);
    }
    if (asked.left.length) return;
    delete this.asked.curves;
    this.post({ kind: "curves", number: this.number, request, result: asked.found });
  }
}

// Models, each with its own tasks: the tasks are divided among them, so that several models take the time of one.
function divided(models, tasks) {
  const share = Math.floor(tasks.length / models.length);
  return models.map((weights, i) => [weights, tasks.slice(i * share, (i + 1) * share)]);
}

// Mean and median MSVE on enumerated prompts, over models and tasks; an overflow counts as infinite.
function meanError(models, tasks, depth, discount) {
  const errors = divided(models, tasks).flatMap(([weights, own]) =>
    Array.from(enumeratedMsve(weights, own, depth, discount).errors, (error) => (Number.isNaN(error) ? Infinity : error)),
  );
  return { mean: meanOf(errors), median: medianOf(errors) };
}

// Make this thread a worker of the page.
function beWorker() {
  const channel = new MessageChannel();
  const waiting = [];
  channel.port1.onmessage = () => waiting.shift()();
  const later = (work) => {
    waiting.push(work);
    channel.port2.postMessage(null);
  };
  const host = new Host((message) => postMessage(message), later, 20);
  onmessage = (event) => host.receive(event.data);
}
