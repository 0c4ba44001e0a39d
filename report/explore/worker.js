// What computes for the page in a worker: a run, and tests of its weights, in slices of some milliseconds.

// Numbers of tasks after which weights are kept and shown: a hundred evenly spaced, and more at the beginning.
function keptAt(total) {
  const counts = new Set([0]);
  for (let i = 0; i <= 40; i++) counts.add(Math.round(total ** (i / 40)));
  for (let i = 1; i <= 100; i++) counts.add(Math.round((total * i) / 100));
  return [...counts].sort((a, b) => a - b);
}

class Host {
  // `post` sends a message to the page, `later` calls `turn` soon, and a slice takes `slice` milliseconds.
  constructor(post, later, slice) {
    Object.assign(this, { post, later, slice, asked: {}, awake: false, paused: false });
  }

  // Do what a message asks for: its `kind` is the name of a method.
  receive(message) {
    this[message.kind](message);
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

  pause({ paused }) {
    this.paused = paused;
  }

  // Show the mean over seeds, or one seed, from now on, and in what was shown before.
  choose({ chosen }) {
    this.chosen = chosen;
    this.post({ kind: "history", number: this.number, points: this.history.map((kept) => this.measured(kept)) });
  }

  test({ at, options, request }) {
    this.asked.tested = { request, job: new Test(this.chosenWeights(at), this.settings, options) };
  }

  curves({ at, options, request }) {
    this.asked.curves = { request, job: new Curves(this.chosenWeights(at), this.settings, options) };
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
    this.later();
  }

  busy() {
    return Object.keys(this.asked).length || this.runs();
  }

  runs() {
    return this.job && !this.job.done && !this.paused;
  }

  // One slice of each thing to do.
  turn() {
    this.awake = false;
    this.advanceAsked();
    if (this.runs()) this.advanceRun();
    this.wake();
  }

  advanceRun() {
    const limit = this.counts[this.history.length];
    advance(this.job, this.slice, limit);
    if (this.job.seen >= limit || this.job.done) this.keep();
    else this.post({ kind: "progress", number: this.number, seen: this.job.seen });
  }

  advanceAsked() {
    for (const [kind, { request, job }] of Object.entries(this.asked)) {
      if (!advance(job, this.slice)) continue;
      delete this.asked[kind];
      this.post({ kind, number: this.number, request, result: job.result });
    }
  }
}

// Make this thread a worker of the page.
function beWorker() {
  const channel = new MessageChannel();
  const later = () => channel.port2.postMessage(null);
  const host = new Host((message) => postMessage(message), later, 20);
  channel.port1.onmessage = () => host.turn();
  onmessage = (event) => host.receive(event.data);
}
