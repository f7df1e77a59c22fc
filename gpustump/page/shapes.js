// What one term adds to a score: a step function, bars of categories, or the cells of a pair.
//
// Each drawing is { picture, spots, at }: spots are what can be pointed at, in order, each with the
// text that says it all; at(x, y) is the number of the spot at a point, -1 if there is none.

const HEIGHT = 330;

const partOf = (term, output) =>
  term.parts.find((part) => part.first <= output && output < part.first + part.width);

// The values of a part, or another of its arrays, for one output.
function columnOf(part, key, output) {
  const all = numbers(part, key);
  return all && Float64Array.from({ length: all.length / part.width }, (_, k) => all[k * part.width + output - part.first]);
}

// Finite values of a column in the page's rows, sorted.
function sortedValues(model, column) {
  if (!model.rows) return new Float64Array(0);
  model.sorted ??= [];
  return (model.sorted[column] ??= Float64Array.from(numbers(model.rows.columns, column).filter(Number.isFinite)).sort());
}

// A scale of a column's values between two pixels, linear or by the ranks of the rows.
function columnScale(model, column, ends, byRanks, from, to) {
  const sorted = sortedValues(model, column);
  const inside = ends.filter(Number.isFinite);
  let low = Math.min(...inside.slice(0, 1), ...sorted.slice(0, 1));
  let high = Math.max(...inside.slice(-1), ...sorted.slice(-1));
  if (!(low <= high)) [low, high] = [0, 1];
  [low, high] = [Math.max(low, -8e307), Math.min(high, 8e307)]; // their difference stays finite
  const room = (high - low) * (sorted.length ? 0.02 : 0.1) || 1;
  [low, high] = [low - room, high + room];
  let knots = [[low, 0], [high, 1]];
  if (byRanks) {
    const seen = sorted.length > 1 ? sorted : inside;
    knots = [[low, 0]];
    for (let first = 0; first < seen.length;) { // the middle of the ranks of equal values
      let last = first;
      while (seen[last + 1] === seen[first]) last += 1;
      knots.push([seen[first], (first + last + 1) / 2 / seen.length * 0.96 + 0.02]);
      first = last + 1;
    }
    knots.push([high, 1]);
  }
  const values = knots.map(([value]) => value);
  const places = knots.map(([, place]) => from + place * (to - from));
  const between = (xs, ys) => (x) => {
    const k = Math.min(Math.max(placeAmong(xs, x), 1), xs.length - 1);
    return ys[k - 1] + (x - xs[k - 1]) / (xs[k] - xs[k - 1]) * (ys[k] - ys[k - 1]);
  };
  const inner = between(values, places);
  return { low, high, to: (value) => inner(Math.min(Math.max(value, low), high)), from: between(places, values) };
}

// Whether most values of a column stand in a corner of its range.
function isSkewed(model, column) {
  const sorted = sortedValues(model, column);
  const at = (share) => sorted[Math.floor(share * (sorted.length - 1))];
  return sorted.length > 20 && at(1) - at(0) > 8 * (at(0.9) - at(0.1));
}

function heightsOf(values, spread) {
  let low = Math.min(0, ...values.map((value, k) => value - (spread?.[k] || 0)));
  let high = Math.max(0, ...values.map((value, k) => value + (spread?.[k] || 0)));
  const room = (high - low) * 0.06 || 1;
  return [low < 0 ? low - room : -room, high > 0 ? high + room : room];
}

const sampled = (counts, step) => (counts ? ` · ${counted(counts[step], "row")}` : "");
const within = (spread, step) => (spread ? ` ± ${short(spread[step])}` : "");

