// Makes elements, texts of numbers, and charts in SVG.  Everything that comes from a log is inserted as text.

const SVG = "http://www.w3.org/2000/svg";
// The size of a chart in its own units: half the page's width, all of it, and the margins around the columns.
const HALF = 560, FULL = 1136, HEIGHT = 190, LEFT = 46, RIGHT = 8, TOP = 22, BOTTOM = 26;

/** Makes an element with attributes (on...: a listener; false and null are left out) and children (text or elements). */
function element(name, attributes = {}, ...children) {
  return furnish(document.createElement(name), attributes, children);
}

function drawn(name, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, name), attributes, children);
}

function furnish(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

const byId = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en");
const number = (value) => whole.format(value);
const many = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
const percent = (part, all) => (all ? `${((100 * part) / all).toFixed(1)} %` : "0 %");
const share = (hundredths) => (hundredths / 100).toFixed(2);

function bytes(count) {
  const units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
  let at = 0;
  for (; count >= 1000 && at < units.length - 1; at++) count /= 1000;
  return `${at ? count.toFixed(1) : count} ${units[at]}`;
}

/** A time in seconds since 1970, as text in UTC: the characters from ... to of a text like 2026-11-21 04:36:56.047. */
const clock = (seconds, from = 0, to = 19) =>
  new Date(seconds * 1000).toISOString().replace("T", " ").slice(from, to);

/** A text in which characters are escaped that don't show or that change the direction of others. */
const visible = (text) =>
  text.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

/** A URL, as a link if it can only lead to a page. */
function link(url) {
  if (!/^https?:\/\//i.test(url)) return element("bdi", { class: "url" }, visible(url));
  const options = { class: "url", href: url, rel: "noreferrer noopener", target: "_blank" };
  return element("a", options, element("bdi", {}, visible(url)));
}

/** A cell of a table.  Numbers, and texts given as a figure, stand to the right. */
function cell(value) {
  if (typeof value === "number") return figure(number(value));
  return value instanceof HTMLTableCellElement ? value : element("td", {}, value);
}
const figure = (text) => element("td", { class: "number" }, text);

/** A table of rows, whose cells are numbers, texts, elements, or cells made already. */
function table(caption, heading, rows) {
  const cells = rows.map((row) => row.map(cell));
  const names = heading.map((name, at) =>
    element("th", { scope: "col", class: cells[0]?.[at].getAttribute("class") ?? null }, name));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element("table", {},
      element("caption", { class: "hidden" }, caption),
      element("thead", {}, element("tr", {}, ...names)),
      element("tbody", {}, ...cells.map((row) => element("tr", {}, ...row)))));
}

/** A table that is made when it is opened, and made anew by redraw() while it is open. */
function foldedTable(caption, heading, rows) {
  const folded = element("details", { class: "as-table" }, element("summary", {}, "As a table"));
  folded.redraw = () => {
    folded.querySelector(".scroll")?.remove();
    if (folded.open) folded.append(table(caption, heading, rows()));
  };
  folded.addEventListener("toggle", folded.redraw);
  return folded;
}

/** A round step of which at most five make up the largest value. */
function roundStep(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most / 4)));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => most / step <= 5);
}

/**
 * A chart of columns over labels.  Each column has one or two parts, of which the first is at the bottom.
 * parts: [{class, values}]; labels: a text or "" for each column; marks: [{at, text, after}], lines beside a column.
 */
function columns({ title, description, parts, labels, marks = [], wide = HALF }) {
  const count = labels.length;
  const sums = labels.map((_, at) => parts.reduce((sum, part) => sum + part.values[at], 0));
  const most = Math.max(1, ...sums);
  const across = (wide - LEFT - RIGHT) / count, gap = across > 4 ? Math.min(4, across / 5) : 0;
  const x = (at) => LEFT + at * across, base = HEIGHT - BOTTOM;
  const y = (value) => base - (value / most) * (base - TOP);
  const id = `chart-${(columns.made = (columns.made ?? 0) + 1)}`;
  const chart = drawn("svg", { viewBox: `0 0 ${wide} ${HEIGHT}`, role: "img",
    "aria-labelledby": `${id}-title`, "aria-describedby": `${id}-desc` },
    drawn("title", { id: `${id}-title` }, title), drawn("desc", { id: `${id}-desc` }, description));
  for (let value = 0; value <= most; value += roundStep(most)) {
    chart.append(
      drawn("line", { class: value ? "grid" : "axis", x1: LEFT, x2: wide - RIGHT, y1: y(value), y2: y(value) }),
      drawn("text", { class: "tick", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, number(value)));
  }
  labels.forEach((label, at) => {
    let bottom = 0;
    for (const part of parts) {
      const value = part.values[at];
      if (value) {
        // At least a pixel, so that one page in a thousand is seen.
        const height = Math.max(1, y(bottom) - y(bottom + value));
        chart.append(drawn("rect", { class: part.class, x: x(at) + gap / 2, width: across - gap,
          y: Math.min(y(bottom), base) - height, height }));
      }
      bottom += value;
    }
    if (label) {
      chart.append(drawn("text", { class: "tick", x: x(at) + across / 2, y: base + 16, "text-anchor": "middle" },
        label));
    }
  });
  for (const { at, text, after } of marks) {
    const place = x(at + (after ? 1 : 0)), right = place > wide / 2;
    chart.append(
      drawn("line", { class: "mark", x1: place, x2: place, y1: TOP - 14, y2: base }),
      drawn("text", { class: "mark-text", x: place + (right ? -5 : 5), y: TOP - 6,
        "text-anchor": right ? "end" : "start" }, text));
  }
  return chart;
}

/** Places a slider under the columns, so that its thumb is below the column of its value. */
function alignSlider(slider, count) {
  const half = (HALF - LEFT - RIGHT) / count / 2;
  slider.style.marginLeft = `calc(${((LEFT + half) / HALF) * 100}% - 9px)`;
  slider.style.width = `calc(${((HALF - LEFT - RIGHT - 2 * half) / HALF) * 100}% + 18px)`;
}
