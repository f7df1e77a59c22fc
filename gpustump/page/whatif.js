// The tab "What if": one row's values, what each adds to the score, and what would change the decision.

const SHOWN = 25;

function whatIfTab(model) {
  let output = 0; // whose contributions are shown
  let limit = SHOWN;
  let number = 0;
  let wanted = null; // the class to reach; null for any other
  let isTyped = false;
  let row = startRow(model);
  let scores;
  let known; // of the row beforehand, for each output
  let entries = [];

  const chosen = html("input", { type: "number", min: 1, max: model.rows?.n, value: 1, class: "row-number", "aria-label": "Number of the row", oninput: () => choose(Number(chosen.value) - 1) });
  const rowText = html("span", { class: "note" });
  const step = (by) => html("button", { type: "button", "aria-label": by < 0 ? "Previous row" : "Next row", onclick: () => { choose(number + by); chosen.value = number + 1; } }, by < 0 ? "‹" : "›");
  const result = html("div", { class: "result", role: "status" });
  const list = html("div", { class: "inputs" });
  const filter = html("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter columns by name", oninput: () => { limit = SHOWN; show(); } });
  const more = html("button", { class: "quiet", onclick: () => { limit += 4 * SHOWN; show(); } });
  const flips = html("div", { class: "flips" });
  const choice = classChoice(model, (own) => { output = own; arrange(); });
  const goal = model.nOutputs > 1 && html("label", {}, "to ", html("select", { "aria-label": "The class to reach", onchange: (event) => { wanted = event.target.value === "" ? null : Number(event.target.value); showFlips(); } },
    html("option", { value: "" }, "any other class"), model.classes.map((name, k) => html("option", { value: k }, name.slice(0, 60)))));

  function choose(own) {
    if (!(own >= 0 && own < model.rows.n)) return;
    number = own;
    row = model.row(own);
    isTyped = false;
    start();
  }

  function start() {
    scores = model.scores(row);
    known = model.knownOf(number);
    known.forEach((own, k) => { scores[k] += own; });
    if (model.nOutputs > 1) {
      output = model.decided(scores);
      choice.querySelector("select").value = output;
    }
    arrange();
  }

  // The order of the list: the terms that add or take away most come first, and stay so while values change.
  function arrange() {
    entries = model.columns.map((column, place) => ({ column, place, term: model.using[place].find((term) => !term.isPair) || null }));
    entries.push(...model.terms.filter((term) => term.isPair).map((term) => ({ term, place: null })));
    for (const own of entries) own.amount = own.term ? model.contribution(own.term, row, output) : 0;
    entries.sort((a, b) => Math.abs(b.amount) - Math.abs(a.amount));
    show();
  }

  function show() {
    const text = filter.value.trim().toLowerCase();
    const found = entries.filter((own) => (own.term?.name || own.column.name).toLowerCase().includes(text));
    const shown = found.slice(0, limit);
    for (const own of entries) own.element = null;
    list.replaceChildren(...shown.map((own) => entryOf(own)));
    more.hidden = found.length <= limit;
    more.textContent = `${found.length - limit} more`;
    update();
  }

  function entryOf(own) {
    const name = own.place === null ? own.term.name : own.column.name;
    own.bar = html("span", { class: "bar" });
    own.amountText = html("span", { class: "amount" });
    own.control = own.place === null ? html("span", { class: "note" }, "a pair") : control(own);
    own.element = html("div", { class: "input", "data-column": own.place }, named(name), own.control, html("span", { class: "track" }, own.bar), own.amountText);
    return own.element;
  }

  function control({ column, place }) {
    const value = row[place];
    const set = (own) => change(place, own);
    const isChoice = column.values || column.kind === "boolean";
    if (isChoice) {
      const options = column.values ? [...column.values.keys(), -1, NaN] : [1, 0, NaN];
      const select = html("select", { "aria-label": column.name.slice(0, 100), onchange: () => set(Number(select.value)) },
        options.map((own) => html("option", { value: own, selected: Object.is(own, value) || own === value }, valueText(column, own).slice(0, 60))));
      return html("span", { class: "control" }, select);
    }
    const [low, high, digits] = rangeOf(model, place);
    const typed = () => {
      const text = input.value.trim();
      const own = valueOf(column, text);
      const isWrong = own !== own && text !== "" && !column.gone.includes(Number(text));
      input.setAttribute("aria-invalid", isWrong);
      if (isWrong || Object.is(own, row[place])) return;
      if (own === own) slider.value = own;
      set(own);
    };
    const input = html("input", { type: INPUTS[column.kind] || "text", inputmode: "decimal", step: column.kind === "date" ? 1 : "any", value: inputText(column, value),
      placeholder: "missing", "aria-label": column.name.slice(0, 100), oninput: typed, onchange: typed });
    const slider = html("input", { type: "range", min: low, max: high, step: digits, value: value === value ? value : low, "aria-label": `${column.name.slice(0, 100)}, slider`, oninput: () => {
      const own = Number(slider.value);
      input.value = inputText(column, own);
      input.setAttribute("aria-invalid", false);
      set(own);
    } });
    return html("span", { class: "control" }, input, slider);
  }

  function change(place, value) {
    for (const term of model.using[place]) model.add(term, row, scores, -1);
    row[place] = value;
    for (const term of model.using[place]) model.add(term, row, scores);
    for (const own of entries) if (own.term?.columns.includes(place)) own.amount = model.contribution(own.term, row, output);
    isTyped = true;
    update();
  }

  // The bars: each begins where the one before it ends, from the intercept to the score.
  function update() {
    const shown = entries.filter((own) => own.element);
    const intercept = model.constant[output] + known[output];
    const rest = scores[output] - intercept - shown.reduce((sum, own) => sum + own.amount, 0);
    let at = intercept + rest;
    const ends = [0, intercept, at, ...shown.map((own) => (at += own.amount))];
    const x = scale(Math.min(...ends), Math.max(...ends), 2, 98);
    at = intercept + rest;
    list.style.setProperty("--zero", `${x(0)}%`);
    for (const own of shown) {
      const [from, to] = [x(at), x((at += own.amount))];
      own.bar.style.left = `${Math.min(from, to)}%`;
      own.bar.style.width = `${Math.max(0.3, Math.abs(to - from))}%`;
      own.bar.className = `bar ${own.amount < 0 ? "down" : "up"}`;
      own.amountText.textContent = amountText(own.amount);
    }
    showResult(intercept, rest, shown.length);
    clearTimeout(showFlips.waiting);
    showFlips.waiting = setTimeout(showFlips, 120);
  }

  function showResult(intercept, rest, n) {
    const logs = model.isQuantity ? null : model.logProbabilities(scores);
    const decided = logs && model.decided(scores);
    const order = logs && Array.from(logs.keys()).sort((a, b) => logs[b] - logs[a]).slice(0, 5);
    const others = entries.length - n;
    const sum = [`${short(model.constant[output])} to start with`, known[output] && `${amountText(known[output])} known beforehand`, others > 0 && `${amountText(rest)} by ${counted(others, "other term")}`].filter(Boolean).join(", ");
    result.replaceChildren(
      html("p", { class: "decision" }, html("span", { class: "label" }, "predicted"), logs ? html("bdi", {}, model.classes[decided].slice(0, 80)) : short(model.quantity(scores))),
      logs ? html("div", { class: "chances" }, order.map((k) => html("div", { class: k === decided ? "chance most" : "chance" }, html("bdi", {}, model.classes[k].slice(0, 40)),
        html("span", { class: "track" }, html("span", { class: "bar", style: { width: `${100 * Math.exp(logs[k])}%` } })), html("span", {}, Math.exp(logs[k]).toFixed(3))))) : "",
      html("p", { class: "note exact" }, `${scoreName(model)}: `, html("output", { class: "score", "data-scores": JSON.stringify(Array.from(scores)) }, signed(String(scores[output]))), ` = ${sum}, and the bars below`));
    const target = model.rows && numbers(model.rows, "target");
    const truth = target?.length && !isTyped ? `true: ${model.isQuantity ? short(target[number]) : model.classes[target[number]].slice(0, 60)}` : "";
    rowText.textContent = model.rows ? ` of ${model.rows.n.toLocaleString("en")} ${isTyped ? "· changed" : truth && `· ${truth}`}` : "";
  }

  function showFlips() {
    if (model.isQuantity || !flips.isConnected) return;
    const found = smallestFlips(model, row, scores, wanted);
    const text = (own) => {
      const column = model.columns[own.place];
      const how = own.end === undefined ? valueText(column, own.value) : own.isAbove ? `above ${valueText(column, own.end)}` : `${valueText(column, own.end)} or less`;
      return html("li", {}, html("button", { type: "button", class: "flip", onclick: () => { change(own.place, own.value); arrange(); } },
        named(column.name), html("span", {}, ` ${how} `), html("span", { class: "note" }, `${own.decided === undefined ? "" : `→ ${model.classes[own.decided].slice(0, 40)} · `}${row[own.place] !== row[own.place] ? "it is missing now" : `passes ${percent(own.passed)} of the ${model.rows ? "rows" : "steps"}`}`)));
    };
    if (found.length) return void flips.replaceChildren(html("ol", {}, found.slice(0, 8).map(text)));
    const several = model.nOutputs === 1 ? fewestFlips(model, row, scores) : null;
    flips.replaceChildren(html("p", { class: "note" }, `No change of a single column does.${several ? ` These ${several.length} together do${model.terms.some((term) => term.isPair) ? "" : ", and fewer do not"}:` : ""}`),
      several ? html("ol", {}, several.map(text)) : "");
  }

  const reset = html("button", { type: "button", onclick: () => (model.rows ? choose(number) : (row = startRow(model), start())) }, "Reset");
  const element = html("div", { class: "whatif" },
    html("section", { class: "card top" }, html("div", { class: "controls" }, model.rows?.n > 0 && [html("label", {}, "Row ", chosen), step(-1), step(1), rowText], reset, choice), result),
    html("div", { class: "split reverse" }, html("section", { class: "card" }, html("h2", {}, "What each value adds"), filter, list, more),
      !model.isQuantity && html("section", { class: "card" }, html("h2", {}, "Smallest changes that flip the decision"), html("p", { class: "note" }, "Of one column each, found exactly: every step of every column is tried."), goal, flips)));
  start();
  return { element, refresh: start };
}

