// The report: its sums, sliders and lists.

const data = JSON.parse(byId("data").textContent);
const totals = data.totals;
const pairs = data.pairs.map((values) => Object.fromEntries(data.pair_fields.map((name, at) => [name, values[at]])));
// What both pages have in common: the share of each own part that the other contains, or the whole pages' resemblance; and
// in whole hundredths, rounded down, as it is in the grid.  Some rules don't depend on every threshold: those of which
// FREE has a word depend on none.
const FREE = { exact: "equal", probe: "noise", no_vary_search: "by its site", soft_404: "soft 404" };
for (const pair of pairs) {
  pair.share = [pair.matching, pair.new, pair.gone].includes(null) ? pair.resemblance
    : pair.matching / Math.max(1, pair.matching + Math.max(pair.new, pair.gone));
  pair.hundredths = Math.floor(Math.round(pair.share * 10000) / 100);
  pair.free = pair.rule in FREE ? 2 : pair.rule === "rare" ? 1 : 0;
  pair.shared = pair.free > 1 ? FREE[pair.rule] : pair.share.toFixed(2);
}
const used = data.thresholds[0] ?? null;  // those of a crawl: an archive has none
const byOwn = used ? used.min_containment !== null : pairs.some((pair) => pair.gone !== null);
const measure = byOwn ? "containment" : "resemblance";
const bound = used && (byOwn ? used.min_containment : used.min_resemblance);
const verb = totals.marked === totals.drops ? "marked" : "dropped";

// How many rows of each list are shown at first, and how many more at a time.
const CLUSTERS = 30, PAIRS = 50;

// --- Summary --------------------------------------------------------------------------------------------

function tile(figure, name, detail = "") {
  return element("div", { class: "tile" }, element("dt", {}, name), element("dd", {}, element("b", {}, figure),
    detail ? element("span", {}, detail) : null));
}

function summarise() {
  const names = data.logs.length === 1 ? data.logs[0] : `${number(data.logs.length)} logs`;
  const span = totals.drops ? ` \u00b7 ${totals.first.slice(0, 19).replace("T", " ")} to ${totals.last.slice(0, 19).replace("T", " ")} UTC` : "";
  byId("origin").append(element("bdi", {}, visible(names)), span);
  document.title = `${visible(names)}: near-duplicates`;
  byId("made").textContent = `${data.made.slice(0, 19).replace("T", " ")} UTC`;
  const judged = data.timeline.judged, told = totals.agrees + totals.differs;
  const actions = [
    [totals.dropped, used ? "neither parsed nor followed" : "dropped"], [totals.not_followed, "parsed, not followed"],
    [totals.marked, "only marked"],
  ].filter(([count]) => count).map(([count, what]) => (count === totals.drops ? what : `${number(count)} ${what}`));
  const missed = data.missed;
  const behind = !missed?.sampled ? "linked from near-duplicates; contents not known"
    : `${number(missed.new)} of ${number(missed.sampled)} sampled are new: ${number(missed.low)} to ${number(missed.high)} of all`;
  byId("summary").append(
    tile(number(totals.drops), "near-duplicates", actions.join(", ")),
    judged === null ? "" : tile(percent(totals.drops, judged), "of the pages judged", `${many(judged, "page")} judged`),
    tile(number(totals.clusters), "kept pages matched", `near-duplicates on ${many(totals.hosts, "host")}`),
    tile(number(totals.links), used ? "links not followed" : "links on them", totals.marked_links ? `${number(totals.marked_links)} on marked pages were` : "one on two pages counts twice"),
    missed ? tile(number(missed.urls), "URLs never asked for", behind) : "",
    told ? tile(percent(totals.agrees, told), "confirmed by the sites", `${number(totals.agrees)} of ${number(told)} name the kept page's URL as canonical, not their own`) : "",
    totals.bytes === null ? "" : tile(bytes(totals.bytes), used ? "downloaded anyway" : "read anyway", "a page is judged by its content"),
  );
  const notes = [];
  if (data.chosen) notes.push(`Of ${many(data.read, "record")}, only those with ${data.chosen} are shown.`);
  if (!used) notes.push("The thresholds are not known: no file beside the log tells the course of a crawl, as of an archive there is none.");
  if (data.thresholds.length > 1) notes.push("The runs in these logs had different thresholds; those of the last run are drawn.");
  if (data.renewed) notes.push(`The crawl goes on: this page is renewed every ${number(Math.ceil(data.renewed))} seconds, unless you have chosen or opened something.`);
  byId("notes").textContent = visible(notes.join(" "));
}

