/* One row of one explanation: coefficients with the slider of bandwidths, waterfall, effects, rule, findings. */

const FIRST_LINES = 12;
const EFFECTS = 6;
const MOST_CELLS = 40; // of a line beside a coefficient

/* Features by falling size of their bars; of a rule those that have a weight. */
function orderOf(model, i, k) {
  const drawn = model.drawn(i, k);
  const size = (j) => (Number.isNaN(drawn[j]) ? -1 : Math.abs(drawn[j]));
  const order = drawn.map((_, j) => j).sort((a, b) => size(b) - size(a) || a - b);
  return model.rules.length ? order.filter((j) => drawn[j] !== 0) : order;
}

function fidelityText(model, i, k) {
  const error = model.r2Error(i, k);
  return `${number(model.r2(i, k), 3)}${error > 0 ? ` ${errorText(error)}` : ''}`;
}

function rowView(model, i, k, state) {
  return [
    el('h2', { tabindex: -1 }, ...headingOf(model, i, k, state)),
    ...(model.account ? accountFirst(model, i, k, state) : coefficientsFirst(model, i, k, state)),
    findingsView(model, i),
    provenance(model),
  ];
}

/* Facts that hold for certain: each with a row that shares all others. */
function certainFirst(model, i) {
  const { answer, heads, lines, sentences } = model.certain[i];
  return [
    el('p', { class: 'headline' }, answer),
    model.warningsOf(i).map(warning),
    el(
      'section',
      { class: 'rule', 'aria-label': 'Facts' },
      el('p', { class: 'rule' }, model.rules[i][0]),
      lines.length ? el('div', { class: 'scroll' }, table('Facts, and rows without them', heads.map((head) => [head, 'fact']), lines.map((cells) => ({ cells })), { class: 'certain' })) : null,
      el('h4', {}, 'Certificate'),
      el('ul', {}, sentences.map((sentence) => el('li', {}, sentence))),
    ),
  ];
}

function coefficientsFirst(model, i, k, state) {
  if (model.certain) return certainFirst(model, i);
  return [
    [factsOf(model, i, k), fitRemark(model, i, k)],
    model.warningsOf(i).map(warning),
    itemView(model, i, k),
    ruleView(model, i),
    new Coefficients(model, i, k, state).element,
    model.rules.length ? null : waterfall(model, i, k),
    effectsView(model, i, k),
  ];
}

/* Contributions, and what warns of them; LIME's numbers and warnings are folded below. */
function accountFirst(model, i, k, state) {
  const account = new Account(model, i, k, state);
  return [
    account.headline,
    itemView(model, i, k),
    account.element,
    model.warningsOf(i).map(warning),
    model.lime ? folded(state, 'LIME’s view: conditions, coefficients, R², whole effects', () => [
      el('p', { class: 'soft' }, model.limeMethod),
      factsOf(model, i, k),
      fitRemark(model, i, k),
      new Coefficients(model, i, k, state).element,
      model.limeWarningsOf(i).map(warning),
      effectsView(model, i, k),
    ]) : null,
  ];
}

function warning(text) { return el('p', { class: 'warning' }, text); }

/* What is drawn when it is opened; it stays open from row to row. */
function folded(state, summary, draw) {
  const body = el('div', {});
  const details = el('details', { class: 'lime', ...(state.lime ? { open: '' } : {}) }, el('summary', {}, summary), body);
  const fill = () => { if (details.open && !body.childNodes.length) body.replaceChildren(...draw().flat().filter(Boolean)); };
  details.addEventListener('toggle', () => { state.lime = details.open; fill(); });
  fill();
  return details;
}

/* What is explained; an only row that has no name is not called one. */
function headingOf(model, i, k, state) {
  const name = state.several ? ` · ${model.name}` : '';
  if (model.n === 1 && model.label(i) === 'row 0') return [model.outputs[k], name ? el('small', {}, model.name) : null];
  return [model.label(i), el('small', {}, model.outputs[k], name)];
}