function drawSteps(model, term, { output, byRanks }, width) {
  const place = term.columns[0];
  const column = model.columns[place];
  const part = partOf(term, output);
  const ends = numbers(part, "ends");
  const values = columnOf(part, "values", output);
  const spread = part.spread && columnOf(part, "spread", output);
  const counts = numbers(part, "counts");
  const last = ends.length; // the step of missing values
  const hasMissing = column.learnt || values[last] !== 0 || counts?.[last] > 0;
  const [left, right, bottom] = [58, width - (hasMissing ? 76 : 12), HEIGHT - 84];
  const x = columnScale(model, place, ends, byRanks, left, right);
  const [low, high] = heightsOf(values, spread);
  const y = scale(low, high, bottom, 10);
  const corners = [left, ...Array.from(ends.subarray(0, last - 1), x.to), right];
  const line = (own, k = 0) => stepPath(corners, Array.from(own.subarray(0, last), (value, step) => y(value + k * (spread?.[step] || 0))));
  const others = model.nOutputs > 1 && model.nOutputs <= 12 ? model.constant.map((_, k) => k).filter((k) => k !== output) : [];
  const faint = others.map((k) => {
    const own = partOf(term, k);
    if (!own) return null;
    const theirs = numbers(own, "ends");
    const heights = Array.from(columnOf(own, "values", k).subarray(0, theirs.length), y);
    return svg("path", { class: "faint", d: stepPath([left, ...Array.from(theirs.subarray(0, -1), x.to), right], heights) });
  });
  const lower = (k) => `L${corners[k + 1]} ${y(values[k] - spread[k])}H${corners[k]}`;
  const back = () => Array.from({ length: last }, (_, k) => lower(last - 1 - k)).join("");
  const band = spread && svg("path", { class: "band", d: `${line(values, 1)}${back()}Z` });
  const spots = Array.from(values, (value, step) => {
    const range = step === last ? "missing" : rangeText(column, step ? ends[step - 1] : -Infinity, ends[step]);
    return { step, text: `${range}: ${plus(value)}${within(spread, step)}${sampled(counts, step)}`,
      x: step === last ? right + 44 : (corners[step] + corners[step + 1]) / 2, y: y(value) };
  });
  const marks = byRanks && sortedValues(model, place).length > 1
    ? [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1].map((share) => {
      const sorted = sortedValues(model, place);
      const value = sorted[Math.round(share * (sorted.length - 1))];
      return [value, valueText(column, value)];
    }) : ticks(x.low, x.high, Math.max(3, width / 100), column);
  const picture = svg("svg", { width, height: HEIGHT },
    yAxis(y, low, high, left, width - 12), faint, band,
    svg("path", { class: "steps", d: line(values) }),
    density(model, place, x, left, right, bottom + 8),
    xAxis(marks, x.to, HEIGHT - 30, right),
    hasMissing && [
      svg("line", { class: "steps", x1: right + 30, x2: right + 58, y1: y(values[last]), y2: y(values[last]) }),
      spread && svg("line", { class: "whisker", x1: right + 44, x2: right + 44, y1: y(values[last] - spread[last]), y2: y(values[last] + spread[last]) }),
      xTick(right + 44, HEIGHT - 30, "missing"),
    ]);
  const at = (px) => {
    if (px > right + 15) return hasMissing ? last : -1;
    return Math.max(0, Math.min(last - 1, placeAmong(corners.slice(1, last), px)));
  };
  return { picture, spots, at, corners, value: (px) => x.from(Math.min(Math.max(px, left), right)) };
}

// A histogram of the page's rows below a chart.
function density(model, column, x, left, right, top) {
  const sorted = sortedValues(model, column);
  const bars = new Uint32Array(Math.max(8, Math.round((right - left) / 8)));
  for (const value of sorted) {
    bars[Math.min(bars.length - 1, Math.floor((x.to(value) - left) / (right - left) * bars.length))] += 1;
  }
  const most = Math.max(...bars);
  const width = (right - left) / bars.length;
  return Array.from(bars, (count, k) => count > 0 &&
    svg("rect", { class: "density", x: left + k * width, width: width - 1, y: top + 40 * (1 - count / most), height: 40 * count / most }));
}

