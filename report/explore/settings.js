// The settings of an experiment: defaults, those of the paper, and what is wrong with given ones.

const DEFAULT_SETTINGS = {
  environment: "boyan",
  own: null, // A chain of one's own: {transition, rewards}, lists of numbers; rewards that are null are random.
  relabelled: false, // Whether the labels of the states are permuted in each task.
  states: 5,
  depth: 30,
  discount: 0.9,
  target: "td",
  learningRate: 0.001,
  tasks: 20000,
  seeds: 20,
  seed: 0, // The first of the seeds.
  batchSize: 64,
  rolloutSteps: 200,
  initialGain: 0.1,
  threshold: 0.5, // Of Loop.
};

const CHOICES = { environment: ["boyan", "loop", "dense", "ring", "own"], target: ["td", "mc", "values"] };

// Least and greatest values.
const LIMITS = {
  states: [2, 10],
  depth: [1, 60],
  discount: [0.5, 0.99],
  learningRate: [1e-5, 0.1],
  tasks: [1, 200000],
  seeds: [1, 20],
  seed: [0, 2 ** 32 - 1],
};

// What differs from the defaults.
const PAPER_SETTINGS = [
  {},
  { states: 3 },
  { states: 10 },
  { depth: 5 },
  { depth: 10 },
  { depth: 60 },
  { environment: "loop" },
];

// One sentence for each error, those of the Python library (ictd.checks) where it has one.
function checkSettings(settings) {
  const errors = [];
  for (const [name, known] of Object.entries(CHOICES)) {
    const value = settings[name];
    if (!known.includes(value)) errors.push(`${name} is '${value}'; choose from ${known.join(", ")}.`);
  }
  const own = settings.environment === "own";
  for (const name of ["states", "depth", "discount", "learningRate", "tasks", "seeds", "seed"]) {
    if (own && name === "states") continue; // The matrix gives their number.
    const [least, most] = LIMITS[name];
    const value = settings[name];
    const whole = !["discount", "learningRate"].includes(name);
    if (typeof value === "number" && value >= least && value <= most && (!whole || Number.isInteger(value))) continue;
    const given = Number.isNaN(value) ? "not a number" : value;
    errors.push(`${name} is ${given}; give a ${whole ? "whole " : ""}number from ${least} to ${most}.`);
  }
  return own ? [...errors, ...ownErrors(settings)] : errors;
}

// Largest deviation of a row sum from one that counts as rounding, without and with a warning, as in the library.
const SINGLE = 2.5e-7;
const LARGEST_TOLERANCE = 1e-3 + 1e-9;

// Largest deviation of a row sum that is accepted: also what rounding to 3 to 6 decimal digits explains.
function largestDeviation(row) {
  const positive = row.filter((p) => p > 0).length;
  for (let digits = 3; digits <= 6; digits++) {
    const rounded = row.every((p) => Math.abs(p * 10 ** digits - Math.round(p * 10 ** digits)) < 1e-6);
    if (rounded) return Math.max(LARGEST_TOLERANCE, (0.5 * positive) / 10 ** digits + 1e-9);
  }
  return LARGEST_TOLERANCE;
}

function rowSum(row) {
  return row.reduce((sum, entry) => sum + entry, 0);
}

// What is wrong with a chain of one's own; the first error only, because others may follow from it.
function ownErrors({ own, states }) {
  if (own === null) return ["own is missing; give the transition probabilities of a chain."];
  const { transition, rewards } = own;
  const n = transition.length;
  for (const [s, row] of transition.entries()) {
    if (row.length !== n) return [`transition[${s}] has ${row.length} entries; give ${n}, as there are ${n} rows.`];
  }
  const [least, most] = LIMITS.states;
  if (n < least || n > most) return [`the number of states is ${n}; give a whole number from ${least} to ${most}.`];
  if (n !== states) return [`states is ${states}; give ${n}, the number of rows of transition.`];
  for (let s = 0; s < n; s++) {
    const bad = transition[s].findIndex((p) => !(p >= -SINGLE));
    if (bad >= 0) return [`transition[${s}, ${bad}] is ${inWords(transition[s][bad])}, which is not a probability.`];
  }
  for (const [s, row] of transition.entries()) {
    const sum = rowSum(row);
    if (!(Math.abs(sum - 1) <= largestDeviation(row))) {
      const shown = Number(sum.toPrecision(10));
      return [`transition[${s}] sums to ${shown}, not to one; correct the row, or divide it by its sum.`];
    }
  }
  const flat = Float64Array.from(transition.flat());
  const mu = new Float64Array(n);
  fillStationary(n, flat, new Float64Array(n * n), mu);
  if (!mu.every((share) => share > 0)) {
    return ["transition is reducible: some state cannot be reached from every other."];
  }
  if (rewards !== null) {
    if (rewards.length !== n) return [`reward has ${rewards.length} entries; give ${n}, one for each state.`];
    const bad = rewards.findIndex((reward) => !Number.isFinite(reward));
    if (bad >= 0) return [`reward[${bad}] is ${inWords(rewards[bad])}, which is not finite.`];
  }
  return [];
}

// A number as Python writes it.
function inWords(number) {
  return String(number).replace("NaN", "nan").replace("Infinity", "inf");
}

// Rows of a chain of one's own that are rounded, and that are divided by their sums.
function settingsWarnings(settings) {
  if (settings.environment !== "own" || ownErrors(settings).length) return [];
  const rounded = settings.own.transition.some((row) => Math.abs(rowSum(row) - 1) > SINGLE);
  return rounded ? ["rows of transition do not sum to one and are divided by their sums."] : [];
}

// A pasted matrix, whose rows end with a line, a semicolon or a bracket, and pasted rewards; no rewards are null.
function parseOwn(matrixText, rewardsText) {
  const orText = (entry) => (Number.isNaN(Number(entry)) ? entry : Number(entry)); // For the error.
  const numbersOf = (text) => text.split(/[\s,;[\]]+/).filter(Boolean).map(orText);
  const transition = matrixText.split(/[\n;\]]/).map(numbersOf).filter((row) => row.length);
  const rewards = numbersOf(rewardsText);
  return { transition, rewards: rewards.length ? rewards : null };
}