function factsOf(model, i, k) {
  const facts = [
    ['prediction', number(model.prediction(i, k)), 'strong'],
    ['base (intercept)', number(model.intercept(i, k))],
    // a rule's parts add up to the prediction
    ...(model.rules.length ? [] : [
      ['surrogate', number(model.surrogate(i, k))],
      ['not captured', difference(model.prediction(i, k) - model.surrogate(i, k))],
    ]),
    ['R²', fidelityText(model, i, k), 'strong'],
  ];
  return el('dl', { class: 'facts' }, facts.map(([name, text, kind]) => (
    el('div', { class: kind }, el('dt', {}, name), el('dd', {}, text)))));
}

function fitRemark(model, i, k) {
  const remark = model.remark(i, k);
  return remark ? el('p', { class: 'soft' }, remark) : null;
}

/* -- the account of the prediction ------------------------------------------------------------------------- */

class Account {
  constructor(model, i, k, state) {
    Object.assign(this, { model, i, k, state });
    this.shares = model.shares(i, k);
    this.lines = el('div', { class: 'scroll' });
    this.headline = el('p', { class: 'headline' });
    const { calls: asked, pairs: coded } = model.account;
    const calls = asked ? model.array(asked)[i] : 0;
    const pairs = coded && coded.entries[model.at(coded.codes, i, k)];
    this.element = el(
      'section',
      { class: 'account', 'aria-label': 'Account of the prediction' },
      this.lines,
      el(
        'p',
        { class: 'soft' },
        legend('prediction'),
        model.account.shown ? '' : ` Usual is ${model.account.usual}.`,
        ' Contributions lead from there to the prediction.',
        model.account.errors
          ? ` They are estimated${calls ? ` from ${count(calls, 'model call')}` : ''}: ± is one standard error, lines across bars are 95 % error bars.`
          : '',
      ),
      pairs ? el('p', { class: 'soft' }, pairs) : null,
    );
    this.draw();
  }

  draw() {
    const { model, i, k, state } = this;
    const label = model.labels[k];
    const unit = label ? 100 : 1;
    const [base, prediction] = [model.base(i, k), model.prediction(i, k)];
    const every = this.shares.map(({ value }) => value);
    const total = every.reduce((a, b) => a + b, 0);
    // the numbers have seven digits each: a rest that is rounding is none
    const size = Math.abs(prediction) + Math.abs(base) + every.reduce((a, b) => a + Math.abs(b), 0);
    const whole = Math.abs(prediction - base - total) <= 1e-5 * size;
    const parts = whole ? every : [...every, prediction - base - total];
    // a number is written the same whichever lines are shown
    const percent = label && Math.max(...parts.map(Math.abs)) < 0.1;
    const written = addingUp(parts.map((part) => unit * part), unit * base, unit * prediction, percent ? 2 : 3);
    const shown = state.all ? this.shares : this.shares.slice(0, FIRST_LINES);
    const hidden = this.shares.length - shown.length;
    const sizes = shown.map(({ value }) => value);
    const texts = written.texts.slice(0, shown.length);
    if (hidden || !whole) {
      sizes.push(prediction - base - sizes.reduce((a, b) => a + b, 0));
      texts.push(leftOf(written, texts, unit * sizes.at(-1)));
    }
    const spread = model.baseError(i, k) > 0 ? ` ${errorWith(unit * model.baseError(i, k), written.places)}` : '';
    this.headline.replaceChildren(...(label
      ? [el('b', {}, `${written.end} % chance of ${label}`), `; ${written.start}${spread} % ${model.account.where}`]
      : ['prediction ', el('b', {}, written.end), `; ${written.start}${spread} ${model.account.where}`]));
    let at = base;
    const starts = sizes.map((part) => { at += part; return at - part; });
    const across = shown.map(({ value, error }, line) => (
      error > 0 ? [-1, 1].map((side) => starts[line] + value + side * CONFIDENCE * error) : []));
    const scale = new Scale([base, prediction, ...starts, ...across.flat()]);
    const rows = sizes.map((part, line) => {
      const share = shown[line];
      const name = share ? model.holds(i, share.j) : hidden ? count(hidden, 'other') : 'all others';
      return {
        cells: [
          name,
          step(scale, starts[line], starts[line] + part, share && across[line].length ? across[line] : null, share && share.error > 0),
          [exact(part, texts[line]), share && share.error > 0 ? el('i', {}, ` ${errorWith(unit * share.error, written.places)}`) : ''],
        ].map((cell) => (Array.isArray(cell) ? el('span', {}, cell) : cell)),
      };
    });
    const columns = [[model.account.heading, 'name'], ['', 'picture'], [label ? 'contribution, points' : 'contribution', 'number']];
    this.lines.replaceChildren(
      table('Contributions to the prediction, largest first', columns, rows, { class: 'lines steps' }),
      ...(this.shares.length > FIRST_LINES ? [button(hidden ? `Show ${count(hidden, 'other')}` : 'Show fewer', () => {
        state.all = !state.all;
        this.draw();
      }, { class: 'more' })] : []),
    );
  }
}