function drawBars(model, term, { output }, width) {
  const column = model.columns[term.columns[0]];
  const part = partOf(term, output);
  const values = columnOf(part, "values", output);
  const spread = part.spread && columnOf(part, "spread", output);
  const counts = numbers(part, "counts");
  const names = [...column.values.map((_, k) => valueText(column, k)), "another value", "missing"];
  const shown = Array.from(values.keys()).filter((k) => k < column.values.length || counts?.[k] > 0 || values[k] !== 0);
  const [left, right] = [Math.min(180, width * 0.34), width - 24];
  const [low, high] = heightsOf(values, spread);
  const x = scale(low, high, left + 8, right);
  const rowHeight = 26;
  const height = shown.length * rowHeight + 40;
  const spots = shown.map((k, row) => ({
    step: k, x: x(values[k]), y: row * rowHeight + 13,
    text: `${names[k]}: ${plus(values[k])}${within(spread, k)}${sampled(counts, k)}`,
  }));
  const picture = svg("svg", { width, height },
    ticks(low, high, Math.max(3, width / 120)).map(([value, text]) => svg("g", {},
      svg("line", { class: value === 0 ? "zero" : "grid", x1: x(value), x2: x(value), y1: 0, y2: height - 36 }),
      svg("text", { x: x(value), y: height - 16, "text-anchor": "middle" }, text))),
    shown.map((k, row) => {
      const y = row * rowHeight;
      const room = Math.floor(left / 7.4);
      const name = names[k].length > room ? `${names[k].slice(0, room - 1)}…` : names[k];
      return svg("g", {},
        svg("text", { class: k < column.values.length ? "" : "axis", x: left, y: y + 17, "text-anchor": "end", direction: "ltr", "unicode-bidi": "isolate" }, name),
        svg("rect", { class: values[k] < 0 ? "down" : "up", x: Math.min(x(0), x(values[k])), y: y + 5, width: Math.abs(x(values[k]) - x(0)), height: 16 }),
        spread && svg("line", { class: "whisker", x1: x(values[k] - spread[k]), x2: x(values[k] + spread[k]), y1: y + 13, y2: y + 13 }));
    }));
  return { picture, spots, at: (_, py) => (py < shown.length * rowHeight ? Math.floor(py / rowHeight) : -1) };
}

// The names of the bins of a pair's axis: the ends of numbers, or the categories in each, by those
// that are not if these are fewer.
function binNames(model, term, side) {
  const axis = term.axes[side];
  const column = model.columns[term.columns[side]];
  const [ends, bins] = [numbers(axis, "ends"), numbers(axis, "bins")];
  const found = Array.from({ length: axis.n }, () => []);
  bins.forEach((bin, step) => {
    if (column.values) found[bin].push(step < column.values.length ? valueText(column, step) : step === column.values.length ? null : "missing");
    else if (step === ends.length) found[bin].push("missing");
    else found[bin].push(rangeText(column, step ? ends[step - 1] : -Infinity, ends[step]));
  });
  return found.map((texts) => {
    const known = texts.filter(Boolean);
    const others = column.values?.map((_, k) => valueText(column, k)).filter((text) => !known.includes(text));
    const isRest = texts.includes(null) && !texts.includes("missing") && others.length;
    if (isRest && others.length < known.length) return `not ${others.join(", ")}`;
    return known.slice(0, 6).join(", ") + (known.length > 6 ? ", …" : "") || "another value";
  });
}

