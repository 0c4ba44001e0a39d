// Random numbers: one independent stream for each seed and purpose.

// sfc32 of Doty-Humphrey's PractRand library, with 128 bits of state.
class RandomStream {
  constructor(seed, purpose) {
    let name = 0x811c9dc5; // The FNV-1a hash of the purpose.
    for (const letter of purpose) name = Math.imul(name ^ letter.codePointAt(0), 0x01000193);
    this.state = Int32Array.of(seed, name, 0x9e3779b9, 1);
    for (let i = 0; i < 20; i++) this.word();
  }

  // A random number of 32 bits, with a sign.
  word() {
    const state = this.state;
    const word = (((state[0] + state[1]) | 0) + state[3]) | 0;
    state[3] = state[3] + 1;
    state[0] = state[1] ^ (state[1] >>> 9);
    state[1] = (state[2] + (state[2] << 3)) | 0;
    state[2] = (((state[2] << 21) | (state[2] >>> 11)) + word) | 0;
    return word;
  }

  // Uniform between 0 and 1, both excluded.
  uniform() {
    return ((this.word() >>> 0) + 0.5) / 4294967296;
  }

  // A whole number from 0 to count - 1.
  integer(count) {
    return Math.floor(this.uniform() * count);
  }

  // Standard normal, by the method of Box and Muller.
  normal() {
    const radius = Math.sqrt(-2 * Math.log(this.uniform()));
    return radius * Math.cos(2 * Math.PI * this.uniform());
  }
}

// Tables to draw from discrete distributions, each of which is a row of columns.
//
// A draw is that of Walker's alias method (ACM Transactions on Mathematical Software 3(3), 1977; tables built as in
// Vose, IEEE Transactions on Software Engineering 17(9), 1991): a random column of the row, then this column or its
// alias.  It rounds probabilities by about 2^-30; a probability of zero stays zero.
class AliasTable {
  constructor(columns) {
    this.height = new Float64Array(columns);
    this.accept = new Int32Array(columns); // In units of 2^-30.
    this.outcomes = new Int32Array(2 * columns); // The alias of each column, and the column.
    this.small = new Int32Array(columns);
    this.large = new Int32Array(columns);
  }

  // Fill the row of the columns first, ..., first + count - 1 with the probabilities from `start` on.
  fillRow(first, count, probabilities, start) {
    const { height, accept, outcomes, small, large } = this;
    let smalls = 0;
    let larges = 0;
    for (let k = first; k < first + count; k++) {
      height[k] = count * probabilities[start + k - first];
      outcomes[2 * k] = outcomes[2 * k + 1] = k;
      if (height[k] < 1) small[smalls++] = k;
      else large[larges++] = k;
    }
    while (smalls > 0 && larges > 0) {
      const poor = small[--smalls];
      const rich = large[larges - 1];
      outcomes[2 * poor] = rich;
      height[rich] -= 1 - height[poor];
      if (height[rich] < 1) {
        larges--;
        small[smalls++] = rich;
      }
    }
    for (let k = first; k < first + count; k++) accept[k] = height[k] * 2 ** 30;
  }

  // An index in place of a branch, which processors mispredict half of the time.
  draw(random, first, count) {
    const place = random.uniform() * count;
    const column = place | 0;
    const fraction = ((place - column) * 2 ** 30) | 0;
    const accepted = (fraction - this.accept[first + column]) >>> 31;
    return this.outcomes[2 * (first + column) + accepted];
  }
}
