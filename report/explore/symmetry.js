// What weights consist of (docs/theory.md, section "Symmetry"): what changes no output, and what a few numbers
// explain.
//
// Adding a z' to A, or a multiple of a' to u, with a = [-gamma 1; 1], changes no output.

// The weights with the same outputs for which the lower half of each column of A, and of u, sums to zero.
function identifiable(weights, discount) {
  const { states: n, u, A } = weights;
  const wide = 2 * n;
  const made = { states: n, u: u.slice(), A: A.slice() };
  const columns = [[made.u, 0, 1]]; // An array, where a column begins, and the distance of its entries.
  for (let c = 0; c < wide; c++) columns.push([made.A, c, wide]);
  for (const [array, start, step] of columns) {
    let mean = 0;
    for (let i = n; i < wide; i++) mean += array[start + i * step] / n;
    for (let i = 0; i < wide; i++) array[start + i * step] -= mean * (i < n ? -discount : 1);
  }
  return made;
}

// The matrix of least norm with the outputs of A: A without its component along a.
function shortestMatrix(n, A, discount) {
  const wide = 2 * n;
  const made = A.slice();
  const square = n * (discount ** 2 + 1);
  for (let c = 0; c < wide; c++) {
    let component = 0;
    for (let i = 0; i < wide; i++) component += (i < n ? -discount : 1) * A[i * wide + c];
    for (let i = 0; i < wide; i++) made[i * wide + c] -= ((i < n ? -discount : 1) * component) / square;
  }
  return made;
}

// The directions alpha, beta, a, b, H and c: the four entries of B (2, 2), and whether the matrix is B (x) 11' or
// B (x) I.  Eight numbers have these six directions and two that change no output.
const DIRECTIONS = [
  [-1, 1, 0, 0, false],
  [-1, 1, 0, 0, true],
  [1, 1, 0, 0, false],
  [1, 1, 0, 0, true],
  [0, 0, -1, 1, false],
  [0, 0, 1, 1, false],
];

function directionMatrix(n, [topLeft, topRight, bottomLeft, bottomRight, ones]) {
  const wide = 2 * n;
  const made = new Float64Array(wide * wide);
  for (let i = 0; i < wide; i++) {
    const [left, right] = i < n ? [topLeft, topRight] : [bottomLeft, bottomRight];
    for (let j = 0; j < wide; j++) if (ones || i % n === j % n) made[i * wide + j] = j < n ? left : right;
  }
  return made;
}

function innerProduct(first, second) {
  let sum = 0;
  for (let i = 0; i < first.length; i++) sum += first[i] * second[i];
  return sum;
}

// Shares of the first 1, 2, ..., 6 directions in the squared norm of A, without what changes no output.
function sharesOfDirections(n, A, discount) {
  const rest = shortestMatrix(n, A, discount); // Less its projections.
  const square = innerProduct(rest, rest);
  const earlier = []; // The earlier directions, orthogonal and of norm one.
  return DIRECTIONS.map((direction) => {
    const own = shortestMatrix(n, directionMatrix(n, direction), discount);
    const remove = (from, unit) => {
      const component = innerProduct(from, unit);
      for (let i = 0; i < from.length; i++) from[i] -= component * unit[i];
    };
    for (const unit of earlier) remove(own, unit);
    const norm = Math.sqrt(innerProduct(own, own));
    for (let i = 0; i < own.length; i++) own[i] /= norm;
    earlier.push(own);
    remove(rest, own);
    return 1 - innerProduct(rest, rest) / square;
  });
}

// What a layer multiplies constants by, for the mean of A over labels and attention divided by n.
function constantFactor(n, A, discount) {
  const wide = 2 * n;
  const weight = (i) => (i < n ? 1 : discount);
  let factor = 1;
  for (let i = 0; i < wide; i++) {
    for (let j = 0; j < wide; j++) factor += (weight(i) * weight(j) * A[i * wide + j]) / n ** 2;
  }
  return factor;
}

function measures(weights, discount) {
  const n = weights.states;
  const wide = 2 * n;
  const A = identifiable(weights, discount).A;
  let diagonal = 0; // Means of the upper half of K, where K [-I, I] is nearest to A: it acts on TD errors.
  let others = 0;
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      const entry = (A[i * wide + n + j] - A[i * wide + j]) / 2;
      if (i === j) diagonal += entry / n;
      else others += entry / (n * (n - 1));
    }
  }
  const [one, two, , , , eight] = sharesOfDirections(n, weights.A, discount);
  return {
    alpha: (diagonal - others) / n,
    beta: others / n,
    one, two, eight,
    constantFactor: constantFactor(n, weights.A, discount),
  };
}
