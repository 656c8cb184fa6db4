/* Numbers in words, as limes/_explanation/wording.py writes them. */

const [SMALL, LARGE] = [1e-3, 1e6]; // outside, numbers have an exponent
const CONFIDENCE = 1.96; // standard errors of a 95 % interval

function decimals(value, significant) {
  return Math.max(0, significant - 1 - Math.floor(Math.log10(Math.abs(value))));
}

function exponential(value, digits) {
  return value.toExponential(digits).replace(/e([+-])(\d)$/, 'e$10$2');
}

function digits(value, significant) {
  if (value === 0) return '0';
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  const size = Math.abs(value);
  if (size < SMALL || size >= LARGE) return exponential(value, significant - 1);
  return value.toFixed(decimals(value, significant));
}

function number(value, significant = 4) {
  const text = digits(value, significant);
  return text.includes('.') && !text.includes('e') ? text.replace(/\.?0+$/, '') : text;
}

function signed(text, value) {
  if (Number.isNaN(value)) return 'unknown';
  return value > 0 ? `+${text}` : text;
}

function difference(value) { return signed(number(value), value); }

/* Numbers of one column: the largest decides on the decimals. */
function signedColumn(values) {
  const largest = values.map(Math.abs).filter(Number.isFinite).reduce((a, b) => Math.max(a, b), 0);
  if (largest < SMALL || largest >= LARGE) return values.map((v) => signed(number(v, 3), v));
  const places = decimals(largest, 4);
  return values.map((v) => {
    if (v === 0 || !Number.isFinite(v)) return signed(number(v), v);
    const text = v.toFixed(places);
    return Number(text) ? signed(text, v) : text.replace('-', '');
  });
}

/* Percentage points of one column, with one decimal unless all are smaller. */
function pointsColumn(values) {
  if (!values.some((v) => Math.abs(v) >= 0.1)) return signedColumn(values);
  return values.map((v) => (v ? signed(v.toFixed(1), +v.toFixed(1)).replace('-0.0', '0.0') : signed('0', v)));
}

/* Parts, start, end and change in words, so that what is written adds up: wording.py's adding_up. */
function addingUp(parts, start, end, significant = 3) {
  const largest = parts.map(Math.abs).reduce((a, b) => Math.max(a, b), 0);
  if (!(largest >= SMALL && largest < LARGE)) {
    return { texts: signedColumn(parts), places: null, start: number(start), end: number(end), change: difference(end - start) };
  }
  const places = decimals(largest, significant);
  const scale = 10 ** places;
  const [first, last] = [Math.round(start * scale), Math.round(end * scale)];
  const rounded = parts.map((part) => Math.floor(part * scale));
  const up = Math.max(0, last - first - rounded.reduce((a, b) => a + b, 0));
  const nearest = parts.map((_, i) => i).sort((a, b) => (
    (parts[a] === 0) - (parts[b] === 0) || (rounded[a] - parts[a] * scale) - (rounded[b] - parts[b] * scale) || a - b));
  nearest.slice(0, up).forEach((i) => { rounded[i] += 1; });
  const text = (steps, value = 1) => {
    if (!steps) return value === 0 ? '0' : (0).toFixed(places);
    return signed((steps / scale).toFixed(places), steps);
  };
  return {
    texts: rounded.map((steps, i) => text(steps, parts[i])),
    places,
    start: (first / scale).toFixed(places),
    end: (last / scale).toFixed(places),
    change: text(last - first),
  };
}

/* What is left of the change after written parts: wording.py's left_of. */
function leftOf(written, texts, value) {
  if (written.places === null) return difference(value);
  const rest = Number(written.change) - texts.reduce((sum, text) => sum + Number(text), 0);
  const text = Math.abs(rest).toFixed(written.places);
  if (!Number(text)) return value === 0 ? '0' : text;
  return rest < 0 ? `-${text}` : `+${text}`;
}

/* A standard error with these decimals, or that it is below their last one. */
function errorWith(value, places) {
  if (places === null) return errorText(value);
  const text = value.toFixed(places);
  return Number(text) ? `± ${text}` : `± <${(10 ** -places).toFixed(places)}`;
}

function errorText(value) { return `± ${digits(value, 2)}`; }

function cellText(value) {
  if (Number.isNaN(value)) return 'missing';
  return Number.isInteger(value) && Math.abs(value) < 1e15 ? String(value) : number(value, 6);
}

function count(amount, noun) {
  return `${amount.toLocaleString('en')} ${noun}${amount === 1 ? '' : 's'}`;
}

function bandwidthText(value) { return Number.isFinite(value) ? number(value, 3) : '∞'; }