function drawCells(model, term, { output }, width) {
  const part = partOf(term, output);
  const values = columnOf(part, "values", output);
  const [spread, counts] = [part.spread && columnOf(part, "spread", output), numbers(part, "counts")];
  const seen = numbers(term, "seen");
  const names = [binNames(model, term, 0), binNames(model, term, 1)];
  const columns = term.columns.map((place) => model.columns[place]);
  const [nX, nY] = [term.axes[0].n, term.axes[1].n];
  const [left, right, bottom] = [Math.min(120, width * 0.26), width - 12, HEIGHT + 40];
  const [w, h] = [(right - left) / nX, (bottom - 10) / nY];
  const most = Math.max(...values.map(Math.abs)) || 1;
  const spots = [];
  const cells = Array.from(values, (value, k) => {
    const [a, b] = [Math.floor(k / nY), k % nY];
    const x = left + a * w;
    const y = bottom - (b + 1) * h;
    spots.push({ step: k, x: x + w / 2, y: y + h / 2,
      text: `${names[0][a]} × ${names[1][b]}: ${plus(value)}${within(spread, k)}${sampled(counts, k)}${seen[k] ? "" : " · no sample in training"}` });
    return svg("rect", { class: `cell ${value < 0 ? "down" : "up"}`, x, y, width: Math.max(w - 0.6, 0.4), height: Math.max(h - 0.6, 0.4),
      "fill-opacity": 0.04 + 0.96 * Math.abs(value) / most, "data-seen": seen[k] });
  });
  const unseen = Array.from(seen, (own, k) => own ? "" : `M${left + Math.floor(k / nY) * w} ${bottom - (k % nY) * h}l${w} ${-h}`).join("");
  const brief = (text) => text.replace(/^(.* < )?x ≤ /, "≤ ").replace(/^x > /, "> ");
  const label = (text, n) => (text.length > n ? `${text.slice(0, n - 1)}…` : text);
  const each = (n, most_) => Array.from({ length: n }, (_, k) => k).filter((k) => k % Math.ceil(n / most_) === 0);
  const picture = svg("svg", { width, height: HEIGHT + 92 }, cells, svg("path", { class: "hatch", d: unseen }),
    each(nX, Math.max(2, (right - left) / 78)).map((a) => xTick(left + (a + 0.5) * w, bottom, label(brief(names[0][a]), 11))),
    each(nY, 14).map((b) => svg("text", { x: left - 8, y: bottom - (b + 0.5) * h + 4, "text-anchor": "end" }, label(brief(names[1][b]), Math.floor(left / 7.2)))),
    svg("text", { class: "axis", x: (left + right) / 2, y: HEIGHT + 84, "text-anchor": "middle" }, `${label(columns[0].name, Math.floor(width / 24))} →  ·  ↑ ${label(columns[1].name, Math.floor(width / 24))}`));
  const at = (px, py) => {
    const [a, b] = [Math.floor((px - left) / w), Math.floor((bottom - py) / h)];
    return a >= 0 && a < nX && b >= 0 && b < nY ? a * nY + b : -1;
  };
  return { picture, spots, at, legend: `−${short(most)} to +${short(most)}` };
}

function drawTerm(model, term, view, width) {
  if (!partOf(term, view.output)) return null;
  const draw = term.isPair ? drawCells : model.columns[term.columns[0]].values ? drawBars : drawSteps;
  return draw(model, term, view, width);
}

// A small picture of a term, without any text.
function sparkline(model, term, output, width = 88, height = 26) {
  const part = partOf(term, output) || term.parts[0];
  const values = Array.from(columnOf(part, "values", partOf(term, output) ? output : part.first));
  const y = scale(...heightsOf(values), height - 1, 1);
  let mark;
  if (term.isPair) {
    const most = Math.max(...values.map(Math.abs)) || 1;
    const [nX, nY] = [term.axes[0].n, term.axes[1].n];
    mark = values.map((value, k) => svg("rect", { class: value < 0 ? "down" : "up", x: Math.floor(k / nY) * width / nX, y: height - (k % nY + 1) * height / nY,
      width: width / nX, height: height / nY, "fill-opacity": Math.abs(value) / most }));
  } else if (model.columns[term.columns[0]].values) {
    const own = values.slice(0, -2);
    const step = width / own.length;
    mark = own.map((value, k) => svg("rect", { class: value < 0 ? "down" : "up", x: k * step + 0.5, width: Math.max(step - 1, 0.5),
      y: Math.min(y(0), y(value)), height: Math.abs(y(value) - y(0)) }));
  } else {
    const ends = numbers(part, "ends");
    const x = columnScale(model, term.columns[0], ends, isSkewed(model, term.columns[0]), 0, width);
    mark = svg("path", { class: "steps", d: stepPath([0, ...Array.from(ends.subarray(0, -1), x.to), width], values.slice(0, -1).map(y)) });
  }
  return svg("svg", { class: "spark", width, height, "aria-hidden": "true" }, svg("line", { class: "grid", x1: 0, x2: width, y1: y(0), y2: y(0) }), mark);
}
