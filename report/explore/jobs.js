// What takes time: a run of several seeds, the equation of the mean, and a test.  A job is a sequence of small pieces,
// so that a page can show it while it is at work.

// Work for about so many milliseconds, but at least one piece, or until `limit` pieces are seen.
function advance(job, milliseconds, limit = Infinity) {
  const end = Date.now() + milliseconds;
  while (!job.done && job.seen < limit) {
    job.step();
    if (Date.now() >= end) break;
  }
  return job.done;
}

// A run of Algorithm 1 or 2 with several seeds, one update for each task.  A piece is the next task of every seed.
// As in ictd.pretrain, each purpose has its own random numbers, so TD and MC share initial values, tasks and batches.
class Run {
  constructor(settings) {
    const { states, depth, discount } = settings;
    this.settings = settings;
    this.seeds = Array.from({ length: settings.seeds }, (_, i) => settings.seed + i);
    this.seen = 0;
    this.total = settings.tasks;
    this.divergedAt = new Int32Array(settings.seeds);
    this.source = new TaskSource(settings);
    this.transformer = new LoopedTransformer(states, depth, discount);
    this.learners = this.seeds.map((seed) => {
      const start = initialParameter(states, settings.initialGain, new RandomStream(seed, "weights"));
      return new Learner(start, settings.learningRate);
    });
    const streams = (purpose) => this.seeds.map((seed) => new RandomStream(seed, purpose));
    [this.forTasks, this.forSteps, this.forReturns] = ["tasks", "steps", "returns"].map(streams);
  }

  get done() {
    return this.seen === this.total || this.divergedAt.every((task) => task > 0);
  }

  step() {
    const { source, transformer, learners, divergedAt } = this;
    this.seen += 1;
    for (let i = 0; i < learners.length; i++) {
      if (divergedAt[i]) continue;
      source.drawTask(this.forTasks[i]);
      source.drawBatch(this.forSteps[i], this.forReturns[i]);
      if (!update(transformer, learners[i], source)) divergedAt[i] = this.seen;
    }
  }
}

// Weights of a run's seed number i, NaN after a divergence, or the "mean" over the seeds that did not diverge.
function runWeights(run, i) {
  const { states } = run.settings;
  const kept = run.learners.filter((_, k) => (i === "mean" || i === k) && !run.divergedAt[k]);
  const mean = run.learners[0].parameter.map((_, k) => meanOf(kept.map((learner) => learner.parameter[k])));
  return weightsOf(states, mean);
}

// The equation of the mean (docs/theory.md), which replaces the weights of a run by their mean: copies of a run have
// tasks and moments of Adam of their own, and after each update the mean over copies, and over labels if the law of
// tasks does not depend on them, takes the place of their weights.  A piece is an update.
class Prediction {
  constructor(settings) {
    const { states, depth, discount, seed } = settings;
    this.settings = settings;
    this.seen = 0;
    this.total = settings.tasks;
    this.labelFree = settings.relabelled || settings.environment === "dense";
    // If r and -r have the same law, the mean of u is zero.
    this.symmetricRewards = settings.environment !== "own" || settings.own.rewards === null;
    this.source = new TaskSource(settings);
    this.transformer = new LoopedTransformer(states, depth, discount);
    this.random = ["tasks", "steps", "returns"].map((name) => new RandomStream(seed, `${name} of copies`));
    this.parameter = new Float64Array(2 * states + 4 * states ** 2);
    this.copies = Array.from({ length: COPIES }, () => new Learner(this.parameter.slice(), settings.learningRate));
  }

  get done() {
    return this.seen === this.total;
  }

  get weights() {
    return weightsOf(this.settings.states, this.parameter);
  }

  step() {
    const { settings, source, transformer, parameter, copies } = this;
    const [forTasks, forSteps, forReturns] = this.random;
    for (const copy of copies) {
      copy.parameter.set(parameter);
      source.drawTask(forTasks);
      source.drawBatch(forSteps, forReturns);
      update(transformer, copy, source);
    }
    parameter.fill(0);
    for (const copy of copies) for (let k = 0; k < parameter.length; k++) parameter[k] += copy.parameter[k] / COPIES;
    if (this.labelFree) averageOverLabels(settings.states, parameter);
    if (this.symmetricRewards) parameter.fill(0, 0, 2 * settings.states);
    this.seen += 1;
  }
}

// Copies of a run, as in the study of symmetry.
const COPIES = 20;

// Candidates for the step size of theta^TD, from 0.2 to 10.
const STEP_SIZES = Array.from({ length: 25 }, (_, i) => 0.2 * 50 ** (i / 24));

// Errors on unseen tasks against the number of steps in the prompt, of one or several weights and of the baselines.
// Pieces are tasks: first those on which the step size of theta^TD is tuned, then those of the test.
class Test {
  constructor(weightsList, settings, options = {}) {
    this.options = {
      lengths: Array.from({ length: 20 }, (_, i) => 5 * (i + 1)), format: "steps",
      depth: settings.depth, discount: settings.discount, tasks: 100, tuningTasks: 100, seed: settings.seed,
      ...options,
    };
    const { lengths, tasks, tuningTasks, seed } = this.options;
    const own = settingsOfTest(settings, options);
    this.weightsList = weightsList;
    this.seen = 0;
    this.total = tuningTasks + tasks;
    this.tasks = [
      ...unseenTasks(own, tuningTasks, seed, "tuning tasks"),
      ...unseenTasks(own, tasks, seed),
    ];
    this.forPaths = new RandomStream(seed, "paths");
    this.tuning = STEP_SIZES.map(() => 0);
    this.errors = { transformer: lengths.map(() => []) };
    this.result = null;
  }

  get done() {
    return this.seen === this.total;
  }

  step() {
    const { lengths, tuningTasks, discount } = this.options;
    const task = this.tasks[this.seen];
    const path = drawPath(task, Math.max(...lengths), this.forPaths);
    const value = valueFunction(task, discount);
    for (const [k, steps] of lengths.entries()) {
      if (this.seen < tuningTasks) this.tune(task, path, steps, value);
      else this.measure(task, path, steps, value, k);
    }
    this.seen += 1;
    if (this.done) this.result = this.summary();
  }

  tune(task, path, steps, value) {
    const { format, depth, discount } = this.options;
    const context = contextOf(task, path, steps, format);
    for (const [i, stepSize] of STEP_SIZES.entries()) {
      this.tuning[i] += msveOf(task, value, batchTd(context, depth, discount, stepSize));
    }
  }

  measure(task, path, steps, value, k) {
    const { lengths, format, depth, discount } = this.options;
    const baselines = baselineEstimates(task, path, steps, format, depth, discount, this.stepSize);
    for (const [name, estimate] of Object.entries(baselines)) {
      this.errors[name] ??= lengths.map(() => []);
      this.errors[name][k].push(msveOf(task, value, estimate));
    }
    const context = contextOf(task, path, steps, format);
    for (const weights of this.weightsList) {
      const estimate = transformerEstimate(weights, context, depth, discount);
      this.errors.transformer[k].push(msveOf(task, value, estimate));
    }
  }

  // The best step size of theta^TD; an overflow counts as infinite.
  get stepSize() {
    const scores = this.tuning.map((score) => (Number.isNaN(score) ? Infinity : score));
    return STEP_SIZES[scores.indexOf(Math.min(...scores))];
  }

  summary() {
    const errors = {};
    for (const [name, byLength] of Object.entries(this.errors)) {
      errors[name] = { mean: byLength.map(meanOf), median: byLength.map(medianOf) };
    }
    return { lengths: this.options.lengths, stepSize: this.stepSize, errors };
  }
}
