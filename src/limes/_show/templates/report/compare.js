/* Two rows, or two models at one row, side by side: line by line, on one scale. */

/* a and b are {model, i, k}; features are matched by their names. */
function comparison(a, b, state) {
  const sides = [a, b];
  const names = sides.map(({ model, i, k }, side) => {
    const other = sides[1 - side];
    return [
      model === other.model || i !== other.i ? model.label(i) : null,
      model === other.model ? null : model.name,
      k === other.k ? null : model.outputs[k],
    ].filter(Boolean).join(' · ');
  });
  const same = a.model !== b.model && a.i === b.i;
  return [
    el('h2', { tabindex: -1 }, same ? a.model.label(a.i) : 'Two rows', el('small', {}, a.model.outputs[a.k])),
    comparedFacts(sides, names),
    ...sides.flatMap(({ model, i }, side) => (
      model.warningsOf(i).map((text) => el('p', { class: 'warning' }, `${names[side]}: ${text}`)))),
    ...(sides.every(({ model }) => model.account)
      ? [
        new ComparedAccounts(sides, names, state).element,
        sides.every(({ model }) => model.lime) && folded(state, 'LIME’s view: coefficients of both', () => [
          comparedSurrogates(sides, names),
          new ComparedCoefficients(sides, names, state).element,
          ...sides.flatMap(({ model, i }, side) => model.limeWarningsOf(i).map((text) => warning(`${names[side]}: ${text}`))),
        ]),
      ]
      : sides.some(({ model }) => model.certain) ? [] : [new ComparedCoefficients(sides, names, state).element]),
    ...sides.map(({ model, i }, side) => (model.rules.length
      ? el('p', { class: 'rule' }, `${names[side]}: ${model.rules[i][0]}`) : null)),
  ];
}

function inPoints(sides) { return sides.every(({ model, k }) => model.account && model.labels[k]); }

function comparedFacts(sides, names) {
  const facts = [
    ['prediction', ({ model, i, k }) => model.prediction(i, k)],
    ...(sides.every(({ model }) => model.account)
      ? [[sides[0].model.account.where.replace(/^is /, ''), ({ model, i, k }) => model.base(i, k)]]
      : []),
  ];
  const table = factsTable('Both in numbers', facts, sides, names);
  const isPlain = sides.every(({ model }) => model.account) || sides.some(({ model }) => model.certain);
  return isPlain ? table : [table, comparedSurrogates(sides, names)];
}

function comparedSurrogates(sides, names) {
  const facts = [
    ['base (intercept)', ({ model, i, k }) => model.intercept(i, k)],
    ['surrogate', ({ model, i, k }) => model.surrogate(i, k)],
  ];
  const fits = { cells: ['R²', ...sides.map(({ model, i, k }) => fidelityText(model, i, k)), ''] };
  return factsTable('Both surrogates in numbers', facts, sides, names, { more: [fits], points: false });
}

function factsTable(caption, facts, sides, names, { more = [], points = inPoints(sides) } = {}) {
  const rows = facts.map(([name, read]) => {
    const [first, second] = sides.map(read);
    if (!points) return { cells: [name, number(first), number(second), difference(second - first)] };
    const [a, b, change] = [first, second, second - first].map((value) => (100 * value).toFixed(1));
    return { cells: [name, `${a} %`, `${b} %`, signed(change, second - first)] };
  });
  const columns = [['', 'name'], [names[0], 'number'], [names[1], 'number'], ['difference', 'number']];
  return table(caption, columns, [...rows, ...more], { class: 'lines compared' });
}

/* Lines of two sides, the larger of each pair first; kinds of numbers are subclasses. */
class ComparedLines {
  constructor(sides, names, state) {
    Object.assign(this, { sides, names, state });
    const [a, b] = sides.map(({ model }) => model);
    const places = new Map(b.features.map((name, j) => [name, j]));
    const matched = a.features.map((name, j) => [name, j, places.get(name) ?? -1]);
    const only = b.features.map((name, j) => [name, -1, j]).filter(([name]) => !a.features.includes(name));
    this.pairs = [...matched, ...only];
    this.lines = el('div', { class: 'scroll' });
    this.element = this.section();
    this.draw();
  }

  /* Numbers of a side as bars are long, and their unit for a feature. */
  still({ model, i, k }) { return model.drawn(i, k); }
  drawn(side) { return this.still(side); }
  unit() { return 1; }
  texts(values) { return signedColumn(values); }
  /* By which pairs of numbers are sorted. */
  size(pair) { return Math.max(...pair.map((value) => Math.abs(value) || 0)); }
  ends() { return this.sides.flatMap((side) => this.drawn(side)); }

