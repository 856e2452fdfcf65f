// Sorting by the heads of columns, and filters where a table names columns to filter by. Nothing else needs it.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, i) => {
    const cell = row.cells[i];
    const value = cell.dataset.value;
    return value === undefined ? (cell.classList.contains("number") ? NaN : cell.textContent) : parseFloat(value);
  };
  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-label", `Sort by ${head.textContent}`);
    head.append(button); // over the text, which stays: printed pages repeat it
    button.addEventListener("click", () => {
      const falls = head.getAttribute("aria-sort") === "descending";
      const isNumber = head.classList.contains("number");
      const up = head.hasAttribute("aria-sort") ? falls : !isNumber;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const sign = up ? 1 : -1;
      const compare = (a, b) => {
        const x = key(a, i), y = key(b, i);
        if (!isNumber) return sign * String(x).localeCompare(String(y), undefined, { numeric: true });
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
        return sign * (x - y);
      };
      // Each group by itself, below its title.
      for (const group of table.tBodies)
        group.append(...[...group.rows].filter((row) => !row.classList.contains("group")).sort(compare));
    });
  });
  if (!table.dataset.filters) continue;
  const bar = document.createElement("div");
  bar.className = "filters";
  const tests = [];
  const count = document.createElement("span");
  count.setAttribute("role", "status");
  const apply = () => {
    let shown = 0;
    for (const row of body.rows) {
      row.hidden = !tests.every((test) => test(row));
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${body.rows.length} rows`;
  };
  const add = (text, control, test) => {
    const label = document.createElement("label");
    label.append(text, control);
    bar.append(label);
    control.addEventListener("input", apply);
    tests.push(test);
  };
  for (const name of table.dataset.filters.split(" ")) {
    const i = heads.findIndex((head) => head.dataset.name === name);
    const select = document.createElement("select");
    const values = new Set([...body.rows].map((row) => row.cells[i].textContent.trim()));
    for (const value of ["all", ...values]) select.add(new Option(value));
    add(heads[i].textContent, select, (row) => select.value === "all" || row.cells[i].textContent.trim() === select.value);
  }
  const words = document.createElement("input");
  words.type = "search";
  add("containing", words, (row) => row.textContent.toLowerCase().includes(words.value.toLowerCase()));
  bar.append(count);
  apply();
  table.closest(".scroll").before(bar);
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => (one.open = true)));
