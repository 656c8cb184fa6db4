"use strict";
// The page asks and places texts; numbers and sentences come from the server. Every text is set as text.

const $ = (id) => document.getElementById(id);
const FIRST = 15; // columns that are shown before "more"
const page = { columns: [], rows: 0, outputs: [] };
const state = { row: 0, id: "", values: [], picked: [], predictions: [], output: null, scale: 0, order: false };

function text(element, content) {
  element.textContent = content;
  return element;
}

function create(tag, content = "", name = "") {
  const element = text(document.createElement(tag), content);
  if (name) element.className = name;
  return element;
}

function complain(message) {
  $("problem").hidden = !message;
  text($("problem"), message);
}

async function ask(path, question) {
  const options = question && {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(question),
  };
  let answer;
  try {
    answer = await fetch(`api/${path}`, options);
  } catch {
    throw new Error("limes app does not answer: is it still running in its terminal?");
  }
  const content = answer.headers.get("content-type") === "application/json"
    ? await answer.json() : { error: await answer.text() };
  if (!answer.ok) throw new Error(content.error);
  return content;
}

// One question at a time: while it is answered the newest waits, and those between are dropped.
class Channel {
  constructor(path, panel, quiet, show, fail) {
    Object.assign(this, { path, panel, quiet, show, fail, waiting: null, busy: false, timer: 0 });
  }

  ask(question) {
    this.panel.ariaBusy = "true";
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { this.waiting = question; this.next(); }, this.quiet);
  }

  async next() {
    if (this.busy || !this.waiting) return;
    const question = this.waiting;
    this.waiting = null;
    this.busy = true;
    try {
      const answer = await ask(this.path, { values: question.values, output: question.output });
      if (current(question)) this.show(answer, question);
    } catch (error) {
      if (current(question)) this.fail(error.message);
    }
    this.busy = false;
    if (same(question)) this.panel.ariaBusy = "false";
    this.next();
  }
}

const current = (question) => question.picked === state.picked && question.output === state.output;
const same = (question) => current(question) && question.values.every((v, j) => v === state.values[j]);

const channels = [
  new Channel("explain", $("moves"), 0, showExplanation, complain),
  new Channel("rule", $("rule"), 60, showRule, (message) => showRule({ rule: message, certificate: [] })),
  new Channel("diagnosis", $("diagnosis"), 250, showDiagnosis,
    (message) => showDiagnosis({ verdict: message, findings: [] })),
];

function askAll() {
  const moved = state.values.filter((v, j) => v !== state.picked[j]).length;
  $("reset").disabled = !moved;
  text($("moved"), moved ? `${moved} ${moved === 1 ? "value" : "values"} moved` : "move a value to see what changes");
  const question = { values: [...state.values], picked: state.picked, output: state.output };
  for (const channel of channels) channel.ask(question);
}

// ---- the row

async function pick(row) {
  $("picker").ariaBusy = "true";
  try {
    const answer = await ask(`row?row=${row}`);
    const output = state.output ?? answer.output;
    Object.assign(state, answer, { values: [...answer.values], picked: answer.values, output, scale: 0, order: true });
    $("row").value = answer.id;
    $("output").value = String(output);
    $("previous").disabled = row === 0;
    $("next").disabled = row === page.rows - 1;
    page.columns.forEach((column) => column.set());
    complain("");
    askAll();
  } catch (error) {
    complain(error.message);
  }
  $("picker").ariaBusy = "false";
}

async function listRows() {
  const found = await ask(`rows?search=${encodeURIComponent($("row").value)}`);
  $("rows").replaceChildren(...found.map(({ id }) => Object.assign(document.createElement("option"), { value: id })));
  return found;
}

async function pickNamed() {
  $("picker").ariaBusy = "true";
  const name = $("row").value;
  try {
    const [best] = await listRows();
    if (best) await pick(best.row);
    else complain(`No row is called "${name}": the list under the field has those that contain what you type.`);
  } catch (error) {
    complain(error.message);
  }
  $("picker").ariaBusy = "false";
}

// ---- its columns

class Column {
  constructor(facts, j) {
    Object.assign(this, { facts, j });
    this.element = $("column").content.firstElementChild.cloneNode(true);
    this.part = (name) => this.element.querySelector(`.${name}`);
    text(this.element.querySelector("b"), facts.name);
    this.draw(this.part("control"));
    this.back = create("button", "");
    this.back.type = "button";
    this.back.addEventListener("click", () => this.move(state.picked[j]));
  }

  move(value) {
    state.values[this.j] = value;
    this.set();
    askAll();
  }

  set() {
    const value = state.values[this.j], moved = value !== state.picked[this.j];
    this.element.classList.toggle("moved", moved);
    if (!moved) this.part("before").replaceChildren();
    else if (!this.back.isConnected) this.part("before").append(this.back);
    text(this.back, `back to ${this.words(state.picked[this.j])}`);
    this.show(value);
  }

