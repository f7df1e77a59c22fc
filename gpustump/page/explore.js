// The tabs "Shapes" and "Edit": a list of terms, the picture of one, and what may be done to it.

const LISTED = 60; // terms are listed so many at a time, as there may be thousands

// A list of terms that can be filtered by name; choose(term) is called with the one that is chosen.
function termList(model, { choose, withPictures = false, first = LISTED }) {
  const total = model.terms.reduce((sum, term) => sum + term.size, 0) || 1;
  const most = Math.max(...model.terms.map((term) => term.size), 0) || 1;
  const list = html("ol", { class: "terms" });
  const more = html("button", { class: "quiet", hidden: true, onclick: () => show(limit + LISTED) });
  const filter = html("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter terms by name", oninput: () => show() });
  let limit = first;
  let chosen = null;
  function show(wish = first) {
    limit = wish;
    const wanted = filter.value.trim().toLowerCase();
    const found = model.terms.filter((term) => term.name.toLowerCase().includes(wanted));
    list.replaceChildren(...found.slice(0, limit).map((term) => {
      const isOff = model.edits.some((edit) => edit.term === term.number && edit.edit === "without");
      const isEdited = term.parts !== term.trained;
      return html("li", {}, html("button", { "aria-current": term === chosen && "true", class: isOff ? "off" : "", "data-term": term.number, onclick: () => { mark(term); choose(term); } },
        named(term.name), isEdited && html("span", { class: "tag" }, isOff ? "off" : "edited"),
        withPictures && sparkline(model, term, 0),
        html("span", { class: "share" }, percent(term.size / total)),
        html("span", { class: "bar", style: { width: `${100 * term.size / most}%` } })));
    }));
    more.hidden = found.length <= limit;
    more.textContent = `${found.length - limit} more`;
    if (!found.length) list.append(html("li", { class: "note" }, model.terms.length ? "No term has such a name." : "The model uses no feature."));
  }
  function mark(term) {
    chosen = term;
    for (const button of list.querySelectorAll("button")) {
      if (Number(button.dataset.term) === term.number) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  }
  show();
  return { element: html("div", { class: "list" }, filter, list, more), show: () => show(limit), mark };
}

// A choice among the classes; nothing if there is one score only.
function classChoice(model, changed) {
  if (model.nOutputs === 1) return null;
  const options = model.classes.map((name, k) => html("option", { value: k }, name.slice(0, 60)));
  return html("label", {}, "Class ", html("select", { class: "classes", onchange: (event) => changed(Number(event.target.value)) }, options));
}

const scoreName = (model) =>
  model.isQuantity ? (model.link === "log" ? "logarithm of the prediction" : "prediction")
    : model.isBinary ? `score of ${model.classes[1].slice(0, 40)}` : "score of the class";

// The picture of a term, which says what is pointed at, by the mouse or by arrow keys.
class TermView {
  constructor(model, { editor = null } = {}) {
    Object.assign(this, { model, editor, term: model.terms[0], output: 0, spot: -1, range: null });
    this.title = html("h2");
    this.ranks = html("input", { type: "checkbox", onchange: () => this.draw() });
    this.choice = html("div", { class: "controls" }, classChoice(model, (output) => { this.output = output; this.draw(); }),
      html("label", { class: "ranks" }, this.ranks, " Spread by ranks"));
    this.readout = html("output", { class: "readout", "aria-live": "polite" });
    this.box = html("div", { class: "chart", tabindex: 0, role: "group", "aria-label": "Chart: arrow keys move from step to step",
      onkeydown: (event) => this.key(event), onblur: () => this.point(-1) });
    this.table = html("details", { class: "table", ontoggle: () => this.table.open && this.fillTable() }, html("summary", {}, "As a table"));
    this.element = html("section", { class: "card" }, this.title, this.choice, this.box, this.readout, this.table);
    this.redraw = drawn(this.box, (width) => this.drawAt(width));
  }

  show(term) {
    this.term = term;
    this.range = null;
    const [place] = term.columns;
    const isStep = !term.isPair && !this.model.columns[place].values;
    this.ranks.parentElement.hidden = !isStep;
    this.ranks.checked = isStep && isSkewed(this.model, place);
    this.draw();
  }

  draw() {
    this.title.replaceChildren(this.term ? named(this.term.name) : "No term");
    this.spot = -1;
    this.redraw();
    if (this.table.open) this.fillTable();
  }