/* -- coefficients ----------------------------------------------------------------------------------------- */

class Coefficients {
  constructor(model, i, k, state) {
    Object.assign(this, { model, i, k, state });
    this.order = orderOf(model, i, k);
    this.effects = model.hasEffects ? this.order.map((j) => model.effect(i, j, k)) : [];
    this.lines = el('div', { class: 'scroll' });
    this.element = el(
      'section',
      { class: 'coefficients', 'aria-label': 'Coefficients' },
      model.account ? null : el('h3', {}, model.rules.length ? 'What moves the rule' : 'What moves the surrogate'),
      this.lines,
      this.control(),
      el('p', { class: 'soft' }, legend(), ` Bars are coefficients: ${model.meaning}.`, this.notes()),
    );
    this.draw();
  }

  notes() {
    const { model } = this;
    return [
      model.errors ? ' Lines across bars reach 1.96 standard errors to each side (± is one): 95 % error bars.' : '',
      model.hasEffects ? ' The whole effect of a column is the average of the model in each of its cells; that of the row is marked.' : '',
    ];
  }

  control() {
    const { model, state } = this;
    if (!model.stops.length) return el('p', { class: 'soft' }, model.curves.missing);
    return bandwidthControl(model, state, () => this.draw());
  }

  draw() {
    const { model, i, k, state, order } = this;
    const stop = model.stops.length ? state.stop : null;
    const drawn = model.drawn(i, k, stop);
    const moved = stop !== null && stop !== model.curves.current;
    const shown = state.all ? order : order.slice(0, FIRST_LINES);
    const errors = order.map((j) => model.error(i, j, k) * model.deviation(j) * CONFIDENCE);
    const whiskers = !moved && model.errors !== null;
    // one scale for all bandwidths, so that bars grow and shrink
    const ends = stop === null ? drawn : model.stops.flatMap((_, s) => model.drawn(i, k, s));
    const scale = new Scale([0, ...ends, ...(whiskers ? order.flatMap((j, at) => [drawn[j] - errors[at], drawn[j] + errors[at]]) : [])]);
    const values = shown.map((j) => drawn[j] / model.deviation(j));
    const texts = signedColumn(values);
    const largest = largestOf(this.effects);
    const rows = shown.map((j, line) => ({
      cells: [
        model.condition(i, j),
        model.cell(i, j),
        bar(scale, 0, drawn[j], { whisker: moved ? 0 : errors[line] }),
        [exact(values[line], texts[line]), model.errors && !moved && !Number.isNaN(values[line]) ? el('i', {}, ` ${errorText(model.error(i, j, k))}`) : ''],
        ...(model.hasEffects ? [curveOf(this.effects[line], largest)] : []),
      ].map((cell) => (Array.isArray(cell) ? el('span', {}, cell) : cell)),
    }));
    const columns = [['condition', 'name'], ['value', 'value'], ['', 'picture'], ['coefficient', 'number'],
      ...(model.hasEffects ? [['whole effect', 'curve']] : [])];
    const more = order.length - shown.length;
    this.lines.replaceChildren(
      table('Coefficients of the surrogate, largest first', columns, rows, { class: 'lines' }),
      ...(order.length > FIRST_LINES ? [button(more ? `Show ${count(more, 'smaller one')}` : 'Show fewer', () => {
        state.all = !state.all;
        this.draw();
      }, { class: 'more' })] : []),
    );
  }
}