  place(line, scale, fresh) {
    text(this.part("condition"), page.accounts ? "" : line.condition); // a value has its control above
    const size = text(this.part("coefficient"), line.text);
    if (line.error) size.append(" ", create("small", line.error));
    const across = (value) => 50 + 49 * (value / scale || 0);
    const between = (element, from, to) => {
      element.style.left = `${Math.min(across(from), across(to))}%`;
      element.style.width = `${Math.abs(across(from) - across(to))}%`;
    };
    between(this.part("size"), 0, line.bar);
    this.part("size").classList.toggle("lowers", line.bar < 0);
    between(this.part("reach"), line.bar - line.reach, line.bar + line.reach);
    if (fresh) this.write(line.data);
  }

  write() {}
}

class Choice extends Column {
  draw(control) {
    this.select = create("select");
    this.select.ariaLabel = this.facts.name;
    this.facts.levels.forEach((level, i) => this.select.append(new Option(level, i)));
    if (this.facts.missing) this.select.append(new Option("missing", ""));
    this.select.addEventListener("change", () => this.move(this.select.value === "" ? null : Number(this.select.value)));
    control.append(this.select);
  }

  words(value) { return value === null ? "missing" : this.facts.levels[value]; }

  show(value) { this.select.value = value === null ? "" : String(value); }
}

class Slider extends Column {
  draw(control) {
    const { name, low, high, step, edges, missing, texts, marks } = this.facts;
    this.decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const slider = create("div", "", "slider");
    this.bin = create("i", "", "bin");
    slider.append(this.bin);
    edges.forEach((edge, i) => {
      const mark = create("i");
      mark.style.left = this.at(edge);
      mark.title = `edge of a bin: ${marks ? marks[i] : this.words(edge)}`;
      slider.append(mark);
    });
    this.range = Object.assign(create("input"), { type: "range", step: "any", min: low, max: high });
    this.field = Object.assign(create("input"), { type: "text", inputMode: texts ? "text" : "decimal" });
    this.field.classList.toggle("date", Boolean(texts));
    this.range.ariaLabel = name;
    this.field.ariaLabel = texts ? `${name}, such as ${texts[0]}` : `${name}, as a number`;
    this.range.addEventListener("input", () => this.move(this.rounded(this.range.valueAsNumber)));
    this.range.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[event.key];
      if (!steps) return;
      event.preventDefault();
      this.move(this.rounded((state.values[this.j] ?? low) + steps * step));
    });
    this.field.addEventListener("change", () => this.typed());
    slider.append(this.range);
    control.append(slider, this.field);
    if (missing) {
      const label = create("label");
      this.box = Object.assign(create("input"), { type: "checkbox" });
      this.box.addEventListener("change", () => this.move(this.box.checked ? null : this.rounded(this.range.valueAsNumber)));
      label.append(this.box, " missing");
      control.append(label);
    }
  }

  // A slider's thumb is about 16 pixels wide, and stays inside.
  at(value) {
    const { low, high } = this.facts, share = high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 0.5;
    return `calc(8px + ${share} * (100% - 16px))`;
  }

  rounded(value) {
    const { low, high, step } = this.facts;
    return Math.min(high, Math.max(low, Number((Math.round(value / step) * step).toFixed(this.decimals))));
  }

  // Dates and durations have a text a step of the slider.
  placeOf(value) {
    const { low, step, texts } = this.facts;
    return Math.min(texts.length - 1, Math.max(0, Math.round(value / step) - Math.round(low / step)));
  }

  read(text) {
    const { low, step, texts } = this.facts;
    if (!texts) return text === "" ? NaN : Number(text.replace(",", "."));
    const i = texts.indexOf(text);
    return i < 0 ? NaN : this.rounded((Math.round(low / step) + i) * step);
  }

  typed() {
    const value = this.read(this.field.value.trim());
    if (!Number.isFinite(value)) {
      const { name, texts } = this.facts;
      const advice = texts ? `is no step of the slider, such as ${this.words(state.values[this.j] ?? this.facts.low)}` : "is not a number";
      complain(`${name}: "${this.field.value}" ${advice}.`);
      this.show(state.values[this.j]);
    } else {
      complain("");
      this.move(value);
    }
  }

  words(value) {
    if (value === null) return "missing";
    return this.facts.texts ? this.facts.texts[this.placeOf(value)] : String(Number(value.toPrecision(6)));
  }

  write(data) { if (document.activeElement !== this.field) this.field.value = this.field.title = data; }

  show(value) {
    const { low, high, edges } = this.facts;
    if (this.box) this.box.checked = value === null;
    this.range.disabled = this.field.disabled = value === null;
    this.field.value = value === null ? "" : this.words(value);
    this.bin.hidden = value === null || !edges.length;
    if (value === null) return;
    this.range.value = value;
    this.range.ariaValueText = this.words(value);
    const above = edges.find((edge) => value <= edge) ?? high;
    const below = edges.findLast((edge) => edge < value) ?? low;
    this.bin.style.left = this.at(below);
    this.bin.style.right = `calc(100% - ${this.at(above)})`;
  }
}