  drawAt(width) {
    const drawing = this.term && drawTerm(this.model, this.term, { output: this.output, byRanks: this.ranks.checked }, width);
    this.drawing = drawing;
    if (!drawing) {
      this.box.replaceChildren(html("p", { class: "note" }, this.term ? "Adds nothing to the score of this class." : "The model predicts the same for every row."));
      this.readout.textContent = "";
      return;
    }
    this.picture = drawing.picture;
    this.shade = svg("rect", { class: "shade", y: 0, height: HEIGHT - 84, visibility: "hidden" });
    this.mark = svg("g", { class: "mark", visibility: "hidden" }, svg("line", { y1: 0, y2: HEIGHT - 84 }), svg("circle", { r: 4.5 }));
    this.picture.prepend(this.shade);
    this.picture.append(this.mark);
    this.box.replaceChildren(this.picture);
    this.picture.setAttribute("aria-hidden", "true");
    this.picture.addEventListener("pointermove", (event) => this.move(event));
    this.picture.addEventListener("pointerleave", () => this.point(-1));
    this.picture.addEventListener("pointerdown", (event) => this.press(event));
    this.picture.addEventListener("pointerup", () => { this.start = null; });
    this.showRange();
    this.point(-1);
  }

  place(event) {
    const frame = this.picture.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  }

  move(event) {
    const [x, y] = this.place(event);
    const step = this.drawing.at(x, y);
    this.point(this.drawing.spots.findIndex((spot) => spot.step === (this.term.isPair || this.drawing.corners ? step : this.drawing.spots[step]?.step)));
    if (this.start != null && this.editor && this.drawing.value) {
      this.setRange(...[this.start, x].sort((a, b) => a - b).map(this.drawing.value));
    }
  }

  press(event) {
    if (!this.editor || !this.drawing.value) return;
    this.picture.setPointerCapture(event.pointerId);
    [this.start] = this.place(event);
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!step || !this.drawing) return;
    event.preventDefault();
    const n = this.drawing.spots.length;
    this.point(Math.min(n - 1, Math.max(0, this.spot + step)));
  }

  point(number) {
    if (!this.drawing) return;
    this.spot = number;
    const spot = this.drawing.spots[number];
    this.mark.setAttribute("visibility", spot ? "visible" : "hidden");
    this.readout.textContent = spot ? spot.text : `What it adds to the ${scoreName(this.model)}. ${this.hint()}`;
    if (!spot) return;
    const [line, circle] = this.mark.children;
    line.setAttribute("visibility", this.drawing.corners ? "inherit" : "hidden");
    line.setAttribute("x1", spot.x);
    line.setAttribute("x2", spot.x);
    circle.setAttribute("cx", spot.x);
    circle.setAttribute("cy", spot.y);
  }

  hint() {
    const bands = this.model.bags > 1 ? ` Bands and thin lines: ± 1 standard deviation over ${this.model.bags} bags.` : "";
    return this.editor && this.drawing.value ? `Drag over a range to flatten it.${bands}` : `Point at it, or use the arrow keys.${bands}`;
  }

  // The range to flatten: from one end of steps to another, so that whole steps become one.
  setRange(from, upto) {
    const ends = numbers(partOf(this.term, this.output), "ends");
    const finite = ends.subarray(0, -1);
    const nearest = (value) => {
      const at = placeAmong(finite, value);
      const beside = [finite[at - 1], finite[at]].filter((own) => own !== undefined);
      return beside.sort((a, b) => Math.abs(a - value) - Math.abs(b - value))[0];
    };
    const inLast = placeAmong(finite, upto) === finite.length && this.drawing.value(1e9) - upto < upto - finite.at(-1);
    const inFirst = placeAmong(finite, from) === 0 && from - this.drawing.value(-1e9) < finite[0] - from;
    this.chooseRange(inFirst ? -Infinity : nearest(from), inLast ? Infinity : nearest(upto));
  }

  chooseRange(above, upto) {
    this.range = above < upto ? { above, upto } : null;
    this.showRange();
    this.editor?.ranged(this.range);
  }

  showRange() {
    this.shade?.setAttribute("visibility", this.range ? "visible" : "hidden");
    if (!this.range || !this.drawing?.corners) return;
    const { corners } = this.drawing;
    const ends = numbers(partOf(this.term, this.output), "ends");
    const at = (end) => (end === -Infinity ? corners[0] : end === Infinity ? corners.at(-1) : corners[placeAmong(ends, end) + 1]);
    this.shade.setAttribute("x", at(this.range.above));
    this.shade.setAttribute("width", Math.max(1, at(this.range.upto) - at(this.range.above)));
  }

  fillTable() {
    const rows = (this.drawing?.spots || []).slice(0, 2000).map((spot) => {
      const at = spot.text.lastIndexOf(": ");
      return html("tr", {}, html("th", { scope: "row" }, html("bdi", {}, spot.text.slice(0, at))), html("td", {}, spot.text.slice(at + 2)));
    });
    this.table.replaceChildren(this.table.firstElementChild, html("div", { class: "scroll" }, html("table", {}, html("tbody", {}, rows))));
  }
}

