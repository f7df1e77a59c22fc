// The model: its tables, the score of a row, and what edits do to it. Nothing here touches the page.
//
// A row is a Float64Array with a number for each column: of text the number of its category, -1 for
// any other text; NaN is missing. payload.py says how the data are laid out.

const KINDS = { u1: Uint8Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };

// An array of an object, unpacked from base64 when it is first needed.
function numbers(owner, key) {
  const held = owner[key];
  if (!held || ArrayBuffer.isView(held)) return held;
  const [kind, text] = Object.entries(held)[0];
  const content = atob(text);
  const bytes = new Uint8Array(content.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = content.charCodeAt(i);
  return (owner[key] = new KINDS[kind](bytes.buffer));
}

// The first of increasing numbers that is not below a value.
function placeAmong(ends, value) {
  let low = 0;
  let high = ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] >= value) high = middle;
    else low = middle + 1;
  }
  return low;
}

class Model {
  constructor(data) {
    Object.assign(this, data);
    this.nOutputs = this.constant.length;
    this.isBinary = this.classes.length === 2;
    this.isQuantity = this.classes.length === 0;
    this.edits = [];
    this.using = this.columns.map(() => []); // the terms that use each column
    this.terms.forEach((term, number) => {
      Object.assign(term, { number, isPair: term.columns.length === 2, trained: term.parts });
      for (const column of new Set(term.columns)) this.using[column].push(term);
    });
    if (this.rows) this.rows.n = numbers(this.rows, "numbers").length;
  }

  // The step of a value of a column; the last one is for missing values.
  stepOf(column, ends, value) {
    const { values } = this.columns[column];
    if (!values) return value !== value ? ends.length : placeAmong(ends, value);
    return value !== value ? values.length + 1 : value < 0 ? values.length : value;
  }

  // The bin of a value of a pair's first (0) or second (1) column.
  binOf(term, side, value) {
    const axis = term.axes[side];
    return numbers(axis, "bins")[this.stepOf(term.columns[side], numbers(axis, "ends"), value)];
  }

  // The place of a row among the steps of a term's part, or among the cells of a pair.
  placeOf(term, part, row) {
    const [first, second] = term.columns;
    if (!term.isPair) return this.stepOf(first, numbers(part, "ends"), row[first]);
    return this.binOf(term, 0, row[first]) * term.axes[1].n + this.binOf(term, 1, row[second]);
  }

  // Add what a term adds to the scores of a row; a sign of -1 takes it away.
  add(term, row, scores, sign = 1) {
    for (const part of term.parts) {
      const values = numbers(part, "values");
      const at = this.placeOf(term, part, row) * part.width;
      for (let k = 0; k < part.width; k++) scores[part.first + k] += sign * values[at + k];
    }
    return scores;
  }

  // What a term adds to one score of a row.
  contribution(term, row, output) {
    return this.add(term, row, new Float64Array(this.nOutputs))[output];
  }

  // The scores of a row: those of `StumpEnsemble.decision_function`, to the last bit.
  scores(row) {
    const found = Float64Array.from(this.constant);
    for (const term of this.terms) this.add(term, row, found);
    return found;
  }

  // The number of the predicted class: of equal scores the first.
  decided(scores) {
    if (this.isBinary) return scores[0] > 0 ? 1 : 0;
    let best = 0;
    for (let k = 1; k < scores.length; k++) if (scores[k] > scores[best]) best = k;
    return best;
  }

  quantity(scores) {
    return this.link === "log" ? Math.exp(scores[0]) : scores[0];
  }

  // Logarithms of the probabilities; the formulas are those of `StumpEnsemble.probabilities_of`.
  logProbabilities(scores) {
    const logistic = (f) => 2 * Math.min(f, 0) - Math.log1p(Math.exp(-2 * Math.abs(f)));
    if (this.isBinary) return [logistic(-scores[0]), logistic(scores[0])];
    const logs = Array.from(scores, (f) => (this.link === "softmax" ? 2 * f : logistic(f)));
    const most = Math.max(...logs);
    const rest = Math.log(logs.reduce((sum, own) => sum + Math.exp(own - most), 0));
    return logs.map((own) => own - most - rest);
  }

  row(number) {
    return Float64Array.from(this.columns, (_, k) => numbers(this.rows.columns, k)[number]);
  }

  // What is known of a row of the page beforehand, for each output.
  knownOf(number) {
    const known = this.rows && numbers(this.rows, "known");
    return Float64Array.from(this.constant, (_, k) => (known ? known[number * this.nOutputs + k] : 0));
  }

  // The scores of all rows of the page, with the edits and what is known beforehand: changes of the
  // edited terms are exact, too.
  rowScores() {
    const known = numbers(this.rows, "known");
    const found = Float64Array.from(numbers(this.rows, "scores"), (own, k) => own + (known ? known[k] : 0));
    const edited = this.terms.filter((term) => term.parts !== term.trained);
    for (let number = 0; edited.length && number < this.rows.n; number++) {
      const row = this.row(number);
      const own = found.subarray(number * this.nOutputs, (number + 1) * this.nOutputs);
      for (const term of edited) {
        this.add(term, row, own);
        this.add({ ...term, parts: term.trained }, row, own, -1);
      }
    }
    return found;
  }

