// The looped Transformer on enumerated prompts: output, gradient and Adam (docs/method.md).
//
// The parameters are the row u (2n) of P and the block A (2n, 2n) of Q, after each other in one array.  An enumerated
// prompt has X = [I; gamma p'] and rewards r.  With attention divided by n,
//
//     h_0 = u X + r',    T = I + X'AX / n,    R = X'A[:, :n] / n,
//     h_{l+1} = h_l T,    g = h_0 + ... + h_{L-1},    TF_L(s) = -g R[:, s]        (eq. (Yl dissection))
//
// and the gradient of sum_s e_s TF_L(s) needs one backward sweep:
//
//     q = R e,    lam_{L-1} = q,    lam_l = q + T lam_{l+1},
//     d/dT = -sum_l h_l' lam_{l+1}',    d/dR = -g' e',    d/dh_0 = -lam_0'.

class LoopedTransformer {
  constructor(states, depth, discount) {
    const [n, wide] = [states, 2 * states];
    Object.assign(this, { states, depth, discount });
    this.Y = new Float64Array(n * n); // The lower half of X, gamma p'.
    this.AX = new Float64Array(wide * n);
    this.T = new Float64Array(n * n);
    this.R = new Float64Array(n * n);
    this.h = new Float64Array(depth * n);
    this.g = new Float64Array(n);
    this.estimate = new Float64Array(n);
    this.e = new Float64Array(n);
    this.q = new Float64Array(n);
    this.lam = new Float64Array(n);
    this.following = new Float64Array(n);
    this.dT = new Float64Array(n * n);
    this.upper = new Float64Array(n * wide); // The upper half of X' times the gradient for A.
    this.gradient = new Float64Array(wide + wide * wide);
  }

  // Fill T, R and h_0 of a task's enumerated prompt.
  readPrompt(parameter, transition, reward) {
    const { states: n, discount, Y, AX, T, R, h } = this;
    const wide = 2 * n;
    for (let i = 0; i < n; i++) for (let s = 0; s < n; s++) Y[i * n + s] = discount * transition[s * n + i];
    for (let i = 0; i < wide; i++) {
      const row = wide + i * wide; // Where row i of A begins.
      for (let s = 0; s < n; s++) {
        let sum = parameter[row + s];
        for (let j = 0; j < n; j++) sum += parameter[row + n + j] * Y[j * n + s];
        AX[i * n + s] = sum;
      }
    }
    for (let i = 0; i < n; i++) {
      for (let s = 0; s < n; s++) {
        let ofT = AX[i * n + s];
        let ofR = parameter[wide + i * wide + s];
        for (let j = 0; j < n; j++) {
          ofT += Y[j * n + i] * AX[(n + j) * n + s];
          ofR += Y[j * n + i] * parameter[wide + (n + j) * wide + s];
        }
        T[i * n + s] = ofT / n + (i === s ? 1 : 0);
        R[i * n + s] = ofR / n;
      }
    }
    for (let s = 0; s < n; s++) {
      let sum = reward[s] + parameter[s];
      for (let j = 0; j < n; j++) sum += parameter[n + j] * Y[j * n + s];
      h[s] = sum;
    }
  }

  // Fill `estimate` (n) with TF_L of all query states.
  run(parameter, transition, reward) {
    const { states: n, depth, T, R, h, g, estimate } = this;
    this.readPrompt(parameter, transition, reward);
    for (let s = 0; s < n; s++) g[s] = h[s];
    for (let next = n; next < depth * n; next += n) {
      for (let s = 0; s < n; s++) {
        let sum = 0;
        for (let j = 0; j < n; j++) sum += h[next - n + j] * T[j * n + s];
        h[next + s] = sum;
        g[s] += sum;
      }
    }
    for (let s = 0; s < n; s++) {
      let sum = 0;
      for (let j = 0; j < n; j++) sum -= g[j] * R[j * n + s];
      estimate[s] = sum;
    }
  }

  // Fill e (n) with -1/b times the sum of the errors delta_t over the visits to each state (Algorithms 1 and 2).
  // The sign is minus because Adam descends.  `targets` has the sums of the targets of the visits; null stands for TD.
  compareWithBatch(reward, transitions, targets) {
    const { states: n, discount, estimate, e } = this;
    let batch = 0;
    for (let s = 0; s < n; s++) {
      let visits = 0;
      let ofNext = 0;
      for (let j = 0; j < n; j++) {
        visits += transitions[s * n + j];
        ofNext += transitions[s * n + j] * estimate[j];
      }
      const target = targets === null ? visits * reward[s] + discount * ofNext : targets[s];
      e[s] = target - visits * estimate[s];
      batch += visits;
    }
    for (let s = 0; s < n; s++) e[s] /= -batch;
  }

