/* What is shown, the controls above it, and the start. */

const VIEWS = { row: 'Row', pair: 'Side by side', overview: 'All rows' };

class Report {
  constructor(content, bytes) {
    this.models = content.explanations.map((each) => new LocalExplanation(each, bytes));
    this.state = { model: 0, row: 0, output: -1, stop: null, all: false, view: 'row', pinned: null, several: this.models.length > 1 };
    this.home = document.getElementById('row');
    this.buildControls();
    this.describe();
    if (this.model.n > 1) {
      this.list = new RowList(
        document.getElementById('rows'), this.models[0], this.models[1] || null, (i) => this.outputAt(i),
        (i, clicked) => this.selectRow(i, clicked),
      );
      this.list.changed = () => {
        this.say(this.list.counter.textContent);
        if (this.state.view === 'overview') this.draw();
      };
      document.body.classList.add('several');
      document.body.dataset.models = String(this.models.length);
    }
    this.draw();
  }

  get model() { return this.models[this.state.model]; }

  outputAt(i) { return this.state.output >= 0 ? this.state.output : this.models[0].largest(i); }

  describe() {
    const lines = this.models.map((model) => (this.models.length > 1 ? `${model.name}: ${model.method}` : model.method));
    document.getElementById('method').replaceChildren(...lines.map((line) => el('span', {}, line)));
  }

  selectRow(i, clicked) {
    this.state.row = i;
    if (this.state.view === 'overview') this.state.view = 'row';
    this.draw();
    const fit = this.model.certain ? '' : `, R² ${fidelityText(this.model, i, this.outputAt(i))}`;
    this.say(`${this.model.label(i)}: prediction ${number(this.model.prediction(i, this.outputAt(i)))}${fit}`);
    // on a narrow screen the row lies below the list
    if (clicked && window.matchMedia('(max-width: 900px)').matches) this.home.scrollIntoView({ block: 'start' });
  }

  say(text) { document.getElementById('status').replaceChildren(text); }

  change(changes) {
    Object.assign(this.state, changes);
    if ('output' in changes) this.list?.refresh();
    this.draw();
  }

  /* -- controls -- */

  buildControls() {
    const home = document.getElementById('controls');
    this.controls = el('span', { class: 'group' });
    home.replaceChildren(this.controls, el('span', { class: 'group' }, themeButton(), button('Print', () => window.print())));
  }

  drawControls() {
    const { state } = this;
    const focus = document.activeElement?.id;
    this.controls.replaceChildren(...[this.outputChoice(), this.modelChoice(), ...this.viewButtons()].filter(Boolean));
    if (focus) document.getElementById(focus)?.focus();
    document.body.dataset.view = state.view;
  }

  outputChoice() {
    const { outputs, k } = this.model;
    if (k < 2) return null;
    return choice('output', 'Output', [['-1', 'the largest'], ...outputs.map((name, at) => [String(at), name])], String(this.state.output), (value) => this.change({ output: Number(value) }));
  }

  modelChoice() {
    if (this.models.length < 2) return null;
    const names = this.models.map((model, at) => [String(at), model.name]);
    const value = this.state.view === 'pair' && !this.state.pinned ? 'both' : String(this.state.model);
    return choice('model', 'Model', [...names, ['both', 'both, side by side']], value, (chosen) => this.change(
      chosen === 'both' ? { model: 0, view: 'pair', pinned: null } : { model: Number(chosen), view: 'row', pinned: null },
    ));
  }

  viewButtons() {
    const { state } = this;
    if (this.model.n < 2) return [];
    const pair = state.pinned !== null;
    return [
      button(pair ? 'End comparison' : 'Compare with another row', () => this.change(
        pair ? { pinned: null, view: 'row' } : { pinned: state.row, view: 'pair' },
      ), { id: 'compare', 'aria-pressed': String(pair) }),
      button(VIEWS.overview, () => this.change({ view: state.view === 'overview' ? 'row' : 'overview', pinned: null }), { id: 'overview', 'aria-pressed': String(state.view === 'overview') }),
    ];
  }

  /* -- the row -- */

  draw() {
    this.drawControls();
    this.home.replaceChildren(...this.parts().flat(Infinity).filter(Boolean));
  }

  parts() {
    const { state, model, models } = this;
    const subject = (m, i) => ({ model: m, i, k: this.outputAt(i) });
    if (state.view === 'overview') return overview(model, this.list.rows, (i) => this.outputAt(i), state.several);
    if (state.view === 'pair' && state.pinned === null) {
      return comparison(...models.map((m) => subject(m, state.row)), state);
    }
    if (state.view === 'pair' && state.pinned !== state.row) {
      return comparison(subject(model, state.pinned), subject(model, state.row), state);
    }
    const hint = state.view === 'pair' ? [el('p', { class: 'note' }, `${model.label(state.row)} stays: choose the row to compare it with in the list.`)] : [];
    return [hint, rowView(model, state.row, this.outputAt(state.row), state)];
  }
}

function choice(id, label, options, value, chosen) {
  const select = el('select', { id, change: () => chosen(select.value) }, options.map(([key, text]) => el('option', { value: key, selected: key === value }, text)));
  return el('label', { for: id }, el('span', {}, label), select);
}

/* Light or dark as the system is, until the button is pressed. */
function themeButton() {
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : window.matchMedia('(prefers-color-scheme: dark)').matches);
  const toggle = button('Dark', () => {
    root.dataset.theme = dark() ? 'light' : 'dark';
    toggle.setAttribute('aria-pressed', String(dark()));
  }, { id: 'theme', 'aria-pressed': String(dark()) });
  return toggle;
}

async function start() {
  const home = document.getElementById('row');
  try {
    const content = JSON.parse(document.getElementById('content').textContent);
    const numbers = document.getElementById('numbers');
    const bytes = await inflated(numbers.textContent);
    numbers.remove();
    new Report(content, bytes);
    performance.mark('report-drawn');
  } catch (error) {
    home.replaceChildren(el('p', { class: 'warning' }, `This report cannot be drawn: ${error.message}. It needs a browser of 2023 or later.`));
    throw error;
  }
}

start();
