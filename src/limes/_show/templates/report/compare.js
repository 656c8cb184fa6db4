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
    new ComparedCoefficients(sides, names, state).element,
    ...sides.map(({ model, i }, side) => (model.rules.length
      ? el('p', { class: 'rule' }, `${names[side]}: ${model.rules[i][0]}`) : null)),
  ];
}

function comparedFacts(sides, names) {
  const facts = [
    ['prediction', ({ model, i, k }) => model.prediction(i, k)],
    ['base (intercept)', ({ model, i, k }) => model.intercept(i, k)],
    ['surrogate', ({ model, i, k }) => model.surrogate(i, k)],
    ['R²', ({ model, i, k }) => model.r2(i, k)],
  ];
  const rows = facts.map(([name, read]) => {
    const [first, second] = sides.map(read);
    return { cells: [name, number(first), number(second), difference(second - first)] };
  });
  const columns = [['', 'name'], [names[0], 'number'], [names[1], 'number'], ['difference', 'number']];
  return table('Both in numbers', columns, rows, { class: 'lines compared' });
}

class ComparedCoefficients {
  constructor(sides, names, state) {
    Object.assign(this, { sides, names, state });
    const [a, b] = sides.map(({ model }) => model);
    const places = new Map(b.features.map((name, j) => [name, j]));
    const matched = a.features.map((name, j) => [name, j, places.get(name) ?? -1]);
    const only = b.features.map((name, j) => [name, -1, j]).filter(([name]) => !a.features.includes(name));
    this.pairs = [...matched, ...only];
    this.movable = sides.every(({ model }) => model.stops.length && model.stops.length === a.stops.length
      && model.curves.current === a.curves.current);
    this.lines = el('div', { class: 'scroll' });
    this.element = el(
      'section',
      { class: 'coefficients', 'aria-label': 'Coefficients of both' },
      el('h3', {}, 'What moves the two surrogates'),
      this.lines,
      this.movable ? bandwidthControl(a, state, () => this.draw()) : null,
      el('p', { class: 'soft' }, legend(), ' Both have one scale. Lines are sorted by the larger of the two coefficients.'),
    );
    this.draw();
  }

  draw() {
    const { sides, state } = this;
    const stop = this.movable ? state.stop : null;
    const drawn = sides.map(({ model, i, k }) => model.drawn(i, k, stop));
    const still = sides.map(({ model, i, k }) => model.drawn(i, k));
    const at = (values, j) => (j < 0 ? 0 : values[j]);
    const size = ([, ...js]) => Math.max(...js.map((j, side) => Math.abs(at(still[side], j)) || 0));
    const pairs = [...this.pairs].sort((p, q) => size(q) - size(p));
    const shown = state.all ? pairs : pairs.slice(0, FIRST_LINES);
    const ends = sides.flatMap(({ model, i, k }, side) => (
      stop === null ? drawn[side] : model.stops.flatMap((_, s) => model.drawn(i, k, s))));
    const scale = new Scale([0, ...ends]);
    const values = sides.map(({ model }, side) => shown.map(([, ...js]) => (
      js[side] < 0 ? NaN : drawn[side][js[side]] / model.deviation(js[side]))));
    const texts = signedColumn([...values[0], ...values[1], ...shown.map((_, line) => values[1][line] - values[0][line])]);
    const half = shown.length;
    const side = (s, line) => {
      const { model, i } = sides[s];
      const j = shown[line][1 + s];
      if (j < 0) return ['not in this model', '', ''];
      const [condition, value] = [withoutName(model.condition(i, j), model.features[j]), model.cell(i, j)];
      return [
        el('span', {}, condition === value ? value : `${condition} (${value})`),
        bar(scale, 0, drawn[s][j]),
        exact(values[s][line], texts[s * half + line]),
      ];
    };
    const rows = shown.map(([name], line) => ({
      cells: [name, ...side(0, line), ...side(1, line), Number.isNaN(values[0][line]) || Number.isNaN(values[1][line]) ? '' : texts[2 * half + line]],
    }));
    const columns = [['feature', 'name'], [this.names[0], 'value'], ['', 'picture'], ['', 'number'],
      [this.names[1], 'value'], ['', 'picture'], ['', 'number'], ['difference', 'number']];
    const more = pairs.length - shown.length;
    this.lines.replaceChildren(
      table('Coefficients of both, largest first', columns, rows, { class: 'lines sides' }),
      ...(pairs.length > FIRST_LINES ? [button(more ? `Show ${count(more, 'smaller one')}` : 'Show fewer', () => {
        state.all = !state.all;
        this.draw();
      }, { class: 'more' })] : []),
    );
  }
}
