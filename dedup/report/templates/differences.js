// Shows two pages side by side: what is known of both, and their words with the differences marked.

// Equal words that are shown before and after a difference; those farther from any difference are folded.
const CONTEXT = 12;
// How many differences are shown at first, and how many more by a button.
const HUNKS = 200;

/**
 * Gathers differences that are near each other in blocks; each block becomes a row of the table.
 * edits: [start, end, "tokens that replace them", ...]; a block: {from, to, edits: [[start, end, text], ...]}.
 */
function blocks(edits, length) {
  const made = [];
  for (let at = 0; at < edits.length; at += 3) {
    const [start, end] = edits.slice(at, at + 2);
    const last = made.at(-1);
    if (last && start - CONTEXT <= last.to) {
      last.edits.push(edits.slice(at, at + 3));
      last.to = Math.min(length, end + CONTEXT);
    } else {
      made.push({ from: Math.max(0, start - CONTEXT), to: Math.min(length, end + CONTEXT),
        edits: [edits.slice(at, at + 3)] });
    }
  }
  return made;
}

/** The kept or the dropped page's side of a block; the words that only this side has are marked. */
function side(tokens, block, name, mark) {
  const cell = element("td", { "data-page": name });
  let at = block.from;
  for (const [start, end, text] of block.edits) {
    const own = mark === "del" ? tokens.slice(start, end).join(" ") : text;
    cell.append(visible(tokens.slice(at, start).join(" ")), " ");
    if (own) cell.append(element(mark, {}, visible(own)), " ");
    at = end;
  }
  cell.append(visible(tokens.slice(at, block.to).join(" ")));
  return cell;
}

/** A row that stands for equal words, and shows them when it is opened. */
function equalRow(tokens) {
  const cell = element("td", { colspan: "2" });
  const shown = many(tokens.length, "equal word");
  cell.append(element("details", { class: "equal", ontoggle: (event) => {
    const folded = event.target;
    if (folded.open && !folded.querySelector("p")) folded.append(element("p", {}, visible(tokens.join(" "))));
  } }, element("summary", {}, shown)));
  return element("tr", { class: "equal" }, cell);
}

/** The words of both pages, as a table; and the number of blocks that differ. */
function differenceTable(text, edits) {
  const tokens = text.split(" ");
  const found = blocks(edits, tokens.length);
  const body = element("tbody");
  let at = 0, next = 0;
  const fill = (limit) => {
    for (; next < Math.min(limit, found.length); next++) {
      const block = found[next];
      if (block.from > at) body.append(equalRow(tokens.slice(at, block.from)));
      body.append(element("tr", { class: "block", tabindex: "-1" },
        side(tokens, block, "kept", "del"), side(tokens, block, "dropped", "ins")));
      at = block.to;
    }
    if (next === found.length && at < tokens.length) body.append(equalRow(tokens.slice(at)));
  };
  fill(HUNKS);
  const shown = element("div", {}, element("table", { class: "words" },
    element("caption", { class: "hidden" }, "Words of both pages; those that only one page has are marked"),
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
    row("Apart", `${many(pair.distance, "bit")} of 64 differ; resemblance ${pair.resemblance.toFixed(4)}`),
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
    const [text, ...edits] = pair.words;
    const made = differenceTable(data.texts[text], edits);
    count = made.count;
    place.replaceChildren(element("p", { class: "note" }, wordsNote(count, data)), made.shown);
  }
  byId("steps").hidden = count < 2;
  byId("position").textContent = "";
  compare.at = -1;
  dialog.showModal();
  dialog.scrollTop = 0;
}

function noWords(data) {
  const missing = "The words of these pages are not in this report";
  if (data.words === "fetched") return `${missing}: only some of the pairs were fetched again.`;
  if (data.words === "stored") return `${missing}: the crawl did not store them, or they were left out, as a report holds at most ${bytes(data.max_words)} of words.`;
  return `The words of these pages were not stored. ${data.to_see_words}`;
}

function wordsNote(count, data) {
  const kind = "The words are shown as they were compared: folded to lower case, links as URLs, without markup. ";
  const when = data.words === "fetched" ? "Both pages were fetched again, and may have changed since. " : "";
  return kind + when + (count ? `They differ in ${many(count, "place")}.` : "All of them are equal.");
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