function curveOf(effect, largest) {
  const cells = effect.values.length;
  return cells >= 2 && cells <= MOST_CELLS ? sparkline(effect, largest) : '';
}

function legend(what = 'surrogate') {
  return el('span', {}, el('span', { class: 'key raises' }), ' raises, ', el('span', { class: 'key lowers' }), ` lowers the ${what}.`);
}

/* The slider: its stops are the bandwidths that limes computed. */
function bandwidthControl(model, state, moved) {
  const { stops, curves } = model;
  const text = el('span', { class: 'at' });
  const reset = button('Reset', () => set(null), { class: 'reset' });
  const slider = el('input', {
    id: 'bandwidth', type: 'range', min: 0, max: stops.length - 1, step: 1, input: () => set(Number(slider.value)),
  });
  function label() {
    const stop = state.stop ?? curves.current;
    const ratio = stops[stop] / stops[curves.current];
    const at = `ν = ${bandwidthText(stops[stop])}`;
    const away = Number.isFinite(ratio) ? `, ${number(ratio, 2)} times that of the explanation` : '';
    slider.value = String(stop);
    text.replaceChildren(stop === curves.current ? `${at}, that of the explanation` : `${at}${away}`);
    slider.setAttribute('aria-valuetext', text.textContent);
    reset.disabled = stop === curves.current;
  }
  function set(stop) {
    state.stop = stop === curves.current ? null : stop;
    label();
    moved();
  }
  label();
  return el(
    'div',
    { class: 'bandwidth' },
    el('label', { for: 'bandwidth' }, 'Bandwidth'),
    el('span', { class: 'soft' }, 'near'), slider, el('span', { class: 'soft' }, 'far'), text, reset,
    el('p', { class: 'soft' }, `How near perturbed rows are. Coefficients are exact at each stop, stored to ${number(100 * curves.error, 1)} % of the largest. R², contributions and effects stay those of ν = ${bandwidthText(stops[curves.current])}.`),
  );
}

/* -- waterfall and effects -------------------------------------------------------------------------------- */

/* What a feature adds at the row: its coefficient, or a slope times the distance from the mean. */
function partOf(model, i, j, k) {
  const value = model.value(i, j, k);
  if (Number.isNaN(model.mean(j)) || !model.data[j].numbers) return value;
  return value * (model.array(model.data[j].numbers)[i] - model.mean(j));
}

function waterfall(model, i, k) {
  const slopes = model.features.some((_, j) => !Number.isNaN(model.mean(j)));
  // the prediction does not depend on a feature whose coefficient is unknown
  const parts = model.features.map((_, j) => [j, partOf(model, i, j, k)]).filter(([, part]) => !Number.isNaN(part));
  const sum = parts.reduce((total, [, part]) => total + part, 0);
  parts.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  let at = model.surrogate(i, k) - sum;
  const steps = [[slopes ? 'surrogate at the means' : 'base (intercept)', at, at]];
  const walk = (name, part, kind) => { steps.push([name, at, at + part, kind]); at += part; };
  parts.slice(0, FIRST_LINES).forEach(([j, part]) => walk(model.condition(i, j), part));
  const rest = parts.slice(FIRST_LINES);
  if (rest.length) walk(count(rest.length, 'smaller one'), rest.reduce((total, [, part]) => total + part, 0));
  at = model.surrogate(i, k);
  steps.push(['surrogate', at, at]);
  walk('not captured', model.prediction(i, k) - at, 'rest');
  at = model.prediction(i, k);
  steps.push(['prediction', at, at]);
  const scale = new Scale(steps.flatMap(([, from, to]) => [from, to]));
  const texts = signedColumn(steps.map(([, from, to]) => to - from));
  const rows = steps.map(([name, from, to, kind], line) => {
    const isLevel = line === 0 || name === 'surrogate' || line === steps.length - 1;
    return {
      class: isLevel ? 'total' : null,
      cells: [
        name,
        isLevel ? level(scale, to) : bar(scale, from, to, { zero: null, ...(kind && { kind }) }),
        isLevel ? number(to) : texts[line],
      ],
    };
  });
  return el(
    'section',
    { class: 'waterfall', 'aria-label': 'Waterfall' },
    el('h3', {}, 'From the base to the prediction'),
    table('How coefficients add up', [['step', 'name'], ['', 'picture'], ['', 'number']], rows, { class: 'lines steps' }),
  );
}