  // How good the scores of the page's rows are; null without targets.
  measures(scores) {
    const target = this.rows && numbers(this.rows, "target");
    if (!target || !target.length) return null;
    const n = target.length;
    const each = (number) => scores.subarray(number * this.nOutputs, (number + 1) * this.nOutputs);
    if (this.isQuantity) {
      const isLog = this.link === "log";
      const total = (values) => values.reduce((sum, own) => sum + own, 0);
      const known = Array.from(target, (_, number) => this.quantity(this.knownOf(number)));
      const mean = isLog ? total(target) / total(known) : (total(target) - total(known)) / n;
      const errors = { squares: 0, sizes: 0, squaresOfMean: 0, sizesOfMean: 0 };
      target.forEach((own, number) => {
        const error = own - this.quantity(each(number));
        errors.squares += error * error / n;
        errors.sizes += Math.abs(error) / n;
        const base = own - (isLog ? mean * known[number] : mean + known[number]);
        errors.squaresOfMean += base * base / n;
        errors.sizesOfMean += Math.abs(base) / n;
      });
      const of = this.rows.known ? "their mean, and what is known beforehand" : "their mean alone";
      return [
        { name: "RMSE", value: Math.sqrt(errors.squares), base: Math.sqrt(errors.squaresOfMean), of },
        { name: "MAE", value: errors.sizes, base: errors.sizesOfMean, of },
      ];
    }
    const shares = new Float64Array(this.classes.length);
    let right = 0;
    let loss = 0;
    target.forEach((own, number) => {
      shares[own] += 1 / n;
      right += this.decided(each(number)) === own;
      loss -= this.logProbabilities(each(number))[own] / n;
    });
    const entropy = shares.reduce((sum, share) => sum - (share ? share * Math.log(share) : 0), 0);
    return [
      { name: "accuracy", value: right / n, base: Math.max(...shares), of: "the largest class", rises: true },
      { name: "log-loss", value: loss, base: entropy, of: "the classes’ shares" },
    ];
  }

  // Edits: { term, edit: "without" } and { term, edit: "flatten", above, upto, like }, in order.

  setEdits(edits) {
    this.edits = edits;
    for (const term of this.terms) {
      term.parts = term.trained;
      const own = edits.filter((edit) => edit.term === term.number);
      if (own.length) term.parts = term.trained.map((part) => own.reduce(editedPart, part));
    }
  }

  // The edits as the file that `StumpEnsemble.edited` takes. Of a text column each feature is a term.
  editsFile() {
    const edits = this.edits.flatMap(({ term, ...edit }) => {
      const { columns, features, isPair, name } = this.terms[term];
      const terms = isPair ? [features] : this.columns[columns[0]].features.map((own) => [own]);
      return terms.map((own) => ({ term: own, name, ...edit }));
    });
    const asText = (_, value) => (value === Infinity ? "inf" : value === -Infinity ? "-inf" : value);
    return JSON.stringify({ format: "gpustump edits", model: this.digest, edits }, asText, 1);
  }
}

// A part without its votes; or with one value for all of above < x <= upto, that of `like`.
function editedPart(part, edit) {
  const values = numbers(part, "values");
  if (edit.edit === "without") return { ...part, values: new Float64Array(values.length), spread: null };
  const own = withEnd(withEnd(part, edit.above), edit.upto);
  const found = own.values.slice();
  const spread = own.spread && own.spread.slice();
  const like = placeAmong(own.ends, edit.like);
  own.ends.forEach((end, step) => {
    if ((end <= edit.above && edit.above !== -Infinity) || end > edit.upto) return;
    for (let k = 0; k < part.width; k++) {
      found[step * part.width + k] = own.values[like * part.width + k];
      if (spread) spread[step * part.width + k] = own.spread[like * part.width + k];
    }
  });
  return { ...own, values: found, spread };
}

// The same step function with one more end, which cuts a step in two.
function withEnd(part, end) {
  const [ends, values, spread] = ["ends", "values", "spread"].map((key) => numbers(part, key));
  const at = placeAmong(ends, end);
  if (end === -Infinity || ends[at] === end) return { ...part, ends, values, spread };
  const twice = (array, width) => {
    if (!array) return array;
    const found = new array.constructor(array.length + width);
    found.set(array.subarray(0, (at + 1) * width));
    found.set(array.subarray(at * width), (at + 1) * width);
    return found;
  };
  const cut = twice(ends, 1);
  cut[at] = end;
  return {
    ...part, ends: cut, values: twice(values, part.width), spread: twice(spread, part.width), counts: null,
  };
}
