// The course of a crawl: pages kept and near-duplicates as time went by.

function drawTimeline() {
  const { start, width, near, kept } = data.timeline;
  const named = (at) => clock(start + at * width, 0, width < 1 ? 21 : 19);
  const days = near.length * width > 2 * 86400;
  // Labels tell whole seconds: where a column is half a second, every other one has a label.
  const every = Math.ceil(near.length / 10 / (width < 1 ? 2 : 1)) * (width < 1 ? 2 : 1), first = start % 1 ? 1 : 0;
  const tick = (at) => (days ? clock(start + at * width, 5, 16) : clock(start + at * width, 11, width < 60 ? 19 : 16));
  const parts = [...(kept ? [{ class: "kept", values: kept }] : []), { class: "near", values: near }];
  const unit = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]].find(([size]) => width >= size) ?? [1, "second"];
  const step = many(width / unit[0], unit[1]);
  byId("legend").append(...(kept ? [element("li", { class: "kept" }, "kept")] : []), element("li", { class: "near" }, "near-duplicates"),
    element("li", {}, `a column is ${step}`));
  byId("timeline-chart").append(columns({
    title: kept ? "Pages kept and near-duplicates over time" : "Near-duplicates over time",
    description: `From ${named(0)} UTC, a column each ${step}. The table below has the figures.`,
    parts, labels: near.map((_, at) => ((at - first) % every ? "" : tick(at))), wide: FULL,
  }));
  if (!kept) {
    byId("timeline-chart").append(element("p", { class: "note" }, data.chosen
      ? "Only the near-duplicates chosen are drawn." : "Only near-duplicates are drawn: the pages kept are not known."));
  }
  const rows = () => near.map((count, at) => [named(at), ...(kept ? [kept[at] + count, kept[at]] : []), count]);
  byId("timeline-table").append(foldedTable("Pages over time", ["From (UTC)", ...(kept ? ["Fetched", "Kept"] : []), "Near-duplicates"],
    () => rows().filter((row) => row.slice(1).some(Boolean))));
}