function shapesTab(model) {
  const view = new TermView(model);
  const list = termList(model, { choose: (term) => view.show(term) });
  const show = (term) => { list.mark(term); view.show(term); };
  if (model.terms.length) show(model.terms[0]);
  else view.draw();
  return { element: html("div", { class: "split" }, list.element, view.element), show, refresh: () => { list.show(); view.draw(); } };
}

// A level for a range of steps: the weighted median, which is the value on one of the steps.
function medianStep(values, weights, steps) {
  const order = steps.toSorted((a, b) => values[a] - values[b]);
  const half = order.reduce((sum, step) => sum + weights[step], 0) / 2;
  let sum = 0;
  return order.find((step) => (sum += weights[step]) >= half) ?? order[0];
}

// Ranges to flatten so that values only rise (or fall): the isotonic step function that is nearest in
// the mean absolute difference, by pooling adjacent violators with medians [Robertson, Wright and
// Dykstra 1988, Order Restricted Statistical Inference].
function monotoneBlocks(values, weights, n, sign) {
  const blocks = [];
  for (let step = 0; step < n; step++) {
    let block = { steps: [step], at: step };
    while (blocks.length && sign * values[blocks.at(-1).at] > sign * values[block.at]) {
      const steps = blocks.pop().steps.concat(block.steps);
      block = { steps, at: medianStep(values, weights, steps) };
    }
    blocks.push(block);
  }
  return blocks.filter((block) => block.steps.some((step) => values[step] !== values[block.at]));
}

function editTab(model, changed) {
  const editor = { ranged: (range) => showRange(range) };
  const view = new TermView(model, { editor });
  const list = termList(model, { choose: (term) => show(term) });
  const said = html("p", { class: "said", role: "status" });
  const button = (text, onclick, attributes = {}) => html("button", { type: "button", onclick, ...attributes }, text);
  const off = button("Switch off", () => apply([{ term: view.term.number, edit: "without" }]), { class: "off-button" });
  const [above, upto] = ["above", "up to"].map((name) => html("input", { type: "text", inputmode: "decimal", size: 10, "aria-label": `Flatten ${name}`, onchange: typed }));
  const level = html("input", { type: "range", min: 0, "aria-label": "The level of the range", oninput: () => showLevel() });
  const levelText = html("output");
  const flatten = button("Flatten", () => apply([{ term: view.term.number, edit: "flatten", ...view.range, like: like() }]), { class: "flatten" });
  const [rise, fall] = [1, -1].map((sign) => button(sign > 0 ? "Make it rise" : "Make it fall", () => makeMonotone(sign)));
  const ranged = html("fieldset", { class: "ranged" }, html("legend", {}, "Flatten a range"),
    html("label", {}, "above ", above), html("label", {}, " up to ", upto), html("label", { class: "level" }, "level ", level, levelText), flatten);
  const effect = html("div", { class: "effect" });
  const made = html("ol", { class: "made" });
  const save = button("Save the edits", () => download("edits.json", model.editsFile()), { class: "primary save" });
  const undo = button("Undo", () => setEdits(model.edits.slice(0, -1)));
  const monotone = html("div", { class: "controls" }, rise, fall);
  let steps = [];

  const part = () => partOf(view.term, view.output);
  const weights = () => Array.from(numbers(part(), "counts") || numbers(part(), "ends"), (count) => (numbers(part(), "counts") ? count + 1e-9 : 1));
  const valuesNow = () => columnOf(part(), "values", view.output);
  const columnNow = () => model.columns[view.term.columns[0]];

  // A value on a step that lies within the range, so that "like" names the step's level.
  function insideOf(step, range) {
    const ends = numbers(part(), "ends");
    const end = Math.min(ends[step], range.upto);
    if (end < Infinity) return end;
    const low = Math.max(step ? ends[step - 1] : -1, range.above);
    return nextUp(low);
  }

  function like() {
    return insideOf(steps[Number(level.value)], view.range);
  }

  function showLevel() {
    if (!view.range) return;
    levelText.textContent = `${plus(valuesNow()[steps[Number(level.value)]])}, that of ${valueText(columnNow(), like())}`;
  }

  function showRange(range) {
    flatten.disabled = level.disabled = !range;
    const text = (value) => (Number.isFinite(value) ? inputText(columnNow(), value) : "");
    [above.value, upto.value] = range ? [text(range.above), text(range.upto)] : ["", ""];
    levelText.textContent = "";
    if (!range) return;
    const ends = numbers(part(), "ends");
    steps = Array.from(ends.keys()).filter((step) => ends[step] > range.above && (step ? ends[step - 1] : -Infinity) < range.upto);
    level.max = steps.length - 1;
    level.value = steps.indexOf(medianStep(valuesNow(), weights(), steps));
    showLevel();
  }

  function typed() {
    const column = columnNow();
    const of = (input, otherwise) => (input.value.trim() === "" ? otherwise : valueOf({ ...column, gone: [] }, input.value.trim()));
    view.chooseRange(of(above, -Infinity), of(upto, Infinity));
  }

  function makeMonotone(sign) {
    const n = numbers(part(), "ends").length;
    const blocks = monotoneBlocks(valuesNow(), weights(), n, sign);
    const ends = numbers(part(), "ends");
    apply(blocks.map((block) => {
      const range = { above: block.steps[0] ? ends[block.steps[0] - 1] : -Infinity, upto: ends[block.steps.at(-1)] };
      return { term: view.term.number, edit: "flatten", ...range, like: insideOf(block.at, range) };
    }));
    if (!blocks.length) said.textContent = `It ${sign > 0 ? "rises" : "falls"} already.`;
  }

  const apply = (edits) => edits.length && setEdits([...model.edits, ...edits]);

  function setEdits(edits) {
    model.setEdits(edits);
    said.textContent = "";
    changed();
  }

  function show(term) {
    list.mark(term);
    view.show(term);
    const isStep = !term.isPair && !model.columns[term.columns[0]].values;
    ranged.hidden = !isStep;
    monotone.hidden = !isStep || model.nOutputs > 1;
    showRange(null);
    refreshButtons();
  }

  function refreshButtons() {
    const isOff = model.edits.some((edit) => edit.term === view.term?.number && edit.edit === "without");
    for (const one of [off, rise, fall]) one.disabled = !view.term || isOff;
    save.disabled = undo.disabled = !model.edits.length;
  }

  function editText(edit) {
    const column = model.columns[model.terms[edit.term].columns[0]];
    if (edit.edit === "without") return "switched off";
    return `flat for ${rangeText(column, edit.above, edit.upto)}, as at ${valueText(column, edit.like)}`;
  }

  function refresh() {
    list.show();
    if (view.term) {
      view.range = null;
      view.draw();
      showRange(null);
    }
    refreshButtons();
    made.replaceChildren(...model.edits.map((edit, number) => html("li", {}, named(model.terms[edit.term].name), ` ${editText(edit)} `,
      button("×", () => setEdits(model.edits.filter((_, k) => k !== number)), { class: "quiet", "aria-label": `Take back edit ${number + 1}` }))));
    effect.replaceChildren(...effectOf(model));
  }

  const element = html("div", { class: "split" }, list.element, html("div", {}, view.element,
    html("section", { class: "card" }, html("div", { class: "controls" }, off), monotone, ranged, said),
    html("section", { class: "card" }, html("h2", {}, "What the edits do"), effect, made,
      html("div", { class: "controls" }, save, undo),
      html("p", { class: "note" }, "The saved file holds the edits only. ", html("code", {}, "gpustump inspect MODEL --edits edits.json -o edited.json"),
        " or ", html("code", {}, "model.edited(\"edits.json\")"), " makes the edited model, with a digest of its own and the edits in its file."))));
  if (model.terms.length) show(model.terms[0]);
  else view.draw();
  refresh();
  return { element, show, refresh };
}