// A row to start from: the first one of the page, or else the middle of all steps.
function startRow(model) {
  if (model.rows?.n) return model.row(0);
  return Float64Array.from(model.columns, (column, place) => {
    if (column.values) return 0;
    const ends = endsOf(model, place).filter(Number.isFinite);
    return ends.length ? ends[Math.floor(ends.length / 2)] : 0;
  });
}

// All ends of steps of a column, of its own term and of pairs, increasing.
function endsOf(model, place) {
  model.ends ??= [];
  return (model.ends[place] ??= Array.from(new Set(model.using[place].flatMap((term) =>
    term.isPair ? term.axes.flatMap((axis, side) => (term.columns[side] === place ? Array.from(numbers(axis, "ends")) : []))
      : term.trained.flatMap((part) => Array.from(numbers(part, "ends")))))).sort((a, b) => a - b));
}

// The ends of a slider, and its step: 1 where all values are whole.
function rangeOf(model, place) {
  const sorted = sortedValues(model, place);
  const ends = endsOf(model, place).filter(Number.isFinite);
  const low = Math.min(sorted.length ? sorted[0] : Infinity, ends.length ? ends[0] : Infinity);
  const high = Math.max(sorted.length ? sorted.at(-1) : -Infinity, ends.length ? ends.at(-1) : -Infinity);
  if (!(low <= high)) return [0, 1, "any"];
  const isWhole = sorted.length > 0 && sorted.every(Number.isInteger);
  const room = sorted.length ? 0 : (high - low) * 0.1 || 1;
  return isWhole ? [Math.floor(low), Math.ceil(high), 1] : [low - room, high + room, "any"];
}

