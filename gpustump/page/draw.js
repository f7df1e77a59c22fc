// Elements of HTML and SVG, and the charts that are made of them. All text is put in as text.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, own] of Object.entries(value)) element.style.setProperty(key, own);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// A name of the model: it may hold anything, so it is kept apart from the text around it.
const named = (text, attributes = {}) => html("bdi", { class: "name", title: text.slice(0, 300), ...attributes }, text.slice(0, 300) || "(no name)");

const scale = (low, high, from, to) => {
  const slope = (to - from) / (high - low || 1);
  return (value) => from + (value - low) * slope;
};

// Draw at the width that there is, now and whenever it changes.
function drawn(box, draw) {
  let width = 0;
  const observer = new ResizeObserver(() => {
    if (box.clientWidth && Math.abs(box.clientWidth - width) > 1) {
      width = box.clientWidth;
      draw(width);
    }
  });
  observer.observe(box);
  return () => box.clientWidth && draw((width = box.clientWidth));
}

function yAxis(y, low, high, left, right) {
  return ticks(low, high, 5).map(([value, text]) =>
    svg("g", {},
      svg("line", { class: value === 0 ? "zero" : "grid", x1: left, x2: right, y1: y(value), y2: y(value) }),
      svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, text)));
}

function xTick(x, y, text) {
  return svg("g", {}, svg("line", { class: "tick", x1: x, x2: x, y1: y, y2: y + 4 }),
    svg("text", { x, y: y + 17, "text-anchor": "middle" }, text));
}

// Ticks of an x axis without those whose texts would touch.
function xAxis(marks, x, y, right) {
  let end = -Infinity;
  return marks.map(([value, text]) => {
    const at = x(value);
    const half = text.length * 3.4 + 4;
    if (at - half < end || at + half > right + 24) return null;
    end = at + half;
    return xTick(at, y, text);
  });
}

// A chart of points or lines in a square-ish frame: for calibration and residuals.
function frame({ width, height, xs, ys, xName, yName, label }, ...marks) {
  const [left, right, top, bottom] = [58, width - 14, 12, height - 42];
  const x = scale(...xs, left, right);
  const y = scale(...ys, bottom, top);
  return svg("svg", { width, height, role: "img", "aria-label": label },
    yAxis(y, ...ys, left, right), xAxis(ticks(...xs, Math.max(3, width / 90)), x, bottom, right),
    svg("text", { class: "axis", x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, xName),
    svg("text", { class: "axis", transform: `translate(13 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, yName),
    marks.map((mark) => mark(x, y)));
}

// The path of a step function: corners at each end, heights from the first step on.
function stepPath(corners, heights) {
  return heights.map((height, k) => `${k ? "V" : `M${corners[0]} `}${height}H${corners[k + 1]}`).join("");
}