// --- Sliders and histograms -----------------------------------------------------------------------------

// The slider and the chart of a threshold are about the drops that depend on it.
const byDistance = data.grid.filter((cell) => cell[4] < 1), byShare = data.grid.filter((cell) => cell[4] < 2);
const farthest = Math.max(used?.max_distance ?? 0, ...byDistance.map(([distance]) => distance));
const least = Math.min(100, used ? Math.ceil(bound * 100) : 100, ...byShare.map(([, hundredths]) => hundredths));
const state = { k: farthest, r: least, query: "", which: "dropped", order: "size", shown: CLUSTERS, open: new Map() };
const passes = (distance, hundredths, free) => (free > 0 || distance <= state.k) && (free > 1 || hundredths >= state.r);

/** The number of drops in each column: those that pass, and those that don't. */
function histogram(cells, length, column) {
  const inside = Array(length).fill(0), outside = Array(length).fill(0);
  for (const cell of cells) (passes(cell[0], cell[1], cell[4]) ? inside : outside)[column(cell)] += cell[2];
  return [inside, outside];
}

const charts = {
  distance: {
    cells: byDistance, count: farthest + 1, label: (at) => (farthest < 20 || at % 4 === 0 ? String(at) : ""), name: (at) => number(at),
    column: ([distance]) => distance, heading: "Distance in bits",
    mark: used?.method === "simhash" ? { at: used.max_distance, text: `k = ${used.max_distance}`, after: true } : null,
  },
  resemblance: {
    cells: byShare, by: measure, count: 101 - least, label: (at) => ((at + least) % (least < 50 ? 10 : 5) ? "" : share(at + least)),
    name: (at) => share(at + least), column: ([, hundredths]) => hundredths - least, heading: byOwn ? "Containment from" : "Resemblance from",
    mark: used ? { at: Math.ceil(bound * 100) - least, text: `at least ${bound}` } : null,
  },
};

function drawHistogram(name) {
  const chart = charts[name];
  const [inside, outside] = histogram(chart.cells, chart.count, chart.column);
  const would = `would be ${verb}`;
  byId(`${name}-chart`).replaceChildren(columns({
    title: `Near-duplicates by ${chart.by ?? name}`,
    description: `${number(inside.reduce((a, b) => a + b, 0))} ${would} by the sliders. The table below has the figures.`,
    parts: [{ class: "near", values: inside }, { class: "other", values: outside }],
    labels: inside.map((_, at) => chart.label(at)), marks: chart.mark ? [chart.mark] : [],
  }));
  chart.table ??= byId(`${name}-table`).appendChild(foldedTable(`Near-duplicates by ${chart.by ?? name}`,
    [chart.heading, would, "would be kept"],
    () => chart.now[0].map((count, at) => [chart.name(at), count, chart.now[1][at]]).filter((row) => row[1] + row[2])));
  chart.now = [inside, outside];
  chart.table.redraw();
}

function sliderMoved() {
  state.k = Number(byId("distance").value);
  state.r = Number(byId("resemblance").value);
  state.shown = CLUSTERS;
  draw();
}

function drawThresholds() {
  const sums = { drops: 0, links: 0 };
  for (const [distance, hundredths, drops, links, free] of data.grid) {
    if (passes(distance, hundredths, free)) { sums.drops += drops; sums.links += links; }
  }
  byId("distance-value").textContent = many(state.k, "bit");
  byId("resemblance-value").textContent = share(state.r);
  byId("distance").setAttribute("aria-valuetext", many(state.k, "bit"));
  byId("resemblance").setAttribute("aria-valuetext", share(state.r));
  byId("result").replaceChildren(element("b", {}, number(sums.drops)), ` of ${number(totals.drops)} would have been ${verb}, `,
    element("b", {}, number(totals.drops - sums.drops)), ` kept; the pages ${verb} have ${many(sums.links, "link")}`);
  // This is spoken when the slider rests, not at each of its steps.
  clearTimeout(drawThresholds.timer);
  drawThresholds.timer = setTimeout(() => { byId("spoken").textContent = byId("result").textContent; }, 400);
  drawHistogram("distance");
  drawHistogram("resemblance");
}