// For each column the nearest value that changes the decision, the changes that pass fewest rows first.
function smallestFlips(model, row, scores, wanted) {
  const before = model.decided(scores);
  const isReached = (decided) => (wanted === null ? decided !== before : decided === wanted && decided !== before);
  const found = [];
  const own = Float64Array.from(row);
  const trial = new Float64Array(model.nOutputs);
  model.columns.forEach((column, place) => {
    const rest = Float64Array.from(scores);
    for (const term of model.using[place]) model.add(term, row, rest, -1);
    let best = null;
    for (const candidate of candidates(model, place, row[place])) {
      if (best && candidate.passed >= best.passed) continue;
      own[place] = candidate.value;
      trial.set(rest);
      for (const term of model.using[place]) model.add(term, own, trial);
      const decided = model.decided(trial);
      if (isReached(decided)) best = { ...candidate, place, decided };
    }
    own[place] = row[place];
    if (best) found.push(best);
  });
  return found.sort((a, b) => a.passed - b.passed);
}

// The fewest columns whose changes flip a decision together: those that can move the score furthest.
// Without pairs the columns do not depend on each other, so no smaller number does.
function fewestFlips(model, row, scores) {
  const sign = model.decided(scores) ? -1 : 1;
  const own = Float64Array.from(row);
  const chosen = [];
  const left = new Set(model.columns.keys());
  let score = scores[0];
  while (left.size && (sign > 0 ? score <= 0 : score > 0)) {
    let best = null;
    for (const place of left) {
      const amount = () => model.using[place].reduce((sum, term) => sum + model.contribution(term, own, 0), 0);
      const before = amount();
      const kept = own[place];
      for (const candidate of candidates(model, place, kept)) {
        own[place] = candidate.value;
        const gain = sign * (amount() - before);
        if (gain > (best?.gain || 0)) best = { ...candidate, place, gain };
      }
      own[place] = kept;
    }
    if (!best) return null;
    own[best.place] = best.value;
    score += sign * best.gain;
    chosen.push(best);
    left.delete(best.place);
  }
  return (sign > 0 ? score > 0 : score <= 0) ? chosen : null;
}

