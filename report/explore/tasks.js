// Tasks: Markov reward processes (p, r) with n states, and the batches that Algorithms 1 and 2 train on.
//
// Matrices are flat, row by row: transition[s * n + j] is p(j | s).

// Each environment fills the transitions of a random chain, which are zero before.
const ENVIRONMENTS = {
  // Boyan's chains (Algorithm 3): each state leads to the next two states, and the last state to all states.
  boyan(random, n, transition) {
    for (let s = 0; s < n - 2; s++) {
      const epsilon = random.uniform();
      transition[s * n + s + 1] = epsilon;
      transition[s * n + s + 2] = 1 - epsilon;
    }
    transition[(n - 2) * n + n - 1] = 1;
    for (let j = 0; j < n; j++) transition[(n - 1) * n + j] = random.uniform();
    normaliseRow(transition, n, n - 1);
  },
  // Loops (Algorithm 4): a cycle through all states, and chords that exist with probability 1 - threshold.
  loop(random, n, transition, { threshold }) {
    for (let s = 0; s < n; s++) {
      for (let j = 0; j < n; j++) {
        const connected = j === (s + 1) % n || (j !== s && random.uniform() > threshold);
        if (connected) transition[s * n + j] = random.uniform();
      }
      normaliseRow(transition, n, s);
    }
  },
};

function normaliseRow(matrix, n, row) {
  let sum = 0;
  for (let j = 0; j < n; j++) sum += matrix[row * n + j];
  for (let j = 0; j < n; j++) matrix[row * n + j] /= sum;
}

// Fill mu (n) with mu p = mu, by the elimination of Grassmann, Taksar and Heyman (1985), which subtracts nothing.
// The matrix `work` (n, n) is scratch.
function fillStationary(n, transition, work, mu) {
  work.set(transition);
  for (let k = n - 1; k > 0; k--) {
    let sum = 0;
    for (let j = 0; j < k; j++) sum += work[k * n + j];
    for (let i = 0; i < k; i++) {
      work[i * n + k] /= sum;
      for (let j = 0; j < k; j++) work[i * n + j] += work[i * n + k] * work[k * n + j];
    }
  }
  let total = 1;
  mu[0] = 1;
  for (let k = 1; k < n; k++) {
    mu[k] = 0;
    for (let i = 0; i < k; i++) mu[k] += mu[i] * work[i * n + k];
    total += mu[k];
  }
  for (let k = 0; k < n; k++) mu[k] /= total;
}

// Solve matrix x = vector in place, by elimination with partial pivoting; x takes the place of the vector.
function solveInPlace(n, matrix, vector) {
  for (let k = 0; k < n; k++) {
    let pivot = k;
    for (let i = k + 1; i < n; i++) {
      if (Math.abs(matrix[i * n + k]) > Math.abs(matrix[pivot * n + k])) pivot = i;
    }
    for (let j = k; j < n; j++) {
      [matrix[k * n + j], matrix[pivot * n + j]] = [matrix[pivot * n + j], matrix[k * n + j]];
    }
    [vector[k], vector[pivot]] = [vector[pivot], vector[k]];
    for (let i = k + 1; i < n; i++) {
      const factor = matrix[i * n + k] / matrix[k * n + k];
      for (let j = k; j < n; j++) matrix[i * n + j] -= factor * matrix[k * n + j];
      vector[i] -= factor * vector[k];
    }
  }
  for (let k = n - 1; k >= 0; k--) {
    for (let j = k + 1; j < n; j++) vector[k] -= matrix[k * n + j] * vector[j];
    vector[k] /= matrix[k * n + k];
  }
}

// v = (I - gamma p)^{-1} r (appendix, proof of Theorem 1).
function valueFunction(task, discount) {
  const n = task.reward.length;
  const matrix = task.transition.map((p) => -discount * p);
  for (let s = 0; s < n; s++) matrix[s * n + s] += 1;
  const value = task.reward.slice();
  solveInPlace(n, matrix, value);
  return value;
}

// MSVE(w) = sum_s mu(s) (v(s) - w(s))^2.
function msveOf(task, value, estimate) {
  let error = 0;
  for (let s = 0; s < value.length; s++) error += task.stationary[s] * (value[s] - estimate[s]) ** 2;
  return error;
}

// Draws states of a chain: rows 0 to n - 1 of a table have the next states, and row n the stationary distribution.
class StateSampler {
  constructor(n) {
    this.n = n;
    this.table = new AliasTable((n + 1) * n);
  }

  prepare(transition, stationary) {
    const n = this.n;
    for (let s = 0; s < n; s++) this.table.fillRow(s * n, n, transition, s * n);
    this.table.fillRow(n * n, n, stationary, 0);
  }

  first(random) {
    return this.next(random, this.n);
  }

  next(random, state) {
    return this.table.draw(random, state * this.n, this.n) - state * this.n;
  }
}

// Largest number of paths in a table: two steps of any chain with 10 states.
const PATHS = 1024;

// Draws several steps of a chain at once: a table has all paths of so many steps from each state, with the last state
// of a path and its gain r(s_1) + gamma r(s_2) + ... + gamma^{k-1} r(s_k).
class PathSampler {
  constructor(n) {
    const made = () => ({
      counts: new Int32Array(n), // Number of paths from each state.
      firsts: new Int32Array(n), // Where they begin in the other arrays.
      chance: new Float64Array(PATHS),
      gain: new Float64Array(PATHS),
      last: new Int32Array(PATHS),
    });
    this.n = n;
    this.paths = made();
    this.longer = made();
    this.table = new AliasTable(PATHS);
  }