  draw() {
    const { sides, state } = this;
    const drawn = sides.map((side) => this.drawn(side));
    const still = sides.map((side) => this.still(side));
    const at = (values, j) => (j < 0 ? 0 : values[j]);
    const size = ([, ...js]) => this.size(js.map((j, side) => at(still[side], j)));
    const pairs = [...this.pairs].sort((p, q) => size(q) - size(p));
    const shown = state.all ? pairs : pairs.slice(0, FIRST_LINES);
    const scale = new Scale([0, ...this.ends()]);
    const values = sides.map(({ model }, side) => shown.map(([, ...js]) => (
      js[side] < 0 ? NaN : drawn[side][js[side]] / this.unit(model, js[side]))));
    const texts = this.texts([...values[0], ...values[1], ...shown.map((_, line) => values[1][line] - values[0][line])]);
    const half = shown.length;
    const side = (s, line) => {
      const { model, i } = sides[s];
      const j = shown[line][1 + s];
      if (j < 0) return ['not in this model', '', ''];
      return [el('span', {}, this.said(model, i, j)), bar(scale, 0, drawn[s][j]), exact(values[s][line], texts[s * half + line])];
    };
    const rows = shown.map(([name], line) => ({
      cells: [name, ...side(0, line), ...side(1, line), Number.isNaN(values[0][line]) || Number.isNaN(values[1][line]) ? '' : texts[2 * half + line]],
    }));
    const columns = [['feature', 'name'], [this.names[0], 'value'], ['', 'picture'], ['', 'number'],
      [this.names[1], 'value'], ['', 'picture'], ['', 'number'], ['difference', 'number']];
    const more = pairs.length - shown.length;
    this.lines.replaceChildren(
      table(this.caption, columns, rows, { class: 'lines sides' }),
      ...(pairs.length > FIRST_LINES ? [button(more ? `Show ${count(more, 'smaller one')}` : 'Show fewer', () => {
        state.all = !state.all;
        this.draw();
      }, { class: 'more' })] : []),
    );
  }
}

class ComparedAccounts extends ComparedLines {
  get caption() { return 'Contributions of both, the largest difference first'; }

  size(pair) { return Math.abs(pair[1] - pair[0]) || 0; }

  section() {
    return el(
      'section',
      { class: 'account', 'aria-label': 'Accounts of both' },
      el('h3', {}, 'What moves the two predictions'),
      this.lines,
      el('p', { class: 'soft' }, this.sides[0].model.account.shown
        ? 'A contribution is what a part adds'
        : 'A contribution is what the row’s value adds',
      ' on average', inPoints(this.sides) ? ', in percentage points. ' : '. ',
      'Both have one scale; the largest difference comes first.'),
    );
  }

  still({ model, i, k }) { return model.features.map((_, j) => model.share(i, j, k).value); }

  unit() { return inPoints(this.sides) ? 0.01 : 1; }

  texts(values) { return inPoints(this.sides) ? pointsColumn(values) : super.texts(values); }

  said(model, i, j) { return model.account.shown ? model.holds(i, j) : model.cell(i, j); }
}

class ComparedCoefficients extends ComparedLines {
  get caption() { return 'Coefficients of both, largest first'; }

  section() {
    const { sides, state } = this;
    const [a] = sides.map(({ model }) => model);
    this.movable = sides.every(({ model }) => model.stops.length && model.stops.length === a.stops.length
      && model.curves.current === a.curves.current);
    return el(
      'section',
      { class: 'coefficients', 'aria-label': 'Coefficients of both' },
      sides.every(({ model }) => model.account) ? null : el('h3', {}, 'What moves the two surrogates'),
      this.lines,
      this.movable ? bandwidthControl(a, state, () => this.draw()) : null,
      el('p', { class: 'soft' }, legend(), ' Both have one scale. Lines are sorted by the larger of the two coefficients.'),
    );
  }

  drawn({ model, i, k }) { return model.drawn(i, k, this.movable ? this.state.stop : null); }

  unit(model, j) { return model.deviation(j); }

  ends() {
    const stop = this.movable ? this.state.stop : null;
    return this.sides.flatMap(({ model, i, k }) => (
      stop === null ? model.drawn(i, k) : model.stops.flatMap((_, s) => model.drawn(i, k, s))));
  }

  said(model, i, j) {
    const [condition, value] = [withoutName(model.condition(i, j), model.features[j]), model.cell(i, j)];
    return condition === value ? value : `${condition} (${value})`;
  }
}
