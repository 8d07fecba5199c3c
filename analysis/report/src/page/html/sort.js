document.querySelectorAll("thead button").forEach((button) => {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const body = head.closest("table").tBodies[0];
    const at = head.cellIndex;
    const isNumber = head.classList.contains("n");
    const up = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") === "descending" : !isNumber;
    for (const other of head.parentElement.cells) {
      other.removeAttribute("aria-sort");
    }
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => {
      const cell = row.cells[at];
      const text = cell.dataset.v ?? cell.textContent;
      return isNumber ? (text === "" ? undefined : Number(text)) : text;
    };
    const rows = Array.from(body.rows, (row, place) => ({ row, place, key: key(row) }));
    const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b));
    rows.sort((a, b) => {
      if (a.key === undefined || b.key === undefined) {
        return (a.key === undefined) - (b.key === undefined) || a.place - b.place;
      }
      return (up ? compare(a.key, b.key) : compare(b.key, a.key)) || a.place - b.place;
    });
    body.append(...rows.map(({ row }) => row));
  });
});
