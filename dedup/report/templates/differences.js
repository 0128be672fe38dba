// Shows two pages side by side: what is known of both, and their words with the differences marked.

// Equal words that are shown before and after a difference; those farther from any difference are folded.
const CONTEXT = 12;
// How many differences are shown at first, and how many more by a button.
const HUNKS = 200;

/**
 * Gathers differences that are near each other in blocks; each block becomes a row of the table.
 * edits: [start, end, "tokens that replace them", ...]; a block: {from, to, ahead, edits: [[start, end, text], ...]},
 * where `ahead` is how much farther on its words are in the dropped page.
 */
function blocks(edits, length) {
  const made = [];
  let ahead = 0;
  for (let at = 0; at < edits.length; at += 3) {
    const [start, end, text] = edits.slice(at, at + 3);
    const last = made.at(-1);
    if (last && start - CONTEXT <= last.to) {
      last.edits.push(edits.slice(at, at + 3));
      last.to = Math.min(length, end + CONTEXT);
    } else {
      made.push({ from: Math.max(0, start - CONTEXT), to: Math.min(length, end + CONTEXT), ahead,
        edits: [edits.slice(at, at + 3)] });
    }
    ahead += text.split(" ").filter(Boolean).length - (end - start);
  }
  return made;
}

/** The bounds of runs of marked chrome, from those that are stored, each as its distance from the one before. */
function boundsOf(distances) {
  let at = 0;
  return distances.map((distance) => (at += distance));
}

/** Words of a page, of which the first is its word number `at`; those in marked chrome are grey. */
function* greyed(tokens, at, bounds) {
  // Bounds are in order: the number of those up to a word is odd if the word is in chrome.
  let next = bounds.findIndex((bound) => bound > at);
  if (next < 0) next = bounds.length;
  for (let from = 0; from < tokens.length; next++) {
    const to = Math.min(tokens.length, (bounds[next] ?? Infinity) - at);
    const words = visible(tokens.slice(from, to).join(" "));
    if (from) yield " ";
    yield next % 2 ? element("span", { class: "chrome" }, words) : words;
    from = to;
  }
}

/** The kept or the dropped page's side of a block; the words that only this side has are marked. */
function side(tokens, block, name, mark, bounds) {
  const cell = element("td", { "data-page": name });
  const isKept = mark === "del";
  // How much farther on words are in this page than in the kept one.
  let at = block.from, ahead = isKept ? 0 : block.ahead;
  for (const [start, end, text] of block.edits) {
    const own = isKept ? tokens.slice(start, end) : text.split(" ").filter(Boolean);
    cell.append(...greyed(tokens.slice(at, start), at + ahead, bounds), " ");
    if (own.length) cell.append(element(mark, {}, ...greyed(own, start + ahead, bounds)), " ");
    if (!isKept) ahead += own.length - (end - start);
    at = end;
  }
  cell.append(...greyed(tokens.slice(at, block.to), at + ahead, bounds));
  return cell;
}

/** A row that stands for equal words, and shows them when it is opened. */
function equalRow(tokens, at, bounds) {
  const cell = element("td", { colspan: "2" });
  const shown = many(tokens.length, "equal word");
  cell.append(element("details", { class: "equal", ontoggle: (event) => {
    const folded = event.target;
    if (folded.open && !folded.querySelector("p")) folded.append(element("p", {}, ...greyed(tokens, at, bounds)));
  } }, element("summary", {}, shown)));
  return element("tr", { class: "equal" }, cell);
}

/** The words of both pages, as a table; and the number of blocks that differ. */
function differenceTable(caption, text, keptChrome, droppedChrome, edits) {
  const tokens = text ? text.split(" ") : [];
  const kept = boundsOf(keptChrome), dropped = boundsOf(droppedChrome);
  const found = blocks(edits, tokens.length);
  const body = element("tbody");
  let at = 0, next = 0;
  const fill = (limit) => {
    for (; next < Math.min(limit, found.length); next++) {
      const block = found[next];
      if (block.from > at) body.append(equalRow(tokens.slice(at, block.from), at, kept));
      body.append(element("tr", { class: "block", tabindex: "-1" },
        side(tokens, block, "kept", "del", kept), side(tokens, block, "dropped", "ins", dropped)));
      at = block.to;
    }
    if (next === found.length && at < tokens.length) body.append(equalRow(tokens.slice(at), at, kept));
  };
  fill(HUNKS);
  const shown = element("div", {}, element("table", { class: "words" },
    element("caption", { class: "hidden" }, `${caption} of both pages; those that only one page has are marked`),
    element("thead", {}, element("tr", {},
      element("th", { scope: "col" }, "Kept page"), element("th", { scope: "col" }, "Dropped page"))),
    body));
  if (next < found.length) {
    shown.append(element("button", { type: "button", onclick: (event) => {
      fill(next + HUNKS);
      if (next === found.length) event.target.remove();
    } }, "More differences"));
  }
  return { shown, count: found.length };
}

/** A simhash in bits; the bits that differ from those of the other simhash are marked. */
function bits(hex, other) {
  const line = element("code", { class: "bits" });
  const binary = (digits) => [...digits].map((digit) => parseInt(digit, 16).toString(2).padStart(4, "0")).join("");
  if (![hex, other].every((digits) => /^[0-9a-f]{16}$/.test(digits))) return visible(hex);
  const own = binary(hex), against = binary(other);
  [...own].forEach((bit, at) => {
    if (at && at % 8 === 0) line.append(" ");
    line.append(bit === against[at] ? bit : element("mark", {}, bit));
  });
  return line;
}

