/* The rows of a report: search, filters, order, pages, and the keyboard. */

const PAGE = 100;

class RowList {
  /* `other` is a second model of the same rows, or null; `select(row)` shows one. */
  constructor(home, model, other, outputAt, select) {
    Object.assign(this, { home, model, other, outputAt, select });
    this.row = 0;
    this.page = 0;
    this.key = 'id';
    this.falling = false;
    this.filters = { text: '', low: null, high: null, r2Low: null, r2High: null, alarmed: false };
    this.build();
  }

  columns() {
    const { model, other } = this;
    const k = (i) => this.outputAt(i);
    return [
      { key: 'id', name: 'row', of: (i) => (model.ids.texts ? model.label(i) : i), text: (i) => model.label(i) },
      ...(model.k > 1 ? [{ key: 'output', name: 'output', of: (i) => model.outputs[k(i)], text: (i) => model.outputs[k(i)].replace(/^P\((.*)\)$/, '$1') }] : []),
      { key: 'prediction', name: other ? model.name : 'prediction', of: (i) => model.prediction(i, k(i)), number: true },
      ...(other ? [
        { key: 'other', name: other.name, of: (i) => other.prediction(i, k(i)), number: true },
        { key: 'change', name: 'change', of: (i) => other.prediction(i, k(i)) - model.prediction(i, k(i)), number: true, sign: true },
      ] : []),
      ...(model.certain ? [] : [model.account
        ? { key: 'first', name: 'largest', of: (i) => this.largest(i), text: (i) => this.largest(i) }
        : { key: 'r2', name: 'R²', of: (i) => model.r2(i, k(i)), number: true, text: (i) => model.r2(i, k(i)).toFixed(2) }]),
      { key: 'alarms', name: 'warnings', of: (i) => model.alarms(i), number: true, text: (i) => this.alarmText(i) },
    ];
  }

  /* The feature with the largest contribution. */
  largest(i) {
    this.firsts ??= new Map();
    const key = `${i} ${this.outputAt(i)}`;
    if (!this.firsts.has(key)) this.firsts.set(key, this.model.features[this.model.shares(i, this.outputAt(i))[0]?.j] ?? '');
    return this.firsts.get(key);
  }

  alarmText(i) {
    const alarms = this.model.alarms(i);
    return alarms ? el('span', { class: 'alarm' }, String(alarms)) : '';
  }

  build() {
    this.counter = el('p', { class: 'soft', id: 'counter' });
    this.table = el('table', { class: 'rows', role: 'grid', 'aria-label': 'Rows', 'aria-describedby': 'counter', keydown: (event) => this.press(event) });
    this.pager = el('div', { class: 'pager' });
    this.home.replaceChildren(this.filterForm(), this.counter, el('div', { class: 'list' }, this.table), this.pager);
    this.home.hidden = false;
    this.refresh();
  }

  filterForm() {
    const { filters } = this;
    const field = (name, label, attributes, read) => {
      const input = el('input', {
        id: `filter-${name}`,
        ...attributes,
        'aria-label': attributes.type === 'number' ? `${label}, a limit` : null,
        input: () => { filters[name] = read(input); this.page = 0; this.refresh(); },
      });
      return el('label', { class: `of-${attributes.type}` }, el('span', {}, label), input);
    };
    const limit = (input) => (input.value === '' ? null : Number(input.value));
    const range = (low, high, name) => [
      field(low, `${name} ≥`, { type: 'number', step: 'any' }, limit),
      field(high, `${name} ≤`, { type: 'number', step: 'any' }, limit),
    ];
    return el(
      'form',
      { class: 'filters', role: 'search', 'aria-label': 'Find rows', submit: (event) => event.preventDefault() },
      field('text', 'Search', { type: 'search', placeholder: 'name of a row', autocomplete: 'off', spellcheck: 'false' }, (input) => input.value),
      el('div', { class: 'ranges' }, range('low', 'high', 'Prediction'), this.model.account || this.model.certain ? [] : range('r2Low', 'r2High', 'R²')),
      field('alarmed', 'Rows with warnings only', { type: 'checkbox' }, (input) => input.checked),
    );
  }

  matches(i, text) {
    const { model, filters: { low, high, r2Low, r2High, alarmed } } = this;
    const k = this.outputAt(i);
    const within = (value, from, to) => (from === null || value >= from) && (to === null || value <= to);
    return (!text || model.label(i).toLowerCase().includes(text))
      && within(model.prediction(i, k), low, high)
      && within(model.r2(i, k), r2Low, r2High)
      && (!alarmed || model.alarms(i) > 0);
  }

