"use strict";
(() => {
  const table = document.getElementById("breaks");
  if (!table) return;
  document.documentElement.classList.add("scripted");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const text = rows.map((row) => row.textContent.toLowerCase());
  const find = document.getElementById("find");
  const pick = document.getElementById("severity");
  const change = document.getElementById("change");
  const more = document.getElementById("more");
  const told = document.getElementById("told");
  const PAGE = 200;
  let shown = PAGE;
  let order = rows.map((_, n) => n);
  const refresh = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let fits = 0;
    for (const n of order) {
      const row = rows[n];
      const isIn = (!pick.value || row.dataset.severity === pick.value)
        && (!change.value || row.dataset.change === change.value)
        && words.every((word) => text[n].includes(word));
      row.classList.toggle("hidden", !isIn);
      row.classList.toggle("beyond", isIn && fits >= shown);
      if (isIn) fits += 1;
    }
    const visible = Math.min(fits, shown);
    told.textContent = visible + " of " + rows.length + " shown" + (fits < rows.length ? ", " + fits + " fit" : "");
    more.hidden = fits <= shown;
  };
  const restart = () => { shown = PAGE; refresh(); };
  find.addEventListener("input", restart);
  pick.addEventListener("change", restart);
  change.addEventListener("change", restart);
  more.addEventListener("click", () => { shown += 1000; refresh(); });
  document.getElementById("clear").addEventListener("click", () => { find.value = ""; pick.value = ""; change.value = ""; restart(); find.focus(); });
  const headers = Array.from(table.tHead.rows[0].cells);
  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = header.textContent;
    header.dataset.label = header.textContent;
    header.replaceChildren(button);
    const key = (n) => { const cell = rows[n].cells[column]; return cell.dataset.sort ?? cell.textContent; };
    button.addEventListener("click", () => {
      const isUp = header.getAttribute("aria-sort") !== "ascending";
      for (const other of headers) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", isUp ? "ascending" : "descending");
      const keys = rows.map((_, n) => key(n));
      const isNumber = keys.every((value) => /^-?\d*$/.test(value));
      const compare = isNumber
        ? (a, b) => { const x = BigInt(keys[a] || 0), y = BigInt(keys[b] || 0); return x < y ? -1 : x > y ? 1 : a - b; }
        : (a, b) => (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : a - b);
      order = rows.map((_, n) => n).sort(compare);
      if (!isUp) order.reverse();
      body.append(...order.map((n) => rows[n]));
      refresh();
    });
  });
  refresh();
})();
