"""A table in a notebook: its first rows."""

from __future__ import annotations

from flopwatch._native import Table

from .wording import escaped, short

#: More are of no use to a reader, and would be kept in the notebook's file.
_ROWS = 10

_NUMBERS = ("Int", "UInt", "Float")


def html(table: Table) -> str:
    """The first rows and how many there are."""
    numbers = [kind.startswith(_NUMBERS) for kind in table.column_types]
    head = "".join(f"<th>{escaped(name)}</th>" for name in table.column_names)
    rows = table.first(_ROWS)
    body = "".join(f"<tr>{''.join(_cell(value, number) for value, number in zip(row, numbers, strict=True))}</tr>" for row in rows)
    count = f"{table.num_rows:,} rows" if table.num_rows != 1 else "1 row"
    if len(rows) < table.num_rows:
        count += f", the first {len(rows)} of them shown"
    return f'<div style="overflow-x:auto"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div><p><small>{count}</small></p>'


def _cell(value: str | None, number: bool) -> str:
    side = "right" if number else "left"
    return f'<td style="text-align:{side}">{"" if value is None else short(value)}</td>'
