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
    if (settings.relabelled) averageOverLabels(settings.states, parameter);
    parameter.fill(0, 0, 2 * settings.states); // The mean of u, because r and -r are equally likely.
    this.seen += 1;
  }
}

// Copies of a run, as in the study of symmetry.
const COPIES = 20;

// Numbers of unseen tasks of a test, and of tasks on which the step size of theta^TD is tuned for curves: many, because
// a step size that is too large diverges on few tasks only.
const TEST_TASKS = 100;
const TUNING_TASKS = 1000;

// Candidates for the step size of theta^TD, from 0.2 to 10.
const STEP_SIZES = Array.from({ length: 25 }, (_, i) => 0.2 * 50 ** (i / 24));

// Numbers of steps in the prompt.
const LENGTHS = Array.from({ length: 20 }, (_, i) => 5 * (i + 1));

// The settings of unseen tasks, which may be of another environment, or relabelled if those of the run are not.
function settingsOfTest(settings, { environment, relabelled }) {
  return { ...settings, environment, relabelled };
}

// One unseen task, its values, and their estimates from a trajectory.
function oneTask(weights, settings, options) {
  const { index, steps, format, depth, discount } = options;
  const [task] = unseenTasks(settingsOfTest(settings, options), 1, `task ${index}`);
  const path = drawPath(task, steps, new RandomStream(settings.seed, `path ${index}`));
  const values = valueFunction(task, discount);
  const estimate = transformerEstimate(weights, contextOf(task, path, steps, format), depth, discount);
  return { task, path, values, estimate, error: msveOf(task, values, estimate) };
}

// Errors on unseen tasks against the number of steps in the prompt, of one or several weights and of the baselines.
// Pieces are tasks: first those on which the step size of theta^TD is tuned, then those of the test.
class Test {
  constructor(weightsList, settings, options) {
    const own = settingsOfTest(settings, options);
    Object.assign(this, { weightsList, options, seen: 0 });
    this.tasks = [...unseenTasks(own, TEST_TASKS, "tuning tasks"), ...unseenTasks(own, TEST_TASKS)];
    this.forPaths = new RandomStream(settings.seed, "paths");
    this.tuning = STEP_SIZES.map(() => 0);
    this.errors = {};
  }

  get done() {
    return this.seen === this.tasks.length;
  }

  step() {
    const task = this.tasks[this.seen];
    const path = drawPath(task, LENGTHS.at(-1), this.forPaths);
    const value = valueFunction(task, this.options.discount);
    for (const [k, steps] of LENGTHS.entries()) {
      if (this.seen < TEST_TASKS) this.tune(task, path, steps, value);
      else this.measure(task, path, steps, value, k);
    }
    this.seen += 1;
  }

  tune(task, path, steps, value) {
    const { format, depth, discount } = this.options;
    const context = contextOf(task, path, steps, format);
    for (const [i, stepSize] of STEP_SIZES.entries()) {
      this.tuning[i] += msveOf(task, value, batchTd(context, depth, discount, stepSize));
    }
  }

  measure(task, path, steps, value, k) {
    const { format, depth, discount } = this.options;
    const add = (name, estimate) => {
      this.errors[name] ??= LENGTHS.map(() => []);
      this.errors[name][k].push(msveOf(task, value, estimate));
    };
    const baselines = baselineEstimates(task, path, steps, format, depth, discount, this.stepSize);
    for (const [name, estimate] of Object.entries(baselines)) add(name, estimate);
    const context = contextOf(task, path, steps, format);
    for (const weights of this.weightsList) {
      add("transformer", transformerEstimate(weights, context, depth, discount));
    }
  }

  // The best step size of theta^TD; an overflow counts as infinite.
  get stepSize() {
    const scores = this.tuning.map((score) => (Number.isNaN(score) ? Infinity : score));
    return STEP_SIZES[scores.indexOf(Math.min(...scores))];
  }

  // Means over tasks and weights, by name and length.
  get result() {
    return Object.fromEntries(Object.entries(this.errors).map(([name, byLength]) => [name, byLength.map(meanOf)]));
  }
}

const CURVE_DEPTHS = [1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 35, 40, 50, 60, 75, 90, 120, 150, 200, 250, 300];
const CURVE_DISCOUNTS = [
  0.5, 0.6, 0.7, 0.75, 0.8, 0.84, 0.87, 0.89, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99,
];

// Errors on enumerated prompts against the depth and against the discount, of one or several weights and of theta^TD.
// Pieces are step sizes of theta^TD, then points of the curves.
class Curves {
  constructor(weightsList, settings, options) {
    const { states } = settings;
    const { depth, discount } = options;
    const own = settingsOfTest(settings, options);
    this.unseen = unseenTasks(own, TEST_TASKS);
    this.tuning = unseenTasks(own, TUNING_TASKS, "tuning tasks");
    this.models = { transformer: weightsList, theta_td: [thetaTd(states)] };
    this.least = Infinity;
    this.seen = 0;
    // Attention divides by the number of columns, here n.
    this.pieces = [
      ...STEP_SIZES.map((size) => ["size", (size * states) / 5, depth, discount]),
      ...CURVE_DEPTHS.map((x) => ["depth", x, x, discount]),
      ...CURVE_DISCOUNTS.map((x) => ["discount", x, depth, x]),
      ["here", depth, depth, discount],
    ];
    this.result = { depth: [], discount: [], here: [] };
  }

  get done() {
    return this.seen === this.pieces.length;
  }

  step() {
    const [axis, x, depth, discount] = this.pieces[this.seen++];
    if (axis === "size") this.tune(x, depth, discount);
    else this.result[axis].push(this.point(axis, x, depth, discount));
  }

  tune(stepSize, depth, discount) {
    const theta = [thetaTd(this.unseen[0].reward.length, stepSize)];
    const error = meanError(theta, this.tuning, depth, discount);
    if (error < this.least) this.models.theta_td = theta;
    this.least = Math.min(this.least, error);
  }

  point(axis, x, depth, discount) {
    const point = { x };
    for (const [name, list] of Object.entries(this.models)) {
      point[name] = meanError(list, this.unseen, depth, discount);
    }
    if (axis !== "depth") {
      const parts = divided(this.models.transformer, this.unseen);
      point.expanding = meanOf(parts.map(([weights, tasks]) => expanding(weights, tasks, discount)));
    }
    return point;
  }
}