// --- Clusters -------------------------------------------------------------------------------------------

const clusters = new Map(data.clusters.map(([of, drops, links, hosts]) => [of, { of, drops, links, hosts, pairs: [] }]));
for (const pair of pairs) clusters.get(pair.duplicate_of).pairs.push(pair);

/** The clusters that have pairs to be listed, and these pairs. */
function chosen() {
  const query = state.query.toLowerCase();
  const wanted = (pair) => {
    if (state.which !== "all" && passes(pair.distance, pair.hundredths, pair.free) !== (state.which === "dropped")) return false;
    return !query || [pair.url, pair.duplicate_of].some((at) => data.urls[at].toLowerCase().includes(query));
  };
  const found = [];
  for (const cluster of clusters.values()) {
    const some = cluster.pairs.filter(wanted);
    if (some.length) found.push({ cluster, some, least: Math.min(...some.map((pair) => pair.share)) });
  }
  if (state.order === "doubt") found.sort((a, b) => a.least - b.least);
  else found.sort((a, b) => b.some.length - a.some.length || b.cluster.drops - a.cluster.drops);
  return found;
}

function pairTable(of, some, limit) {
  const rows = some.slice(0, limit).map((pair) => [link(data.urls[pair.url]), pair.distance,
    figure(pair.shared), pair.tokens, pair.links,
    element("button", { type: "button", "aria-label": `Compare ${visible(data.urls[pair.url])}`, onclick: () => compare(pair, data) },
      pair.words === null ? "Details" : "Compare")]);
  return table(`Near-duplicates of ${visible(data.urls[of])}`, ["Near-duplicate", "Distance", byOwn ? "Containment" : "Resemblance", "Words", "Links", "Both pages"], rows);
}

function fold({ cluster, some }) {
  const { of, drops, links, hosts } = cluster;
  const most = some.reduce((far, pair) => Math.max(far, pair.distance), 0);
  const bounded = some.filter((pair) => pair.free < 2).map((pair) => pair.share);
  const shared = bounded.length ? `${measure} from ${Math.min(...bounded).toFixed(2)}` : [...new Set(some.map((pair) => pair.shared))].join(", ");
  const folded = element("details", { class: "cluster", open: state.open.has(of) },
    element("summary", {}, element("b", { class: "count" }, number(some.length)), element("bdi", { class: "url" }, visible(data.urls[of])),
      element("span", { class: "range" }, `${most ? "up to " : ""}${many(most, "bit")}, ${shared}`)));
  const fill = () => {
    folded.querySelector(".within")?.remove();
    if (!folded.open) return;
    const limit = state.open.get(of), within = element("div", { class: "within" });
    const listed = some.length < drops ? `; ${number(some.length)} of them listed` : "";
    within.append(element("p", {}, "Kept: ", link(data.urls[of]), ` \u00b7 ${many(drops, "near-duplicate")} on ${many(hosts, "host")}, with ${many(links, "link")}${listed}`),
      pairTable(of, some, limit));
    if (some.length > limit) {
      within.append(element("button", { type: "button", onclick: () => {
        state.open.set(of, limit + PAIRS);
        fill();
        folded.querySelectorAll("tbody button")[limit].focus();
      } },
        `${number(Math.min(PAIRS, some.length - limit))} more of ${number(some.length)}`));
    }
    folded.append(within);
  };
  folded.addEventListener("toggle", () => {
    if (folded.open === state.open.has(of) && folded.querySelector(".within")) return;
    if (folded.open) state.open.set(of, state.open.get(of) ?? PAIRS);
    else state.open.delete(of);
    fill();
  });
  fill();
  return folded;
}

