/* All rows of the list in one picture: mean size of each contribution, or coefficient, and how predictions are spread. */

const BINS = 24;

function overview(model, rows, outputAt, several) {
  const sums = model.features.map((name, j) => ({ name, j, size: 0, sum: 0, raises: 0 }));
  const [symbol, values] = model.account
    ? ['contribution', (i, k) => model.features.map((_, j) => model.share(i, j, k).value)]
    : ['β', (i, k) => model.drawn(i, k)];
  rows.forEach((i) => {
    values(i, outputAt(i)).forEach((value, j) => {
      if (Number.isNaN(value)) return;
      sums[j].size += Math.abs(value);
      sums[j].sum += value;
      sums[j].raises += value > 0;
    });
  });
  const lines = sums.sort((a, b) => b.size - a.size).slice(0, 20);
  const n = rows.length || 1;
  const scale = new Scale([0, ...lines.map(({ size }) => size / n)]);
  const points = model.account && rows.every((i) => model.labels[outputAt(i)]);
  const written = (its) => (points ? pointsColumn(its.map((value) => 100 * value)) : signedColumn(its));
  const sizes = written(lines.map(({ size }) => size / n)).map((text) => text.replace('+', ''));
  const means = written(lines.map(({ sum }) => sum / n));
  const columns = [['feature', 'name'], ['', 'picture'], [`mean |${symbol}|`, 'number'], ['mean', 'number'], ['raises', 'number']];
  const cells = lines.map((line, at) => ({
    cells: [line.name, bar(scale, 0, line.size / n, { kind: 'quiet' }), sizes[at], means[at], `${Math.round((100 * line.raises) / n)}%`],
  }));
  const hidden = model.d - lines.length;
  const first = [
    el('h2', { tabindex: -1 }, rows.length === model.n ? `All ${count(rows.length, 'row')}` : `${count(rows.length, 'row')} of the list`, el('small', {}, several ? model.name : model.k === 1 ? model.outputs[0] : '')),
    el('h3', {}, 'Predictions'),
    histogram(rows.map((i) => model.prediction(i, outputAt(i)))),
  ];
  if (model.certain) return [...first, ...factCounts(model, rows)];
  return [
    ...first,
    el('h3', {}, model.account ? 'What moves these predictions' : 'What moves the surrogates of these rows'),
    el('div', { class: 'scroll' }, table(`Mean ${model.account ? 'contributions' : 'coefficients'} of the listed rows`, columns, cells, { class: 'lines means' })),
    hidden > 0 ? el('p', { class: 'soft' }, `${count(hidden, 'smaller feature')} not shown`) : null,
    model.account
      ? el('p', { class: 'soft' }, `Contributions of the rows in the list, as it is filtered now${points ? ', in percentage points' : ''}; “raises” is the share of rows where a value raises the prediction.`)
      : el('p', { class: 'soft' }, 'β: coefficients of the rows in the list, as it is filtered now; “raises” is the share of rows with β > 0.', model.deviations ? ' Those of slopes are per standard deviation of their columns.' : ''),
  ];
}

/* In how many of the rows a column has a fact. */
function factCounts(model, rows) {
  const counts = new Map();
  rows.forEach((i) => model.certain[i].columns.forEach((name) => counts.set(name, (counts.get(name) ?? 0) + 1)));
  const lines = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 20);
  const scale = new Scale([0, rows.length || 1]);
  const cells = lines.map(([name, rowCount]) => ({ cells: [name, bar(scale, 0, rowCount, { kind: 'quiet' }), String(rowCount)] }));
  return [
    el('h3', {}, 'Facts of these rows'),
    el('div', { class: 'scroll' }, table('Columns with facts', [['column', 'name'], ['', 'picture'], ['rows', 'number']], cells, { class: 'lines means' })),
    el('p', { class: 'soft' }, 'In how many rows of the list, as it is filtered now, a column has a fact.'),
  ];
}

function histogram(values) {
  const finite = values.filter(Number.isFinite);
  if (!finite.length) return el('p', { class: 'soft' }, 'There is no row.');
  const [low, high] = finite.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
  const counts = new Array(BINS).fill(0);
  finite.forEach((v) => { counts[Math.min(BINS - 1, Math.floor((BINS * (v - low)) / (high - low || 1)))] += 1; });
  const most = Math.max(...counts);
  const bars = counts.map((c, b) => svg('rect', { class: 'quiet', x: b + 0.06, width: 0.88, y: 40 - (38 * c) / most, height: (38 * c) / most }));
  return el(
    'div',
    { class: 'histogram' },
    svg('svg', { viewBox: `0 0 ${BINS} 40`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `Predictions from ${number(low)} to ${number(high)}` }, bars),
    el('p', {}, el('span', {}, number(low)), el('span', {}, number(high))),
  );
}
