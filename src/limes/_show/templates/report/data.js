/* The numbers of a report, as limes/_show/report/packing.py packs them, and one explanation made of them. */

const KINDS = {
  f4: Float32Array, f8: Float64Array, i2: Int16Array, i4: Int32Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array,
};
const STEP = 1 / 4096;
const NOT_A_NUMBER = -32768;

async function inflated(base64) {
  const binary = atob(base64);
  const packed = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) packed[i] = binary.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/* An array lies in planes: all first bytes of its numbers, all second ones, and so on. */
function arrayAt(bytes, { at, type, size }) {
  const width = KINDS[type].BYTES_PER_ELEMENT;
  const joined = new Uint8Array(size * width);
  for (let plane = 0; plane < width; plane += 1) {
    const start = at + plane * size;
    for (let i = 0; i < size; i += 1) joined[i * width + plane] = bytes[start + i];
  }
  return new KINDS[type](joined.buffer);
}

/* n rows, d features, k outputs; number (k·d + j)·n + i is that of row i, feature j and output k. */
class LocalExplanation {
  constructor(content, bytes) {
    Object.assign(this, content);
    this.bytes = bytes;
    this.arrays = new Map(); // unpacked when they are first needed
    this.starts = new Map();
    this.n = content.rows;
    this.d = content.features.length;
    this.k = content.outputs.length;
  }

  array(reference) {
    if (!this.arrays.has(reference)) this.arrays.set(reference, arrayAt(this.bytes, reference));
    return this.arrays.get(reference);
  }

  label(i) {
    if (this.ids.texts) return this.ids.texts[i];
    return `row ${this.array(this.ids.numbers)[i]}`;
  }

  at(reference, i, k) {
    return this.array(reference)[k * this.n + i];
  }

  prediction(i, k) { return this.at(this.predictions, i, k); }
  surrogate(i, k) { return this.at(this.surrogates, i, k); }
  intercept(i, k) { return this.at(this.intercepts, i, k); }
  r2(i, k) { return this.at(this.fidelity, i, k); }
  r2Error(i, k) { return this.fidelityErrors ? this.at(this.fidelityErrors, i, k) : 0; }

  /* The account of the prediction: contributions of all features, largest first. */
  share(i, j, k) {
    const at = (k * this.d + j) * this.n + i;
    const { values, errors } = this.account;
    return { j, value: this.array(values)[at], error: errors ? this.array(errors)[at] : 0 };
  }

  shares(i, k) {
    const every = this.features.map((_, j) => this.share(i, j, k));
    return every.sort((a, b) => Math.abs(b.value) - Math.abs(a.value) || a.j - b.j);
  }

  /* What the row has: the column and its value, or what is shown of an input. */
  holds(i, j) {
    const { shown } = this.account;
    return shown ? shown[j].entries[this.array(shown[j].codes)[i]] : `${this.features[j]} = ${this.cell(i, j)}`;
  }

  base(i, k) { return this.at(this.account.base, i, k); }
  baseError(i, k) { return this.account.baseErrors ? this.at(this.account.baseErrors, i, k) : 0; }

  /* How little the surrogate captures: [sentence, whether it is a warning]. */
  remark(i, k) { return this.remarks.entries[this.at(this.remarks.codes, i, k)]; }

  value(i, j, k) { return this.array(this.values)[(k * this.d + j) * this.n + i]; }
  error(i, j, k) { return this.errors ? this.array(this.errors)[(k * this.d + j) * this.n + i] : 0; }
  condition(i, j) { return this.conditions[j].entries[this.array(this.conditions[j].codes)[i]]; }

  /* Bars of slopes are per standard deviation of their columns. */
  deviation(j) { return this.deviations ? this.array(this.deviations)[j] : 1; }

  /* Of a column that has a slope, else NaN. */
  mean(j) { return this.means ? this.array(this.means)[j] : NaN; }

  cell(i, j) {
    const column = this.data[j];
    return column.numbers ? cellText(this.array(column.numbers)[i]) : column.entries[this.array(column.codes)[i]];
  }

  /* Output with the largest prediction. */
  largest(i) {
    let best = 0;
    for (let k = 1; k < this.k; k += 1) if (this.prediction(i, k) > this.prediction(i, best)) best = k;
    return best;
  }

  /* Entries of row i of lists that are stored one after another. */
  entriesOf(lists, i) {
    if (!this.starts.has(lists)) {
      const starts = new Uint32Array(this.n + 1);
      this.array(lists.counts).forEach((count, row) => { starts[row + 1] = starts[row] + count; });
      this.starts.set(lists, starts);
    }
    const starts = this.starts.get(lists);
    const codes = this.array(lists.codes).subarray(starts[i], starts[i + 1]);
    return Array.from(codes, (code) => lists.entries[code]);
  }

  warningsOf(i) { return this.entriesOf(this.warnings, i); }
  limeWarningsOf(i) { return this.entriesOf(this.limeWarnings, i); }
  findingsOf(i) { return this.findings ? this.entriesOf(this.findings.found, i) : []; }
  verdictOf(i) { return this.findings.verdicts.entries[this.array(this.findings.verdicts.codes)[i]]; }

  alarms(i) {
    const found = this.findingsOf(i).filter(([severity]) => severity === 'warning').length;
    return this.warningsOf(i).length + found;
  }

  /* Coefficients, as bars are long; at a stop of the bandwidths, or those of the explanation for null. */
  drawn(i, k, stop = null) {
    const moved = stop !== null && stop !== this.curves.current;
    return Array.from({ length: this.d }, (_, j) => (
      moved ? this.curve(i, j, k, stop) : this.value(i, j, k) * this.deviation(j)));
  }

  get stops() { return this.curves.bandwidths ? Array.from(this.array(this.curves.bandwidths)) : []; }

  /* β_ij(ν) = scale_i · step · Σ_r c_ijr V_r(ν): limes/_show/report/curves.py. */
  curve(i, j, k, stop) {
    const { rank, basis, step, weights, scales } = this.curves;
    const [vectors, steps] = [this.array(basis), this.array(weights)];
    const width = vectors.length / rank;
    let sum = 0;
    for (let r = 0; r < rank; r += 1) {
      sum += steps[((r * this.k + k) * this.d + j) * this.n + i] * vectors[r * width + stop];
    }
    return sum * step * this.at(scales, i, k);
  }

  get hasEffects() { return Boolean(this.effects && this.effects.counts); }

  /* The whole effect of a column: {cells, values, errors, current}. */
  effect(i, j, k) {
    const { counts, current, cells, scales, values, errors } = this.effects;
    if (!this.places) {
      this.places = [0];
      counts.forEach((count) => this.places.push(this.places.at(-1) + count));
    }
    const scale = this.at(scales, i, k) * STEP;
    const read = (reference) => Array.from({ length: counts[j] }, (_, b) => {
      const share = this.array(reference)[(k * this.places.at(-1) + this.places[j] + b) * this.n + i];
      return share === NOT_A_NUMBER ? NaN : share * scale;
    });
    const texts = cells ? cells[j].entries[this.array(cells[j].codes)[i]] : null;
    return {
      feature: this.features[j],
      cells: texts || Array.from({ length: counts[j] }, (_, b) => `slice ${b + 1} of ${counts[j]}`),
      values: read(values),
      errors: errors ? read(errors) : null,
      current: this.array(current)[j * this.n + i],
    };
  }
}