function effectsView(model, i, k) {
  if (!model.hasEffects) return model.effects ? el('p', { class: 'soft' }, model.effects.missing) : null;
  const effects = model.features.map((_, j) => model.effect(i, j, k)).filter((effect) => effect.values.length > 1);
  const reach = (effect) => Math.max(0, ...effect.values.filter(Number.isFinite)) - Math.min(0, ...effect.values.filter(Number.isFinite));
  const chosen = effects.sort((a, b) => reach(b) - reach(a)).slice(0, EFFECTS);
  if (!chosen.length) return null;
  const ends = chosen.flatMap((effect) => effect.values.flatMap((value, b) => {
    const whisker = effect.errors ? CONFIDENCE * effect.errors[b] : 0;
    return [value - whisker, value + whisker];
  }));
  const scale = new Scale([0, ...ends]);
  return el(
    'section',
    { class: 'effects', 'aria-label': 'Whole effects' },
    el('h3', {}, 'Whole effects'),
    el('p', { class: 'soft' }, 'The average of the model in each cell of a column, less its average around the row. The cell of the row is in colour.'),
    el('div', { class: 'panels' }, chosen.map((effect) => effectPanel(effect, scale))),
  );
}

function effectPanel(effect, scale) {
  const texts = signedColumn(effect.values);
  const rows = effect.values.map((value, b) => ({
    class: b === effect.current ? 'current' : null,
    cells: [
      withoutName(effect.cells[b], effect.feature),
      bar(scale, 0, value, {
        whisker: effect.errors ? CONFIDENCE * effect.errors[b] : 0,
        ...(b === effect.current ? {} : { kind: 'quiet' }),
      }),
      Number.isFinite(value) ? texts[b] : '?',
    ],
  }));
  return el(
    'div',
    { class: 'panel' },
    el('h4', {}, effect.feature),
    table(`Whole effect of ${effect.feature}`, [['cell', 'name'], ['', 'picture'], ['effect', 'number']], rows, { class: 'lines' }),
  );
}

/* The condition of a cell without the name of its column: "<= 63", "63 – 71", "Private". */
function withoutName(text, name) {
  const inner = ` < ${name} <= `;
  const at = text.indexOf(inner);
  if (at >= 0) return `${text.slice(0, at)} – ${text.slice(at + inner.length)}`;
  const rest = text.startsWith(name) ? text.slice(name.length).trim() : text;
  return (rest.startsWith('= ') ? rest.slice(2) : rest) || text;
}

/* -- rules, findings, facts ------------------------------------------------------------------------------- */

function ruleView(model, i) {
  if (!model.rules.length) return null;
  const [rule, sentences] = model.rules[i];
  return el(
    'section',
    { class: 'rule', 'aria-label': 'Rule' },
    el('h3', {}, 'Rule'),
    el('p', { class: 'rule' }, rule),
    el('h4', {}, 'Certificate'),
    el('ul', {}, sentences.map((sentence) => el('li', {}, sentence))),
  );
}

function findingsView(model, i) {
  if (!model.findings) return null;
  const [verdict, output] = model.verdictOf(i);
  const findings = model.findingsOf(i).map(([severity, kind, sentence, advice]) => el(
    'li',
    { class: severity },
    el('b', {}, `${severity}: ${kind}`),
    el('p', {}, sentence),
    el('p', { class: 'soft' }, model.findings.advice[advice]),
  ));
  return el(
    'section',
    { class: 'findings', 'aria-label': 'Diagnosis' },
    el('h3', {}, 'Diagnosis', el('small', {}, output)),
    verdict ? el('p', {}, verdict) : null,
    el('ul', {}, findings),
  );
}

function provenance(model) {
  if (!model.facts.length) return null;
  return el(
    'details',
    { class: 'made' },
    el('summary', {}, 'How this was computed'),
    el('p', {}, model.method),
    el('dl', {}, model.facts.map(([name, text]) => el('div', {}, el('dt', {}, name), el('dd', {}, text)))),
  );
}