  /* Filter and sort again, and show the page. */
  refresh() {
    const text = this.filters.text.trim().toLowerCase();
    const rows = Array.from({ length: this.model.n }, (_, i) => i).filter((i) => this.matches(i, text));
    const column = this.columns().find(({ key }) => key === this.key) || this.columns()[0];
    const keys = new Map(rows.map((i) => [i, column.of(i)]));
    const collator = new Intl.Collator('en', { numeric: true });
    const compare = (a, b) => (typeof a === 'string' ? collator.compare(a, b) : ordered(a, b));
    const sign = this.falling ? -1 : 1;
    rows.sort((i, j) => sign * compare(keys.get(i), keys.get(j)) || i - j);
    this.rows = rows;
    this.show();
    this.changed?.();
  }

  show() {
    const { rows, model } = this;
    const pages = Math.max(1, Math.ceil(rows.length / PAGE));
    this.page = Math.min(this.page, pages - 1);
    const columns = this.columns();
    const visible = rows.slice(this.page * PAGE, (this.page + 1) * PAGE);
    const texts = new Map(columns.filter(({ text }) => !text).map((column) => [column, this.aligned(column, visible)]));
    const reachable = visible.includes(this.row) ? this.row : visible[0];
    this.counter.replaceChildren(rows.length === model.n ? count(rows.length, 'row') : `${rows.length.toLocaleString('en')} of ${count(model.n, 'row')}`);
    this.table.setAttribute('aria-rowcount', String(rows.length + 1));
    this.table.replaceChildren(
      el('thead', {}, el('tr', { 'aria-rowindex': 1 }, columns.map((column) => this.header(column)))),
      el('tbody', {}, visible.map((i, line) => el(
        'tr',
        {
          'data-row': i,
          'aria-rowindex': this.page * PAGE + line + 2,
          'aria-selected': i === this.row ? 'true' : 'false',
          tabindex: i === reachable ? 0 : -1,
          click: () => this.choose(i, true),
        },
        columns.map((column) => el(
          'td',
          { class: column.number ? 'number' : 'name', role: 'gridcell' },
          column.text ? column.text(i) : texts.get(column)[line],
        )),
      ))),
    );
    this.showPager(pages);
  }

  /* Numbers of a page with the same decimals. */
  aligned(column, rows) {
    const numbers = signedColumn(rows.map((i) => column.of(i)));
    return column.sign ? numbers : numbers.map((text) => text.replace('+', ''));
  }

  header(column) {
    const chosen = column.key === this.key;
    const order = this.falling ? 'descending' : 'ascending';
    return el(
      'th',
      { scope: 'col', role: 'columnheader', class: column.number ? 'number' : 'name', 'aria-sort': chosen ? order : 'none' },
      button(column.name, () => {
        this.falling = chosen ? !this.falling : Boolean(column.number);
        this.key = column.key;
        this.page = 0;
        this.refresh();
        this.table.querySelector(`[data-key="${column.key}"]`).focus();
      }, { 'data-key': column.key }),
    );
  }

  showPager(pages) {
    if (pages === 1) {
      this.pager.replaceChildren();
      return;
    }
    const turn = (page) => { this.page = page; this.show(); this.home.querySelector('.list').scrollTop = 0; };
    this.pager.replaceChildren(
      button('Previous', () => turn(this.page - 1), { disabled: this.page === 0 }),
      el('span', {}, `page ${this.page + 1} of ${pages}`),
      button('Next', () => turn(this.page + 1), { disabled: this.page === pages - 1 }),
    );
  }

  /* Show a row; arrows keep the keyboard in the list. */
  choose(i, clicked = false) {
    this.row = i;
    const place = this.rows.indexOf(i);
    if (place >= 0) this.page = Math.floor(place / PAGE);
    this.show();
    const line = this.table.querySelector(`tr[data-row="${i}"]`);
    if (line) {
      line.focus({ preventScroll: true });
      line.scrollIntoView({ block: 'nearest' });
    }
    this.select(i, clicked);
  }

  press(event) {
    const line = event.target.closest('tr[data-row]');
    if (!line || event.ctrlKey || event.altKey || event.metaKey) return;
    const place = this.rows.indexOf(Number(line.dataset.row));
    const last = this.rows.length - 1;
    const target = {
      ArrowDown: place + 1, ArrowUp: place - 1, PageDown: place + 10, PageUp: place - 10, Home: 0, End: last,
    }[event.key];
    if (target !== undefined) {
      event.preventDefault();
      this.choose(this.rows[Math.min(Math.max(target, 0), last)]);
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this.choose(Number(line.dataset.row), true);
    }
  }
}

/* Numbers in order, NaN last. */
function ordered(a, b) {
  return Number.isNaN(a) || Number.isNaN(b) ? Number.isNaN(a) - Number.isNaN(b) : a - b;
}
