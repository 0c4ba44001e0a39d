// The settings of an experiment: defaults, those of the paper, and what is wrong with given ones.

const DEFAULT_SETTINGS = {
  environment: "boyan",
  relabelled: false, // Whether the labels of the states are permuted in each task.
  states: 5,
  depth: 30,
  discount: 0.9,
  target: "td",
  learningRate: 0.001,
  tasks: 20000,
  different: 0, // How many different tasks; 0: a new one in each update.
  seeds: 20,
  seed: 0, // The first of the seeds.
  batchSize: 64,
  rolloutSteps: 200,
  initialGain: 0.1,
  threshold: 0.5, // Of Loop.
};

const CHOICES = { environment: ["boyan", "loop"], target: ["td", "mc"] };

// Least and greatest values of numbers; those with a fraction are in FRACTIONS.
const LIMITS = {
  states: [2, 10],
  depth: [1, 60],
  discount: [0.5, 0.99],
  learningRate: [1e-5, 0.1],
  tasks: [1, 200000],
  different: [0, 200000],
  seeds: [1, 20],
  seed: [0, 2 ** 32 - 1],
};
const FRACTIONS = ["discount", "learningRate"];

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

// One sentence for each error, as in the Python library (ictd.checks).
function checkSettings(settings) {
  const errors = [];
  for (const [name, known] of Object.entries(CHOICES)) {
    const value = settings[name];
    if (!known.includes(value)) errors.push(`${name} is '${value}'; choose from ${known.join(", ")}.`);
  }
  for (const [name, [least, most]] of Object.entries(LIMITS)) {
    const value = settings[name];
    const whole = !FRACTIONS.includes(name);
    if (value >= least && value <= most && (!whole || Number.isInteger(value))) continue;
    const given = Number.isNaN(value) ? "not a number" : value;
    errors.push(`${name} is ${given}; give a ${whole ? "whole " : ""}number from ${least} to ${most}.`);
  }
  return errors;
}