/** What is known of two pages. */
function facts(pair, urls) {
  const row = (name, ...cells) =>
    element("tr", {}, element("th", { scope: "row" }, name), ...cells.map((cell) =>
      element("td", cells.length === 1 ? { colspan: "2" } : {}, cell)));
  const size = pair.bytes === null ? "" : `, ${bytes(pair.bytes)}`;
  const rows = [
    row("URL", link(urls[pair.duplicate_of]), link(urls[pair.url])),
    row("Simhash", bits(pair.duplicate_of_simhash, pair.simhash), bits(pair.simhash, pair.duplicate_of_simhash)),
    row("Why", visible(pair.why)),
    row("Apart", `${many(pair.distance, "bit")} of 64 differ; ${pair.own === null ? "" : `containment ${pair.share.toFixed(4)}, `}`
      + `resemblance ${pair.resemblance.toFixed(4)}`),
    pair.own === null ? "" : row("Own", pair.gone === null ? "" : `${many(pair.matching + pair.gone, "shingle")}: `
      + `${number(pair.matching)} match, ${number(pair.gone)} only here`,
      `${many(pair.own, "shingle")}: ${number(pair.matching)} match, ${number(pair.new)} only here`),
    pair.noise ? row("Noise", "changed when it was fetched again", visible(pair.noise)) : "",
    row("Dropped", `${many(pair.tokens, "word")}, ${many(pair.links, "link")}${size}; `
      + `${{ drop: "dropped", nofollow: "not followed", mark: "only marked" }[pair.action]} at `
      + `${pair.time.slice(0, 19).replace("T", " ")} UTC by the rule ${visible(pair.rule)}`),
    row("Found on", element("span", {}, pair.referer === null ? "no page" : link(urls[pair.referer]),
      `, ${many(pair.depth, "link")} from the start`)),
  ];
  return element("div", { class: "scroll" }, element("table", { class: "facts" },
    element("caption", { class: "hidden" }, "What is known of both pages"),
    element("thead", {}, element("tr", {}, element("td"),
      element("th", { scope: "col" }, "Kept page"), element("th", { scope: "col" }, "Dropped page"))),
    element("tbody", {}, ...rows)));
}

/** Opens the comparison of a pair. */
function compare(pair, data) {
  const dialog = byId("comparison"), place = byId("differences");
  byId("facts").replaceChildren(facts(pair, data.urls));
  let count = 0;
  if (pair.words === null) {
    place.replaceChildren(element("p", { class: "note" }, noWords(data)));
  } else {
    const [number, chrome, dataEdits, ...edits] = pair.words;
    const [text, keptChrome, keptData] = data.texts[number];
    const made = differenceTable("Words", text, keptChrome, chrome, edits);
    place.replaceChildren(element("p", { class: "note" }, wordsNote(made.count, chrome.length || keptChrome.length)), made.shown);
    count = made.count;
    if (keptData || dataEdits.length) {
      const inData = differenceTable("Words of data", keptData, [], [], dataEdits);
      count += inData.count;
      place.append(element("section", { class: "data" }, element("h3", {}, "Data in scripts and attributes"),
        element("p", { class: "note" }, dataNote(inData.count)), inData.shown));
    }
  }
  byId("steps").hidden = count < 2;
  byId("position").textContent = "";
  compare.at = -1;
  dialog.showModal();
  dialog.scrollTop = 0;
}

function noWords(data) {
  const missing = "The words of these pages are not in this report";
  if (data.words) return `${missing}: the crawl did not store them, or they were left out, as a report holds at most ${bytes(data.max_words)} of words.`;
  return `The words of these pages were not stored. Crawl with DEDUP_KEEP_TEXT = True.`;
}

function wordsNote(count, grey) {
  const kind = "The words are shown as they were compared: folded to lower case, links as URLs, without markup. ";
  const marked = grey ? "Grey words are in menus, headers, footers and the like: that they are equal proves nothing. " : "";
  return kind + marked + differ(count);
}

function dataNote(count) {
  return `What scripts of the pages hold as JSON, and show in a browser: its strings and numbers, without ids, tokens and times. ${differ(count)}`;
}

function differ(count) {
  return count ? `They differ in ${many(count, "place")}.` : "All of them are equal.";
}

/** Goes forward or back by some differences. */
function step(by) {
  const rows = [...document.querySelectorAll("#differences tr.block")];
  if (!rows.length) return;
  compare.at = Math.min(rows.length - 1, Math.max(0, compare.at + by));
  rows.forEach((row, at) => row.toggleAttribute("data-current", at === compare.at));
  rows[compare.at].focus({ preventScroll: true });
  rows[compare.at].scrollIntoView({ block: "center" });
  byId("position").textContent = `${number(compare.at + 1)} of ${number(rows.length)}`;
}

byId("close").addEventListener("click", () => byId("comparison").close());
byId("next").addEventListener("click", () => step(1));
byId("previous").addEventListener("click", () => step(-1));
byId("comparison").addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || byId("steps").hidden) return;
  if (event.key === "n") step(1);
  if (event.key === "p") step(-1);
});