// A table: the measures as trained, with the edits, and of the simplest prediction.
function effectOf(model) {
  const trained = model.rows && model.measures(numbers(model.rows, "scores"));
  if (!trained) return [html("p", { class: "note" }, "This page holds no rows with known targets, so it cannot say what an edit does to the score. Give it rows: ", html("code", {}, "model.to_html(path, X, y)"), ".")];
  const edited = model.measures(model.rowScores());
  const row = (own, k) => {
    const change = edited[k].value - own.value;
    const isWorse = own.rises ? change < 0 : change > 0;
    return html("tr", {}, html("th", { scope: "row" }, own.name), html("td", {}, short(own.value)),
      html("td", { class: `edited ${change === 0 ? "" : isWorse ? "worse" : "better"}` }, change === 0 ? "the same" : `${short(edited[k].value)} (${isWorse ? "worse" : "better"} by ${short(Math.abs(change))})`),
      html("td", {}, `${short(own.base)} by ${own.of}`));
  };
  return [html("p", { class: "note" }, rowsText(model)),
    html("div", { class: "scroll" }, html("table", { class: "measures" }, html("thead", {}, html("tr", {}, ["", "as trained", "edited", "baseline"].map((text) => html("th", { scope: "col" }, text)))),
      html("tbody", {}, trained.map(row))))];
}

function rowsText(model) {
  const { n, given, source } = model.rows;
  const some = n < given ? `${counted(n, "row")}, evenly spaced among ${given.toLocaleString("en")}` : counted(n, "row");
  return `Measured on ${some}${source ? `: ${source}` : " given to this page"}.`;
}

function download(name, text) {
  const link = html("a", { href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
