// Estimates of values from contexts: the Transformer on any context, and baselines.
//
// All of them depend on a context of m columns [phi_t; phi_{t+1}; R_{t+1}] only through averages (ictd.context.Context):
//
//     C = (1/m) sum_t phi_t phi_t',    D = (1/m) sum_t phi_t phi_{t+1}',    E = (1/m) sum_t phi_{t+1} phi_{t+1}',
//     b = (1/m) sum_t R_{t+1} phi_t,    d = (1/m) sum_t R_{t+1} phi_{t+1}.
//
// With one-hot features C is diagonal, and stored as an array (n).

function emptyContext(n, length) {
  const [C, b, d] = [new Float64Array(n), new Float64Array(n), new Float64Array(n)];
  return { n, length, C, D: new Float64Array(n * n), E: new Float64Array(n * n), b, d };
}

// A column for each of the m steps of a path S_0, ..., S_m, eq. (Z0 def original).
function contextOfSteps(task, path, length) {
  const n = task.reward.length;
  const context = emptyContext(n, length);
  for (let t = 0; t < length; t++) {
    const [state, next] = [path[t], path[t + 1]];
    context.C[state] += 1 / length;
    context.D[state * n + next] += 1 / length;
    context.E[next * n + next] += 1 / length;
    context.b[state] += task.reward[state] / length;
    context.d[next] += task.reward[state] / length;
  }
  return context;
}

// A column [phi(s); sum_j p(j | s) phi(j); r(s)] for each state s, or a column of zeros if the row of p is zero.
function contextOfStates(transition, reward) {
  const n = reward.length;
  const context = emptyContext(n, n);
  for (let s = 0; s < n; s++) {
    const row = transition.subarray(s * n, (s + 1) * n);
    if (row.every((p) => p === 0)) continue;
    context.C[s] = 1 / n;
    context.b[s] = reward[s] / n;
    for (let i = 0; i < n; i++) {
      context.D[s * n + i] = row[i] / n;
      context.d[i] += (reward[s] * row[i]) / n;
      for (let j = 0; j < n; j++) context.E[i * n + j] += (row[i] * row[j]) / n;
    }
  }
  return context;
}

// A column for each visited state, with means over its steps.
function contextOfGroups(task, path, length) {
  const n = task.reward.length;
  const shares = contextOfSteps(task, path, length);
  for (let s = 0; s < n; s++) {
    for (let j = 0; j < n && shares.C[s] > 0; j++) shares.D[s * n + j] /= shares.C[s];
  }
  return contextOfStates(shares.D, task.reward);
}

// The context of the first steps of a path in a format, "steps" or "grouped".
function contextOf(task, path, steps, format) {
  return format === "grouped" ? contextOfGroups(task, path, steps) : contextOfSteps(task, path, steps);
}

// TF_L(s) = -(k_0 + ... + k_{L-1}) A[:, s] with k_0 = u M + c and k_{l+1} = k_l (I + A M), where
// M = [C, gamma D; gamma D', gamma^2 E] and c = [b; gamma d] (eq. (Yl dissection), summed over the context).
function transformerEstimate(weights, context, depth, discount) {
  const { n, C, D, E, b, d } = context;
  const wide = 2 * n;
  const M = new Float64Array(wide * wide);
  for (let i = 0; i < n; i++) {
    M[i * wide + i] = C[i];
    for (let j = 0; j < n; j++) {
      M[i * wide + n + j] = M[(n + j) * wide + i] = discount * D[i * n + j];
      M[(n + i) * wide + n + j] = discount ** 2 * E[i * n + j];
    }
  }
  const AM = new Float64Array(wide * wide);
  for (let i = 0; i < wide; i++) {
    for (let j = 0; j < wide; j++) {
      const entry = weights.A[i * wide + j];
      for (let k = 0; k < wide; k++) AM[i * wide + k] += entry * M[j * wide + k];
    }
  }
  let k = new Float64Array(wide);
  let next = new Float64Array(wide);
  const total = new Float64Array(wide);
  for (let i = 0; i < n; i++) {
    k[i] = b[i];
    k[n + i] = discount * d[i];
  }
  for (let i = 0; i < wide; i++) for (let j = 0; j < wide; j++) k[j] += weights.u[i] * M[i * wide + j];
  for (let layer = 0; layer < depth; layer++) {
    for (let i = 0; i < wide; i++) total[i] += k[i];
    next.set(k);
    for (let i = 0; i < wide; i++) for (let j = 0; j < wide; j++) next[j] += k[i] * AM[i * wide + j];
    [k, next] = [next, k];
  }
  const estimate = new Float64Array(n);
  for (let i = 0; i < wide; i++) for (let s = 0; s < n; s++) estimate[s] -= total[i] * weights.A[i * wide + s];
  return estimate;
}