function drawClusters() {
  const found = chosen();
  const count = found.reduce((sum, { some }) => sum + some.length, 0);
  byId("listed").textContent = `${many(count, "near-duplicate")} of ${many(found.length, "kept page")}`;
  byId("list").replaceChildren(...found.slice(0, state.shown).map(fold));
  const more = byId("more"), left = found.length - state.shown;
  more.hidden = left <= 0;
  more.textContent = `${number(Math.min(CLUSTERS, left))} more of ${number(found.length)} kept pages`;
}

// --- Together -------------------------------------------------------------------------------------------

/** Draws what depends on the sliders and the form, once per frame. */
function draw() {
  cancelAnimationFrame(draw.frame);
  draw.frame = requestAnimationFrame(() => { drawThresholds(); drawClusters(); });
}

function start() {
  for (const shown of document.querySelectorAll("main, footer")) shown.hidden = false;
  summarise();
  if (!totals.drops) {
    for (const section of document.querySelectorAll(".drops")) section.hidden = true;
    byId("course").hidden = !data.timeline.kept;
    byId("summary").replaceWith(element("p", { class: "result" }, nothing()));
    byId("notes").hidden = !data.renewed;
  }
  const limits = { distance: [0, farthest, farthest], resemblance: [least, 100, least] };
  for (const [name, [min, max, value]] of Object.entries(limits)) {
    const slider = byId(name);
    Object.assign(slider, { min, max, value, disabled: min === max });
    alignSlider(slider, charts[name].count);
    slider.addEventListener("input", sliderMoved);
  }
  byId("reset").addEventListener("click", () => {
    for (const [name, [, , value]] of Object.entries(limits)) byId(name).value = value;
    sliderMoved();
  });
  if (byOwn) {
    byId("resemblance-heading").textContent = "How much of each page's own part is on the other";
    byId("measure").textContent = "Containment";
  }
  const free = data.grid.reduce((sum, cell) => sum + (cell[4] > 1 ? cell[2] : 0), 0);
  byId("stricter").textContent = (free ? `${many(free, "near-duplicate")} would be ${verb} by any thresholds, and so ${free === 1 ? "is" : "are"} in no chart: `
    + "equal pages, and those that differ in noise only. " : "") + "The sliders can only be stricter than the run was: pages that it kept are not in a drop log. "
    + 'To see what looser thresholds would drop, crawl with them and DEDUP_ACTION = "mark".';
  if (pairs.length < totals.drops) {
    byId("sample").textContent = `The charts above are of all ${number(totals.drops)} near-duplicates. Listed here are `
      + `${number(pairs.length)}: the ${number(Math.floor(pairs.length / 2))} least alike, and the others from the largest clusters.`;
  }
  byId("choice").addEventListener("submit", (event) => event.preventDefault());
  for (const [id, name] of [["query", "query"], ["which", "which"], ["order", "order"]]) {
    byId(id).addEventListener("input", (event) => { state[name] = event.target.value; state.shown = CLUSTERS; draw(); });
  }
  byId("more").addEventListener("click", () => {
    state.shown += CLUSTERS;
    drawClusters();
    byId("list").children[state.shown - CLUSTERS].querySelector("summary").focus();
  });
  drawTimeline();
  drawHosts(data.hosts, totals.hosts, chooseHost);
  drawNoise(data.noise);
  draw();
  if (data.renewed) setInterval(renew, 1000 * data.renewed);
}

/** What there is to say of a log without near-duplicates. */
function nothing() {
  if (data.chosen) return `None of ${many(data.read, "record")} has ${data.chosen}.`;
  const judged = data.timeline.judged;
  return judged ? `No page was a near-duplicate: all of ${many(judged, "page")} judged were kept.` : "No page was a near-duplicate.";
}

/** Lists the pages of a host. */
function chooseHost(host) {
  byId("query").value = state.query = host;
  state.shown = CLUSTERS;
  draw();
  byId("clusters").scrollIntoView();
  byId("query").focus({ preventScroll: true });
}

/** Loads a newer report, unless the reader has chosen or opened something, which would be lost. */
function renew() {
  const isAtRest = state.k === farthest && state.r === least && !state.query && state.which === "dropped" && state.order === "size"
    && state.shown === CLUSTERS && !state.open.size;
  if (isAtRest && !byId("comparison").open) location.reload();
}

start();
