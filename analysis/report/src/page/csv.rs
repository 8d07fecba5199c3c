//! A page's tables as CSV (RFC 4180): exact numbers, in the unit that the head says, and texts that
//! are no formulas.

use std::borrow::Cow;

use flopwatch_model::spreadsheet::inert;

use super::{Block, Cell, Page, Table, TableColumn, Unit};

/// The tables of `page`, one after the other: an only one alone, several each behind a line with
/// its title and parted by an empty line. Points of a roofline are a table too. Of a page without a
/// table, its key figures.
pub fn render(page: &Page) -> String {
    let mut out = String::new();
    let mut tables = page.blocks.iter().filter_map(|block| match block {
        Block::Table(table) => Some(Cow::Borrowed(table)),
        Block::Roofline(chart) => Some(Cow::Owned(chart.table())),
        _ => None,
    });
    match (tables.next(), tables.next()) {
        (None, _) => figures(&mut out, page),
        (Some(only), None) => write(&mut out, &only),
        (Some(first), Some(second)) => {
            for (at, table) in [first, second].into_iter().chain(tables).enumerate() {
                if at > 0 {
                    out.push('\n');
                }
                record(&mut out, [inert(&table.title)]);
                write(&mut out, &table);
            }
        }
    }
    out
}

fn write(out: &mut String, table: &Table) {
    record(out, table.columns.iter().map(head));
    for row in &table.rows {
        let cells = row.cells.iter().zip(&table.columns);
        record(out, cells.map(|(cell, column)| exact(cell, column.decimals)));
    }
}

fn figures(out: &mut String, page: &Page) {
    record(out, ["figure", "value", "unit"]);
    for block in &page.blocks {
        if let Block::Tiles(tiles) = block {
            for tile in &tiles.tiles {
                record(
                    out,
                    [
                        inert(&tile.label).into_owned(),
                        exact(&tile.value, None),
                        symbol(tile.unit).to_owned(),
                    ],
                );
            }
        }
    }
}

/// A column's head: the name that programs know it by, or its title with the unit of its numbers.
fn head(column: &TableColumn) -> String {
    let unit = symbol(column.unit);
    let (name, title) = (inert(&column.name), inert(&column.title));
    if !name.is_empty() {
        name.into_owned()
    } else if unit.is_empty() || title.ends_with(')') {
        title.into_owned()
    } else {
        format!("{title} ({unit})")
    }
}

const fn symbol(unit: Unit) -> &'static str {
    match unit {
        Unit::None | Unit::Count => "",
        Unit::Ns | Unit::Instant => "ns",
        Unit::Bytes => "B",
        Unit::BytesPerSecond => "B/s",
        Unit::FlopPerSecond => "FLOP/s",
        Unit::InstructionsPerSecond => "inst/s",
        Unit::Ratio => "ratio",
        Unit::Percent => "%",
    }
}

fn exact(cell: &Cell, decimals: Option<u8>) -> String {
    match (cell, decimals) {
        (Cell::Nothing, _) => String::new(),
        (Cell::Flag(flag), _) => flag.to_string(),
        (Cell::Integer(value), _) => value.to_string(),
        (Cell::Number(value), Some(digits)) => format!("{value:.*}", usize::from(digits)),
        (Cell::Number(value), None) => serde_json::to_string(value).unwrap_or_default(),
        (Cell::Text(text), _) => inert(text).into_owned(),
    }
}

fn record<T: AsRef<str>>(out: &mut String, fields: impl IntoIterator<Item = T>) {
    for (at, field) in fields.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let field = field.as_ref();
        if field.contains([',', '"', '\n', '\r']) {
            out.push('"');
            out.push_str(&field.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(field);
        }
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::Tile;
    use super::*;

    fn time(title: &str) -> Table {
        Table::new(
            title,
            &[("Name", Unit::None), ("Busy", Unit::Ns), ("Time (%)", Unit::Percent)],
        )
    }

    #[test]
    fn numbers_are_exact_and_fields_are_quoted() {
        let mut one = time("");
        one.push(["a,\"b\"\n".into(), 1_500_u64.into(), 33.3.into()]);
        one.push([Cell::Nothing, Cell::from(0.1 + 0.2), true.into()]);
        let mut page = Page::new("t", "a");
        page.table(one);
        let expected = "Name,Busy (ns),Time (%)\n\"a,\"\"b\"\"\n\",1500,33.3\n,0.30000000000000004,true\n";
        assert_eq!(render(&page), expected);
    }

    #[test]
    fn a_text_is_no_formula_and_a_number_is_as_it_was() {
        let mut one = Table::new("", &[("=Name", Unit::None), ("Change", Unit::Ns)]);
        one.push(["=1+1".into(), Cell::Integer(-1)]);
        one.push(["\t=1".into(), Cell::Number(-0.5)]);
        one.push(["-a,b".into(), Cell::Nothing]);
        let mut page = Page::new("t", "a");
        page.table(one.clone());
        let rows = "'=Name,Change (ns)\n'=1+1,-1\n'\t=1,-0.5\n\"'-a,b\",\n";
        assert_eq!(render(&page), rows);
        one.title = "@b".to_owned();
        page.table(one);
        assert_eq!(render(&page), format!("\n{rows}\n'@b\n{rows}"), "titles too");
    }

    #[test]
    fn several_tables_are_told_apart_and_key_figures_stand_for_none() {
        let mut page = Page::new("t", "a");
        page.tiles([Tile::figure("Window", Unit::Ns, 5_u64)]);
        assert_eq!(render(&page), "figure,value,unit\nWindow,5,ns\n");
        page.table(time("one"));
        page.table(time("two"));
        let heads = "Name,Busy (ns),Time (%)\n";
        assert_eq!(render(&page), format!("one\n{heads}\ntwo\n{heads}"));
    }
}