// On each step of a column the value that is nearest to its own, and the share of rows in between.
function candidates(model, place, value) {
  const column = model.columns[place];
  if (column.values || column.kind === "boolean") {
    const all = column.values ? [...column.values.keys()] : [0, 1];
    return all.filter((own) => own !== value).map((own) => ({ value: own, passed: passedBy(model, place, own) }));
  }
  const ends = endsOf(model, place);
  const sorted = sortedValues(model, place);
  const isWhole = sorted.length > 0 && sorted.every(Number.isInteger);
  const share = (one, other) => {
    const among = sorted.length ? sorted : ends;
    const [low, high] = one < other ? [one, other] : [other, one];
    return (placeAmong(among, high) - placeAmong(among, low)) / among.length;
  };
  const here = value === value ? placeAmong(ends, value) : -1;
  return ends.flatMap((end, k) => {
    if (k === here) return [];
    if (k < here) return end === -Infinity ? [] : [{ value: end, end, isAbove: false, passed: share(end, value) }];
    const from = k ? ends[k - 1] : -Infinity;
    if (value !== value) return end < Infinity ? [{ value: end, end, isAbove: false, passed: 1 }] : [{ value: nextUp(from), end: from, isAbove: true, passed: 1 }];
    const above = isWhole && Math.floor(from) + 1 <= end ? Math.floor(from) + 1 : nextUp(from);
    return [{ value: above, end: from, isAbove: true, passed: share(value, from) }];
  });
}

// To another category: the share of rows that have a different one.
function passedBy(model, place, value) {
  const all = model.rows && numbers(model.rows.columns, place);
  return all?.length ? all.reduce((n, own) => n + (own !== value), 0) / all.length : 1;
}
