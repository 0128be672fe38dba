// The hosts of near-duplicates: sorted by any column, and each leads to the list of its pages.

// How many are shown at first.
const HOSTS = 10;
const COLUMNS = ["Host", "Near-duplicates", "Links", "Size"];

const sorting = { column: 1, ascending: false, limit: HOSTS };

function inOrder(hosts) {
  const { column, ascending } = sorting, sign = ascending ? 1 : -1;
  return hosts.toSorted((a, b) => sign * (column ? (a[column] ?? -1) - (b[column] ?? -1) : a[0].localeCompare(b[0])));
}

/** The heading of a column, which sorts by it; once more, the other way round. */
function sorter(name, column, redraw) {
  return element("button", { type: "button", onclick: () => {
    sorting.ascending = sorting.column === column ? !sorting.ascending : column === 0;
    sorting.column = column;
    redraw();
    byId("hosts").querySelectorAll("th button")[column].focus();
  } }, name);
}

/** Draws the table; choose(host) is called if one is clicked. */
function drawHosts(hosts, all, choose) {
  const redraw = () => drawHosts(hosts, all, choose);
  const rows = inOrder(hosts).slice(0, sorting.limit).map(([host, drops, links, size]) => [
    element("button", { type: "button", class: "word url", onclick: () => choose(host) }, element("bdi", {}, visible(host) || "(none)")),
    drops, links, figure(size === null ? "" : bytes(size))]);
  const made = table("Hosts of near-duplicates", COLUMNS.map((name, at) => sorter(name, at, redraw)), rows);
  made.querySelectorAll("th")[sorting.column].setAttribute("aria-sort", sorting.ascending ? "ascending" : "descending");
  byId("hosts").replaceChildren(made);
  if (rows.length < hosts.length) {
    byId("hosts").append(element("button", { type: "button", onclick: () => {
      sorting.limit = hosts.length;
      redraw();
      byId("hosts").firstChild.focus();
    } }, `${number(all - rows.length)} more`));
  } else if (rows.length < all) {
    byId("hosts").append(element("p", { class: "note" }, `... and ${number(all - rows.length)} more`));
  }
}
