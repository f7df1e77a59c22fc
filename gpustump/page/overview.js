// The tab "Overview": what the model is, how good it is on rows, and its terms.

function overviewTab(model, open) {
  const list = termList(model, { choose: open, withPictures: true, first: 14 });
  const about = html("dl", { class: "about" }, model.about.map(([name, value]) => html("div", {}, html("dt", {}, name), html("dd", {}, html("bdi", {}, value.slice(0, 300))))));
  const quality = html("div", { class: "quality" });
  const refresh = () => {
    list.show();
    quality.replaceChildren(...qualityOf(model));
  };
  const element = html("div", { class: "split wide" },
    html("section", { class: "card" }, html("h2", {}, "What moves the score"),
      html("p", { class: "note" }, `Share of each term in how the scores differ, ${model.rows ? "over the rows" : "over its steps"}.`), list.element),
    html("div", {}, html("section", { class: "card" }, html("h2", {}, "The model"), about), quality));
  requestAnimationFrame(() => setTimeout(refresh)); // after the first paint
  return { element, refresh };
}

function qualityOf(model) {
  const scores = model.rows && model.rowScores();
  const measures = scores && model.measures(scores);
  if (!measures) {
    return [html("section", { class: "card" }, html("h2", {}, "How good it is"),
      html("p", { class: "note" }, "Unknown here: this page was made without rows and their targets."))];
  }
  const figures = html("dl", { class: "figures" }, measures.map((own) => html("div", {}, html("dt", {}, own.name),
    html("dd", {}, own.rises ? percent(own.value) : short(own.value), html("small", {}, `${own.rises ? percent(own.base) : short(own.base)} by ${own.of}`)))));
  const cards = [html("section", { class: "card" }, html("h2", {}, "How good it is"),
    html("p", { class: "note" }, rowsText(model), model.edits.length ? " With the edits." : ""), figures)];
  if (model.isQuantity) cards.push(chartCard("Residuals", "True minus predicted, over the prediction. Points above the line were predicted too low.", (width) => residuals(model, scores, width)));
  else {
    const calibration = chartCard("Calibration", null, (width) => calibrationChart(model, scores, shown, width));
    let shown = model.isBinary ? 1 : 0;
    const choice = classChoice(model, (output) => { shown = output; calibration.redraw(); });
    if (choice) calibration.querySelector("h2").after(choice);
    cards.push(calibration, confusion(model, scores));
  }
  return cards;
}

function chartCard(title, note, draw) {
  const box = html("div", { class: "plot" });
  const card = html("section", { class: "card" }, html("h2", {}, title), note && html("p", { class: "note" }, note), box);
  card.redraw = drawn(box, (width) => box.replaceChildren(draw(width)));
  return card;
}

// The share of a class among rows of about the same probability, which should be that probability.
function calibrationChart(model, scores, shown, width) {
  const target = numbers(model.rows, "target");
  const rows = Array.from(target, (own, number) => {
    const each = scores.subarray(number * model.nOutputs, (number + 1) * model.nOutputs);
    return [Math.exp(model.logProbabilities(each)[shown]), own === shown];
  }).sort((a, b) => a[0] - b[0]);
  const nBins = Math.max(1, Math.min(10, Math.floor(rows.length / 10)));
  const points = Array.from({ length: nBins }, (_, k) => {
    const own = rows.slice(Math.floor(k * rows.length / nBins), Math.floor((k + 1) * rows.length / nBins));
    const mean = (of) => own.reduce((sum, row) => sum + of(row), 0) / own.length;
    return { p: mean(([p]) => p), share: mean(([, is]) => is), n: own.length };
  });
  const name = model.classes[shown].slice(0, 40);
  return frame({ width, height: 300, xs: [0, 1], ys: [0, 1], xName: `predicted probability of ${name}`, yName: "share that is",
    label: `Calibration of ${name}: ${points.map((own) => `${short(own.p)} predicted, ${short(own.share)} are`).join("; ")}` },
  (x, y) => svg("line", { class: "ideal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
  (x, y) => points.map((own) => {
    const error = Math.sqrt(Math.max(own.share * (1 - own.share), 0.25 / own.n) / own.n);
    return svg("g", {}, svg("line", { class: "whisker", x1: x(own.p), x2: x(own.p), y1: y(Math.max(0, own.share - error)), y2: y(Math.min(1, own.share + error)) }),
      svg("circle", { class: "point", cx: x(own.p), cy: y(own.share), r: 4 }, svg("title", {}, `${counted(own.n, "row")}: ${short(own.p)} predicted, ${short(own.share)} are`)));
  }));
}

const MATRIX = 12; // the most classes in the table of confusions

function confusion(model, scores) {
  const target = numbers(model.rows, "target");
  const K = model.classes.length;
  const counts = new Map();
  const totals = new Uint32Array(K);
  target.forEach((own, number) => {
    const key = own * K + model.decided(scores.subarray(number * model.nOutputs, (number + 1) * model.nOutputs));
    counts.set(key, (counts.get(key) || 0) + 1);
    totals[own] += 1;
  });
  const shown = Array.from(totals.keys()).sort((a, b) => totals[b] - totals[a] || a - b).slice(0, MATRIX).sort((a, b) => a - b);
  const name = (k) => html("bdi", { title: model.classes[k].slice(0, 300) }, model.classes[k].slice(0, 24));
  return html("section", { class: "card" }, html("h2", {}, "Confusion"),
    html("p", { class: "note" }, `Rows: the true class. Columns: the predicted one.${K > MATRIX ? ` The ${MATRIX} largest of ${K} classes.` : ""}`),
    html("div", { class: "scroll" }, html("table", { class: "confusion" },
      html("thead", {}, html("tr", {}, html("td"), shown.map((k) => html("th", { scope: "col" }, name(k))))),
      html("tbody", {}, shown.map((own) => html("tr", {}, html("th", { scope: "row" }, name(own)), shown.map((k) => {
        const count = counts.get(own * K + k) || 0;
        const share = Math.round(100 * count / (totals[own] || 1));
        return html("td", { class: own === k ? "right" : "wrong", style: { "--share": `${count ? Math.max(8, share) : 0}%` } }, count);
      })))))));
}

function residuals(model, scores, width) {
  const target = numbers(model.rows, "target");
  const predicted = Array.from(target, (_, number) => model.quantity(scores.subarray(number, number + 1)));
  const errors = predicted.map((own, number) => target[number] - own);
  const ends = (values) => {
    const [low, high] = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
    const room = (high - low) * 0.04 || 1;
    return [low - room, high + room];
  };
  return frame({ width, height: 320, xs: ends(predicted), ys: ends(errors), xName: "predicted", yName: "true − predicted", label: `Residuals of ${counted(errors.length, "row")}` },
    (x, y) => svg("line", { class: "zero", x1: x(ends(predicted)[0]), x2: x(ends(predicted)[1]), y1: y(0), y2: y(0) }),
    (x, y) => svg("path", { class: "dots", d: errors.map((error, k) => `M${x(predicted[k]).toFixed(1)} ${y(error).toFixed(1)}h0`).join("") }));
}
