// Numbers, dates and names as text, text as numbers, and the ticks of an axis.

const MINUS = "\u2212";
const signed = (text) => text.replace("-", MINUS);

// A number with four digits, those before the point in full.
function short(value) {
  if (!Number.isFinite(value)) return value !== value ? "missing" : signed(value > 0 ? "∞" : "-∞");
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-4)) return signed(value.toExponential(2).replace("e+", "e"));
  return signed(String(size >= 1000 ? Math.round(value * 10) / 10 : Number(value.toPrecision(4))));
}

const plus = (value) => (value > 0 ? "+" : "") + short(value);

// What a term adds: with three decimals, so that columns of such numbers can be compared.
const amountText = (value) => (Math.abs(value) >= 1000 || (value && Math.abs(value) < 0.0005) ? plus(value) : signed(`${value > 0 ? "+" : ""}${value.toFixed(value ? 3 : 0)}`));
// One decimal place near both ends, where it matters; 100 % and 0 % only where that is exact.
const percent = (share) => {
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  if (share < 1 && share >= 0.9995) return "> 99.9 %";
  return `${(100 * share).toFixed(share % 1 && (share < 0.1 || share > 0.9) ? 1 : 0)} %`;
};
const counted = (number, thing) => `${number.toLocaleString("en").replaceAll(",", "\u202f")} ${thing}${number === 1 ? "" : "s"}`;

const DAY = 86400;
const SECONDS = { date: DAY, datetime: 1, time: 1 };
const INPUTS = { date: "date", datetime: "datetime-local", time: "time" };

// A date or a time as text, as inputs of HTML have it; null if there is none with this number.
function timeText(value, kind) {
  const moment = new Date((kind === "date" ? Math.floor(value) : value) * SECONDS[kind] * 1000);
  if (Number.isNaN(moment.getTime())) return null;
  const text = moment.toISOString();
  if (text.length !== 24) return null; // a year that is not one of four digits
  if (kind === "date") return text.slice(0, 10);
  const seconds = text.slice(text.length - 13, value % 1 ? -1 : -5);
  return kind === "time" ? seconds : `${text.slice(0, 10)}T${seconds}`;
}

// A column's value as people read it.
function valueText(column, value) {
  if (value !== value) return "missing";
  if (column.values) return value < 0 ? "another value" : column.values[value] || "(empty)";
  if (column.kind === "boolean" && (value === 0 || value === 1)) return value ? "true" : "false";
  if (column.kind === "duration") return `${short(value)} s`;
  const time = SECONDS[column.kind] && Number.isFinite(value) && timeText(value, column.kind);
  return time ? time.replace("T", " ").replace(" 00:00:00", "") : short(value);
}

// A column's value from the text of an input, all digits kept; NaN if it is empty or says nothing.
function valueOf(column, text) {
  if (text === "") return NaN;
  let value = Number(text);
  if (SECONDS[column.kind]) {
    const seconds = Date.parse(`${column.kind === "time" ? "1970-01-01T" : ""}${text}Z`.replace(/^(.{10})Z$/, "$1")) / 1000;
    value = seconds / SECONDS[column.kind];
  }
  return column.gone.includes(value) ? NaN : value;
}

// The values of a step: above one end, up to another, which may be infinite.
function rangeText(column, above, upto) {
  if (column.kind === "boolean" && (above === -Infinity) !== (upto === Infinity)) return above === -Infinity ? "false" : "true";
  const [from, to] = [above, upto].map((end) => Number.isFinite(end) && valueText(column, end));
  if (from && to) return `${from} < x ≤ ${to}`;
  return from ? `x > ${from}` : to ? `x ≤ ${to}` : "any value";
}

// What an input of HTML holds for a column's value.
function inputText(column, value) {
  if (value !== value) return "";
  return (SECONDS[column.kind] && timeText(value, column.kind)) || String(value);
}

const STEPS = { // steps between ticks of times, in seconds
  seconds: [1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600],
  days: [1, 2, 7, 14, 30.4375, 91.3125, 182.625, 365.25].map((days) => days * DAY),
};

// About n round numbers between two ends, and their texts.
function ticks(low, high, n, column) {
  const seconds = SECONDS[column?.kind];
  const range = (high - low) * (seconds || 1);
  let step = 10 ** Math.floor(Math.log10(range / n));
  step *= [1, 2, 2.5, 5, 10].find((factor) => step * factor * n >= range * 0.999) || 10;
  if (seconds && range > 2 * 365.25 * DAY) step = Math.max(1, Math.round(step / 365.25 / DAY)) * 365.25 * DAY;
  else if (seconds) step = [...STEPS.seconds, ...STEPS.days].find((own) => own * n >= range) || step;
  step /= seconds || 1;
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high && found.length < 50; k++) {
    let value = Number((k * step).toPrecision(12));
    if (seconds && step * seconds > 27 * DAY) value = firstOfMonth(value * seconds) / seconds;
    if (value >= low) found.push(value);
  }
  return found.map((value) => [value, valueText(column || { kind: "number" }, value)]);
}

// The first day of the month that is nearest, in seconds.
function firstOfMonth(seconds) {
  const moment = new Date((seconds + 15 * DAY) * 1000);
  return Date.UTC(moment.getUTCFullYear(), moment.getUTCMonth(), 1) / 1000;
}

// The smallest number above a value.
function nextUp(value) {
  if (value === 0) return 5e-324;
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  view.setBigInt64(0, view.getBigInt64(0) + (value > 0 ? 1n : -1n));
  return view.getFloat64(0);
}
