// What takes time: a run of several seeds, and tests of its weights.  A job is a sequence of small pieces,
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
      source.drawTask(this.streamOfTask(i));
      source.drawBatch(this.forSteps[i], this.forReturns[i]);
      if (!update(transformer, learners[i], source)) divergedAt[i] = this.seen;
    }
  }

  // Random numbers of the next task: with K different tasks, those of one of them, drawn with replacement.
  streamOfTask(i) {
    const random = this.forTasks[i];
    const { different } = this.settings;
    return different ? new RandomStream(this.seeds[i], `seen task ${random.integer(different)}`) : random;
  }
}

// Weights of a run's seed number i, NaN after a divergence, or the "mean" over the seeds that did not diverge.
function runWeights(run, i) {
  const { states } = run.settings;
  const kept = run.learners.filter((_, k) => (i === "mean" || i === k) && !run.divergedAt[k]);
  const mean = run.learners[0].parameter.map((_, k) => meanOf(kept.map((learner) => learner.parameter[k])));
  return weightsOf(states, mean);
}

// Numbers of unseen tasks of a test, and of tasks on which the step size of theta^TD is tuned for curves: many, because
// a step size that is too large diverges on few tasks only.
const TEST_TASKS = 100;
const TUNING_TASKS = 1000;

// Candidates for the step size of theta^TD: the 25 of the report, from 0.2 to 10, and larger ones for few layers.
const STEP_SIZES = Array.from({ length: 29 }, (_, i) => 0.2 * 50 ** (i / 24));

// Numbers of steps in the prompt.
const LENGTHS = Array.from({ length: 20 }, (_, i) => 5 * (i + 1));

// What a layer does, for a page: an unseen task with given rewards; its prompt, with a column for each state or for
// each of some steps, and then a query for each state; and the last rows of the prompt for some weights and for
// theta^TD, whose step size is one for the state with most columns.
function trace(weights, settings, { index, rewards, steps }, depth) {
  const { states: n, discount, seed } = settings;
  const [task] = unseenTasks(settings, 1, `task ${index}`);
  if (rewards !== "random") task.reward.fill(0).fill(1, rewards === "ones" ? 0 : n - 1);
  const path = steps ? drawPath(task, steps, new RandomStream(seed, `path ${index}`)) : null;
  const context = promptColumns(task, path, discount);
  const columns = [...context, ...promptColumns(task, null, 0)];
  const visits = task.reward.map((_, s) => context.filter(({ state }) => state === s).length);
  const theta = thetaTd(n, context.length / Math.max(...visits));
  const rowsOf = (of) => {
    const given = context.map(({ state }) => task.reward[state]);
    return lastRows(of, columns.map(({ column }) => column), given, depth);
  };
  const rows = { transformer: rowsOf(weights), theta_td: rowsOf(theta) };
  return { task, columns, length: context.length, values: valueFunction(task, discount), rows };
}

// The settings of unseen tasks, which may be of another environment, or relabelled if those of the run are not.
function settingsOfTest(settings, { environment, relabelled }) {
  return { ...settings, environment, relabelled };
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
// Errors on enumerated prompts against the depth, of one or several weights and of theta^TD.
// Pieces are step sizes of theta^TD, then the depth of the options and those of the curve.
class Curves {
  constructor(weightsList, settings, options) {
    const { states } = settings;
    const { depth } = options;
    const own = settingsOfTest(settings, options);
    this.unseen = unseenTasks(own, TEST_TASKS);
    this.tuning = unseenTasks(own, TUNING_TASKS, "tuning tasks");
    this.models = { transformer: weightsList, theta_td: [thetaTd(states)] };
    this.discount = options.discount;
    this.least = Infinity;
    this.seen = 0;
    // Attention divides by the number of columns, here n.
    this.pieces = [
      ...STEP_SIZES.map((size) => () => this.tune((size * states) / 5, depth)),
      ...[depth, ...CURVE_DEPTHS].map((x) => () => this.measure(x)),
    ];
    this.result = [];
  }

  get done() {
    return this.seen === this.pieces.length;
  }

  step() {
    this.pieces[this.seen++]();
  }

  tune(stepSize, depth) {
    const theta = [thetaTd(this.models.theta_td[0].states, stepSize)];
    const error = meanError(theta, this.tuning, depth, this.discount);
    if (error < this.least) this.models.theta_td = theta;
    this.least = Math.min(this.least, error);
  }

  measure(depth) {
    const point = { x: depth };
    for (const [name, list] of Object.entries(this.models)) {
      point[name] = meanError(list, this.unseen, depth, this.discount);
    }
    this.result.push(point);
  }
}