const KINDS = { number: Slider, category: Choice };

function arrange() {
  const wanted = $("filter").value.trim().toLowerCase();
  const all = $("more").dataset.open === "true" || wanted;
  let hidden = 0;
  [...$("columns").children].forEach((element, place) => {
    const matches = element.querySelector("b").textContent.toLowerCase().includes(wanted);
    element.hidden = !matches || (!all && place >= FIRST);
    hidden += matches && element.hidden;
  });
  $("more").hidden = !hidden;
  text($("more"), `show ${hidden} more, with smaller bars`);
}

// ---- answers

function showExplanation(answer, question) {
  complain("");
  const reach = (line) => Math.abs(line.bar) + line.reach;
  state.scale = Math.max(state.scale, ...answer.lines.map(reach));
  if (state.order) { // the largest first, and then in their places while they change
    const order = page.columns.toSorted((a, b) => reach(answer.lines[b.j]) - reach(answer.lines[a.j]));
    $("columns").replaceChildren(...order.map((column) => column.element));
    state.order = false;
    arrange();
  }
  answer.lines.forEach((line, j) => page.columns[j].place(line, state.scale, question.values[j] === state.values[j]));
  const was = state.predictions[question.output];
  text($("title"), page.outputs[question.output]);
  text($("prediction"), answer.prediction);
  text($("was"), answer.prediction === was ? "" : `the row as picked: ${was}`);
  text($("headline"), answer.headline.replace(/^prediction \S+; /, "")); // which stands above
  $("headline").hidden = !answer.headline;
  const facts = answer.headline ? {} : { "R²": answer.fidelity, surrogate: answer.surrogate, intercept: answer.intercept };
  $("facts").replaceChildren(...Object.entries(facts).filter(([, value]) => value).map(([name, value]) => {
    const pair = create("div");
    pair.append(create("dt", name), create("dd", value));
    return pair;
  }));
  $("remark").hidden = !answer.remark;
  text($("remark"), answer.remark);
  $("warnings").hidden = !answer.warnings.length;
  $("warnings").replaceChildren(...answer.warnings.map((warning) => create("li", warning)));
  text($("method"), answer.method);
}

function showRule(answer) {
  text($("rule-text"), answer.rule);
  $("certificate").replaceChildren(...answer.certificate.map((sentence) => create("li", sentence)));
  $("rule").querySelector("details").hidden = !answer.certificate.length;
}

function showDiagnosis(answer) {
  text($("verdict"), answer.verdict);
  $("findings").replaceChildren(...answer.findings.map(({ title, severity, sentence, advice }) => {
    const item = create("li", "", severity);
    item.append(create("b", title), create("p", sentence), create("p", `→ ${advice}`, "advice"));
    return item;
  }));
}

// ---- start

function connect() {
  $("picker").addEventListener("submit", (event) => event.preventDefault());
  $("row").addEventListener("input", () => listRows().catch((error) => complain(error.message)));
  $("row").addEventListener("change", pickNamed);
  $("previous").addEventListener("click", () => pick(state.row - 1));
  $("next").addEventListener("click", () => pick(state.row + 1));
  $("random").addEventListener("click", () => pick(Math.floor(Math.random() * page.rows)));
  $("output").addEventListener("change", () => {
    Object.assign(state, { output: Number($("output").value), scale: 0, order: true });
    askAll();
  });
  $("reset").addEventListener("click", () => {
    state.values = [...state.picked];
    page.columns.forEach((column) => column.set());
    askAll();
  });
  $("filter").addEventListener("input", arrange);
  $("more").addEventListener("click", () => { $("more").dataset.open = "true"; arrange(); });
  $("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
}

async function start() {
  connect();
  try {
    const table = await ask("table");
    Object.assign(page, { outputs: table.outputs, rows: table.rows, accounts: table.accounts });
    page.columns = table.columns.map((facts, j) => new KINDS[facts.kind](facts, j));
    text($("model"), table.model);
    text($("of-rows"), `of ${table.rows.toLocaleString("en")}`);
    const bars = table.accounts
      ? `Bars are contributions, red raises and blue lowers the prediction: from what is usual, ${table.usual}, they lead to the prediction`
      : `Bars are coefficients of the surrogate, red raises and blue lowers it: ${table.meaning}`;
    text($("meaning"), `${bars}. Marks above a slider are the edges of the column's bins; the row's bin is coloured.`);
    table.outputs.forEach((title, k) => $("output").append(new Option(title, k)));
    $("outputs").hidden = table.outputs.length === 1;
    $("filter").hidden = table.columns.length <= FIRST;
    await pick(table.start);
  } catch (error) {
    complain(error.message);
  }
}

start();