  // Fill `gradient` with that of sum_s e_s TF_L(s), by the backward sweep and the chain rule of `readPrompt`:
  // dA = -X (dT X' + [g' e', 0]) / n, and du = -lam_0' X'.
  differentiate() {
    const { states: n, depth, Y, T, R, h, g, e, q, lam, following, dT, upper, gradient } = this;
    const wide = 2 * n;
    for (let i = 0; i < n; i++) {
      let sum = 0;
      for (let s = 0; s < n; s++) sum += R[i * n + s] * e[s];
      q[i] = lam[i] = sum;
    }
    dT.fill(0);
    for (let layer = (depth - 2) * n; layer >= 0; layer -= n) {
      for (let i = 0; i < n; i++) following[i] = lam[i];
      for (let i = 0; i < n; i++) {
        const entry = h[layer + i];
        let sum = q[i];
        for (let j = 0; j < n; j++) {
          dT[i * n + j] += entry * following[j];
          sum += T[i * n + j] * following[j];
        }
        lam[i] = sum;
      }
    }
    for (let i = 0; i < n; i++) {
      for (let s = 0; s < n; s++) {
        let sum = 0;
        for (let j = 0; j < n; j++) sum += dT[i * n + j] * Y[s * n + j];
        upper[i * wide + s] = -(dT[i * n + s] + g[i] * e[s]) / n;
        upper[i * wide + n + s] = -sum / n;
      }
    }
    for (let i = 0; i < n; i++) {
      let ofU = 0;
      for (let j = 0; j < n; j++) ofU -= Y[i * n + j] * lam[j];
      gradient[i] = -lam[i];
      gradient[n + i] = ofU;
      for (let c = 0; c < wide; c++) {
        let sum = 0;
        for (let j = 0; j < n; j++) sum += Y[i * n + j] * upper[j * wide + c];
        gradient[wide + i * wide + c] = upper[i * wide + c];
        gradient[wide + (n + i) * wide + c] = sum;
      }
    }
  }
}

// Adam's constants (Kingma and Ba, ICLR 2015), the defaults of torch.optim.Adam.
const [BETA_1, BETA_2, EPSILON] = [0.9, 0.999, 1e-8];

// Parameters and Adam's moments of one run.
class Learner {
  constructor(parameter, learningRate) {
    this.parameter = parameter;
    this.learningRate = learningRate;
    this.mean = new Float64Array(parameter.length);
    this.square = new Float64Array(parameter.length);
    this.steps = 0;
  }

  // Make one step of Adam, and say whether all parameters are still finite.
  descend(gradient) {
    const { parameter, mean, square } = this;
    this.steps += 1;
    const root = Math.sqrt(1 - BETA_2 ** this.steps);
    const rate = (this.learningRate * root) / (1 - BETA_1 ** this.steps);
    const epsilon = EPSILON * root;
    let sum = 0;
    for (let i = 0; i < parameter.length; i++) {
      mean[i] += (1 - BETA_1) * (gradient[i] - mean[i]);
      square[i] = BETA_2 * square[i] + (1 - BETA_2) * gradient[i] * gradient[i];
      parameter[i] -= (rate * mean[i]) / (Math.sqrt(square[i]) + epsilon);
      sum += parameter[i];
    }
    return Number.isFinite(sum);
  }
}

// One update of Algorithm 1 or 2, for a task with its batch, such as a TaskSource; false if the parameters stop being
// finite, as they do if an estimate is not finite.
function update(transformer, learner, task) {
  transformer.run(learner.parameter, task.transition, task.reward);
  transformer.compareWithBatch(task.reward, task.transitions, task.targets);
  transformer.differentiate();
  return learner.descend(transformer.gradient);
}

// Xavier normal P and Q, masked to u and A.
function initialParameter(states, gain, random) {
  const deviation = gain / Math.sqrt(2 * states + 1);
  return Float64Array.from({ length: 2 * states + 4 * states ** 2 }, () => deviation * random.normal());
}

function weightsOf(states, parameter) {
  return { states, u: parameter.slice(0, 2 * states), A: parameter.slice(2 * states) };
}

function parameterOf(weights) {
  const parameter = new Float64Array(weights.u.length + weights.A.length);
  parameter.set(weights.u);
  parameter.set(weights.A, weights.u.length);
  return parameter;
}

// theta^TD with a step size: u = 0 and A = stepSize [-I, I; 0, 0].
function thetaTd(states, stepSize = 1) {
  const wide = 2 * states;
  const A = new Float64Array(wide * wide);
  for (let i = 0; i < states; i++) {
    A[i * wide + i] = -stepSize;
    A[i * wide + states + i] = stepSize;
  }
  return { states, u: new Float64Array(wide), A };
}
