/* Elements and small pictures. Texts of the user become text nodes, and nothing else. */

const SVG = 'http://www.w3.org/2000/svg';

/* An element; children are elements or texts. Attributes that are false, null or undefined are left out. */
function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== false && child !== ''));
  return element;
}

function button(text, click, attributes = {}) {
  return el('button', { type: 'button', click, ...attributes }, text);
}

/* From numbers to places from 0 to 100. */
class Scale {
  constructor(numbers) {
    const finite = numbers.filter(Number.isFinite);
    // not Math.min(...finite): a text of thousands of words has more numbers than a call may have arguments
    this.low = finite.reduce((a, b) => Math.min(a, b), Infinity);
    this.high = finite.reduce((a, b) => Math.max(a, b), -Infinity);
    // divided before subtracted: the whole range of floats is wider than a float
    this.size = Math.max(Math.abs(this.low), Math.abs(this.high)) || 1;
    this.span = this.high / this.size - this.low / this.size || 1;
  }

  at(value) { return (100 * (value / this.size - this.low / this.size)) / this.span; }
}

/* A bar from one number to another, with a line at `zero` and a whisker; numbers stand beside it. */
function bar(scale, from, to, { whisker = 0, zero = 0, kind = to > from ? 'raises' : 'lowers' } = {}) {
  const parts = [];
  const place = (a, b) => [Math.min(scale.at(a), scale.at(b)), Math.abs(scale.at(b) - scale.at(a))];
  if (zero !== null) {
    parts.push(svg('line', { class: 'zero', x1: scale.at(zero), x2: scale.at(zero), y1: 0, y2: 16 }));
  }
  if (Number.isFinite(from) && Number.isFinite(to) && from !== to) {
    const [x, width] = place(from, to);
    parts.push(svg('rect', { class: kind, x, width, y: 3, height: 10 }));
  }
  if (whisker > 0 && Number.isFinite(whisker)) {
    const [x, width] = place(to - whisker, to + whisker);
    parts.push(svg('rect', { class: 'whisker', x, width, y: 7, height: 2 }));
  }
  return picture(parts);
}

/* A step of a sum, with a line from one number to another, across it or below: `ends`, or none for null. */
function step(scale, from, to, ends, isError) {
  const parts = [];
  const rect = (kind, a, b, y, height) => parts.push(svg('rect', {
    class: kind, x: Math.min(scale.at(a), scale.at(b)), width: Math.abs(scale.at(b) - scale.at(a)), y, height,
  }));
  parts.push(svg('line', { class: 'zero', x1: scale.at(from), x2: scale.at(from), y1: 0, y2: 16 }));
  if (from !== to) rect(to > from ? 'raises' : 'lowers', from, to, 3, 10);
  if (ends && ends.every(Number.isFinite)) rect(isError ? 'whisker' : 'ends', ...ends, isError ? 7 : 15, isError ? 2 : 1);
  return picture(parts);
}

/* A value, and no step: an upright line. */
function level(scale, value) {
  return picture([svg('line', { class: 'level', x1: scale.at(value), x2: scale.at(value), y1: 1, y2: 15 })]);
}

function picture(parts) {
  return svg('svg', { class: 'bar', viewBox: '-1 0 102 16', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, parts);
}

/* The whole effect of a column as a line over its cells; the row's cell is marked. */
function sparkline(effect, largest) {
  const steps = [];
  effect.values.forEach((value, b) => {
    if (!Number.isFinite(value)) return;
    const y = 8 - (7 * value) / (largest || 1);
    steps.push(`${b && Number.isFinite(effect.values[b - 1]) ? 'V' : `M${b} `}${y}H${b + 1}`);
  });
  return svg(
    'svg',
    { class: 'spark', viewBox: `0 0 ${effect.values.length} 16`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('rect', { x: effect.current, width: 1, y: 0, height: 16 }),
    svg('path', { d: steps.join('') }),
  );
}

function largestOf(effects) {
  return effects.flatMap((effect) => effect.values.filter(Number.isFinite)).reduce((a, b) => Math.max(a, Math.abs(b)), 0);
}

/* A table with a caption for screen readers; columns are [name, class] pairs, cells texts or elements. */
function table(caption, columns, rows, attributes = {}) {
  const head = columns.map(([name, kind]) => el('th', { scope: 'col', class: kind }, name));
  return el(
    'table',
    attributes,
    el('caption', { class: 'hidden' }, caption),
    el('thead', {}, el('tr', {}, head)),
    el('tbody', {}, rows.map(({ cells, ...rest }) => el(
      'tr',
      rest,
      cells.map((cell, c) => el(c ? 'td' : 'th', { class: columns[c][1], scope: c ? null : 'row' }, cell)),
    ))),
  );
}

/* A number that a machine can read, too. */
function exact(value, text) { return el('data', { value: String(value) }, text); }