// Columns [phi(S_t); gamma phi(S_{t+1})] of the steps of a path, or, without a path, a column
// [phi(s); gamma sum_j p(j | s) phi(j)] for each state s.  With discount 0 these are the query columns [phi(s); 0].
function promptColumns(task, path, discount) {
  const n = task.reward.length;
  const states = path ? path.slice(0, -1) : task.reward.map((_, s) => s);
  return Array.from(states, (state, t) => {
    const column = new Float64Array(2 * n);
    column[state] = 1;
    for (let j = 0; j < n; j++) {
      const p = path ? Number(path[t + 1] === j) : task.transition[state * n + j];
      column[n + j] = discount * p;
    }
    return { state, column };
  });
}

// The last row of a prompt [X, X^q] after 0, 1, ..., depth layers, by their definition: each adds
// (u X + y) X'A [X, X^q] / m to the row y, whose entries of queries are minus the estimates.  `rewards` are those of X.
function lastRows(weights, columns, rewards, depth) {
  const wide = 2 * weights.states;
  const X = columns.slice(0, rewards.length);
  const scores = columns.map((z) => {
    const ofA = Float64Array.from(z, (_, i) => innerProduct(z, weights.A.subarray(i * wide)));
    return X.map((x) => innerProduct(x, ofA) / X.length);
  });
  const ofU = X.map((x) => innerProduct(x, weights.u));
  const rows = [columns.map((_, c) => rewards[c] ?? 0)];
  for (let layer = 0; layer < depth; layer++) {
    const last = rows.at(-1);
    const sums = ofU.map((entry, j) => entry + last[j]);
    rows.push(last.map((entry, c) => entry + innerProduct(sums, scores[c])));
  }
  return rows;
}

// Batch TD, w += alpha (b + gamma D w - C w), L times from w = 0.  theta^TD with A times alpha has these estimates.
function batchTd(context, depth, discount, stepSize) {
  const { n, C, D, b } = context;
  const w = new Float64Array(n);
  const change = new Float64Array(n);
  for (let layer = 0; layer < depth; layer++) {
    for (let s = 0; s < n; s++) {
      let next = 0;
      for (let j = 0; j < n; j++) next += D[s * n + j] * w[j];
      change[s] = b[s] + discount * next - C[s] * w[s];
    }
    for (let s = 0; s < n; s++) w[s] += stepSize * change[s];
  }
  return w;
}

// Least-squares TD, (C - gamma D + ridge / m I)^{-1} b.
function lstd(context, discount, ridge = 0.01) {
  const { n, length, C, D, b } = context;
  const matrix = D.map((share) => -discount * share);
  for (let s = 0; s < n; s++) matrix[s * n + s] += C[s] + ridge / length;
  const w = b.slice();
  solveInPlace(n, matrix, w);
  return w;
}

// The mean observed reward divided by 1 - gamma, for all states.
function constantEstimate(context, discount) {
  const sum = (total, entry) => total + entry;
  const meanReward = context.b.reduce(sum) / context.C.reduce(sum);
  return new Float64Array(context.n).fill(meanReward / (1 - discount));
}

// Estimates from the first steps of a path, by name.  LSTD and the constant see a column for each step in any format.
function baselineEstimates(task, path, steps, format, depth, discount, stepSize) {
  const ofSteps = contextOf(task, path, steps, "steps");
  return {
    theta_td: batchTd(contextOf(task, path, steps, format), depth, discount, stepSize),
    lstd: lstd(ofSteps, discount),
    constant: constantEstimate(ofSteps, discount),
    zero: new Float64Array(ofSteps.n),
  };
}

// A trajectory S_0, ..., S_m of a task.
function drawPath(task, steps, random) {
  const states = new StateSampler(task.reward.length);
  states.prepare(task.transition, task.stationary);
  const path = new Int32Array(steps + 1);
  path[0] = states.first(random);
  for (let t = 0; t < steps; t++) path[t + 1] = states.next(random, path[t]);
  return path;
}

function meanOf(numbers) {
  let sum = 0;
  for (const number of numbers) sum += number;
  return sum / numbers.length;
}

// MSVE on the enumerated prompt of each task.
function enumeratedMsve(weights, tasks, depth, discount) {
  const transformer = new LoopedTransformer(weights.states, depth, discount);
  const parameter = parameterOf(weights);
  return tasks.map((task) => {
    transformer.run(parameter, task.transition, task.reward);
    return msveOf(task, valueFunction(task, discount), transformer.estimate);
  });
}

// Mean MSVE on enumerated prompts, over models and tasks; an overflow counts as infinite.
function meanError(models, tasks, depth, discount) {
  const errors = divided(models, tasks).flatMap(([weights, own]) => enumeratedMsve(weights, own, depth, discount));
  return meanOf(errors.map((error) => (Number.isNaN(error) ? Infinity : error)));
}

// Models, each with its own tasks: the tasks are divided among them, so that several models take the time of one.
function divided(models, tasks) {
  const share = Math.floor(tasks.length / models.length);
  return models.map((weights, i) => [weights, tasks.slice(i * share, (i + 1) * share)]);
}
