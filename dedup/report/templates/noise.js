// What was noise, by URL pattern; what the reader chooses of it becomes a line for the settings.

function drawNoise(patterns) {
  if (!patterns.length) return;
  const chosen = new Set();
  const tell = () => {
    byId("chosen").textContent = chosen.size ? `${many(chosen.size, "expression")} chosen, for settings.py:` : "";
    byId("setting").textContent = chosen.size ? `DEDUP_IGNORE_TEXT = (${[...chosen].map((each) => `${JSON.stringify(each)},`).join(" ")})` : "";
    byId("copy").hidden = !chosen.size;
  };
  const box = ([example, expression, count]) => element("label", { class: "run" },
    element("input", { type: "checkbox", onchange: (event) => { chosen[event.target.checked ? "add" : "delete"](expression); tell(); } }),
    " ", element("bdi", { class: "url" }, visible(example)), ` (${number(count)})`);
  byId("patterns").append(table("Noise by URL pattern", ["URL pattern", "Near-duplicates", "Words, and how many have them"],
    patterns.map(([pattern, count, runs]) => [element("bdi", { class: "url" }, visible(pattern)), count, element("div", {}, ...runs.map(box))])));
  byId("copy").addEventListener("click", () => navigator.clipboard.writeText(byId("setting").textContent));
  byId("noise").hidden = false;
}
