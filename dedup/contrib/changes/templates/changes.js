const data = JSON.parse(document.getElementById("data").textContent);
const WORDS = {
  new: "pages that were not there",
  changed: "say something else",
  moved: "the same content elsewhere",
  hidden: "still served, linked from nowhere",
  gone: "not found any more",
  "not seen": "nothing is known of them",
};
const PAGE = 100;
const EDITS = 6;
const element = (id) => document.getElementById(id);
const state = { word: "", shown: PAGE };

function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function when(time) {
  return time ? time.slice(0, 16).replace("T", " ") + " UTC" : "";
}

// Only these are links: a page may have any address.
function link(url) {
  const known = /^https?:\/\//i.test(url);
  return known ? make("a", { className: "url", href: url, rel: "noreferrer noopener", textContent: url })
               : make("span", { className: "url", textContent: url });
}

function edit([old, now, before, after]) {
  const line = make("li", {}, make("span", { className: "around", textContent: `${before} ` }));
  if (old) line.append(make("del", { textContent: old }));
  if (old && now) line.append(make("span", { className: "arrow", textContent: "\u2192" }));
  if (now) line.append(make("ins", { textContent: now }));
  line.append(make("span", { className: "around", textContent: ` ${after}` }));
  return line;
}

function row([word, [url, from, redirected, edits]]) {
  const made = make("article", { className: "change" });
  made.append(make("div", { className: "head" }, make("span", { className: `badge is-${word.replace(" ", "-")}`, textContent: word }), link(url)));
  if (from) made.append(make("p", { className: "from" }, redirected ? "redirected from " : "was at ", link(from)));
  if (edits.length) {
    const list = make("ul", { className: "edits" }, ...edits.slice(0, EDITS).map(edit));
    if (edits.length > EDITS) {
      const button = make("button", { type: "button", textContent: `${edits.length - EDITS} more places` });
      button.addEventListener("click", () => list.replaceChildren(...edits.map(edit)));
      list.append(make("li", {}, button));
    }
    made.append(list);
  } else if (word === "changed") {
    made.append(make("p", { className: "from", textContent: "what it said before is not known any more" }));
  }
  return made;
}

function chosen() {
  const query = element("query").value.trim().toLowerCase();
  const has = (text) => text.toLowerCase().includes(query);
  return Object.keys(WORDS)
    .filter((word) => (state.word ? word === state.word : word !== "not seen"))
    .flatMap((word) => (data.lists[word] || []).map((each) => [word, each]))
    .filter(([, [url, from, , edits]]) => !query || has(url) || has(from) || edits.some(([old, now]) => has(old) || has(now)));
}

function draw() {
  const rows = chosen();
  element("list").replaceChildren(...rows.slice(0, state.shown).map(row));
  element("listed").textContent = rows.length
    ? `${rows.length.toLocaleString("en")} ${rows.length === 1 ? "page" : "pages"}${state.word ? ` ${state.word}` : ""}`
    : "Nothing to be shown";
  element("more").hidden = rows.length <= state.shown;
  for (const tile of element("summary").children) tile.setAttribute("aria-pressed", String(tile.dataset.word === state.word));
}

for (const [word, text] of Object.entries(WORDS)) {
  const count = data.counts[word] || 0;
  if (word === "not seen" && !count) continue;
  const tile = make("button", { type: "button", className: "tile", disabled: !count },
    make("b", { textContent: count.toLocaleString("en") }), make("strong", { textContent: word }), make("span", { textContent: text }));
  tile.dataset.word = word;
  tile.addEventListener("click", () => {
    Object.assign(state, { word: state.word === word ? "" : word, shown: PAGE });
    draw();
  });
  element("summary").append(tile);
}
element("origin").textContent = data.since
  ? `What the crawl of ${when(data.latest)} found, compared with that of ${when(data.since)}`
  : `What the crawl of ${when(data.latest)} found, ${data.first ? "the first" : "and all before it"}`;
element("guard").textContent = data.whole ? "" :
  "The last crawl was stopped, or met a wall, so pages that it has not met are not called hidden or gone.";
element("query").addEventListener("input", () => { state.shown = PAGE; draw(); });
element("more").addEventListener("click", () => { state.shown += PAGE; draw(); });
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
draw();