  // List the paths of as many steps as fit into the table, at most `most`, and set `length`.
  prepare(transition, reward, discount, most) {
    const { n, paths, table } = this;
    for (let s = 0; s < n; s++) {
      paths.counts[s] = 1;
      paths.firsts[s] = s;
      paths.chance[s] = 1;
      paths.gain[s] = 0;
      paths.last[s] = s;
    }
    for (this.length = 0; this.length < most && this.lengthen(transition, reward, discount); this.length++);
    const { firsts, counts, chance } = this.paths;
    for (let s = 0; s < n; s++) table.fillRow(firsts[s], counts[s], chance, firsts[s]);
  }

  // Add a first step to all paths, unless there are too many.
  lengthen(transition, reward, discount) {
    const { n, paths, longer } = this;
    let count = 0;
    for (let i = 0; i < n * n; i++) if (transition[i] > 0) count += paths.counts[i % n];
    if (count > PATHS) return false;
    count = 0;
    for (let s = 0; s < n; s++) {
      longer.firsts[s] = count;
      for (let j = 0; j < n; j++) {
        const p = transition[s * n + j];
        if (p === 0) continue;
        for (let path = paths.firsts[j]; path < paths.firsts[j] + paths.counts[j]; path++) {
          longer.chance[count] = p * paths.chance[path];
          longer.gain[count] = reward[j] + discount * paths.gain[path];
          longer.last[count] = paths.last[path];
          count++;
        }
      }
      longer.counts[s] = count - longer.firsts[s];
    }
    this.paths = longer;
    this.longer = paths;
    return true;
  }

  // A random path from a state, an index of the arrays `last` and `gain` of `paths`.
  draw(random, state) {
    return this.table.draw(random, this.paths.firsts[state], this.paths.counts[state]);
  }
}

// Random tasks of the settings, and their batches, in arrays that every draw fills anew.
class TaskSource {
  constructor(settings) {
    const n = settings.states;
    this.settings = settings;
    this.transition = new Float64Array(n * n);
    this.reward = new Float64Array(n);
    this.stationary = new Float64Array(n);
    this.transitions = new Float64Array(n * n); // Numbers of the batch's steps from each state to each state.
    this.targets = settings.target === "td" ? null : new Float64Array(n); // Their sums over the visits to each state.
    this.states = new StateSampler(n);
    this.jumps = new PathSampler(n);
    this.work = new Float64Array(n * n);
    this.other = new Float64Array(n * n);
    this.order = new Int32Array(n);
  }

  drawTask(random) {
    const { settings, transition, reward } = this;
    const n = settings.states;
    transition.fill(0);
    ENVIRONMENTS[settings.environment](random, n, transition, settings);
    for (let s = 0; s < n; s++) reward[s] = 2 * random.uniform() - 1;
    if (settings.relabelled) this.permute(random);
    fillStationary(n, transition, this.work, this.stationary);
  }

  // Replace the task by (Pi p Pi', Pi r) with a uniform random permutation Pi, by Fisher and Yates.
  permute(random) {
    const { order, transition, reward, work, other } = this;
    const n = order.length;
    for (let s = 0; s < n; s++) {
      const earlier = random.integer(s + 1);
      order[s] = order[earlier];
      order[earlier] = s;
    }
    work.set(transition);
    other.set(reward);
    for (let s = 0; s < n; s++) {
      reward[s] = other[order[s]];
      for (let j = 0; j < n; j++) transition[s * n + j] = work[order[s] * n + order[j]];
    }
  }

  // A trajectory S_0, ..., S_b from the stationary distribution, of which an update needs the transitions only; and the
  // sums of returns.
  drawBatch(forSteps, forReturns) {
    const { settings, states, transitions } = this;
    const n = settings.states;
    states.prepare(this.transition, this.stationary);
    transitions.fill(0);
    let state = states.first(forSteps);
    for (let t = 0; t < settings.batchSize; t++) {
      const next = states.next(forSteps, state);
      transitions[state * n + next] += 1;
      state = next;
    }
    if (settings.target === "mc") this.drawReturns(forReturns);
  }

  visits(state) {
    const n = this.settings.states;
    let visits = 0;
    for (let j = 0; j < n; j++) visits += this.transitions[state * n + j];
    return visits;
  }

  // From each of S_0, ..., S_{b-1}, an independent return of tau rewards (Algorithm 2): r(s), and the gains of jumps
  // along paths of several steps, then of single steps.
  drawReturns(random) {
    const { settings, reward, states, jumps, targets } = this;
    const { states: n, discount, rolloutSteps } = settings;
    jumps.prepare(this.transition, reward, discount, rolloutSteps - 1);
    const { last, gain } = jumps.paths;
    const decay = discount ** jumps.length;
    for (let s = 0; s < n; s++) {
      let sum = 0;
      for (let visit = this.visits(s); visit > 0; visit--) {
        let state = s;
        let weight = discount;
        let step = 1;
        sum += reward[s];
        for (; step + jumps.length <= rolloutSteps; step += jumps.length) {
          const path = jumps.draw(random, state);
          sum += weight * gain[path];
          state = last[path];
          weight *= decay;
        }
        for (; step < rolloutSteps; step++) {
          state = states.next(random, state);
          sum += weight * reward[state];
          weight *= discount;
        }
      }
      targets[s] = sum;
    }
  }

  // A copy of the present task.
  task() {
    return { transition: this.transition.slice(), reward: this.reward.slice(), stationary: this.stationary.slice() };
  }
}

// Tasks that no run sees, the same for all models of a seed.
function unseenTasks(settings, count, purpose = "unseen tasks") {
  const source = new TaskSource(settings);
  const random = new RandomStream(settings.seed, purpose);
  return Array.from({ length: count }, () => {
    source.drawTask(random);
    return source.task();
  });
}
