//! A capture like another one, only longer.

use std::path::Path;

use anyhow::{Context as _, Result};
use rusqlite::Connection;

/// Writes the SQLite export `of` with all its events `times` times, one round behind the other:
/// starts and ends move on, and calls keep the work that they launched.
pub(crate) fn make(out: &Path, of: &Path, times: u32) -> Result<()> {
    // An export is often write-protected, and a copy would be too.
    std::fs::write(out, std::fs::read(of)?)?;
    let mut export = Connection::open(out)?;
    let tables = timed_tables(&export)?;
    let largest = |column: &str| -> Result<i64> {
        let mut max = 0;
        for (table, _) in tables
            .iter()
            .filter(|(_, columns)| columns.iter().any(|known| known == column))
        {
            let query = format!("SELECT ifnull(max(\"{column}\"), 0) FROM \"{table}\"");
            max = max.max(export.query_row(&query, [], |row| row.get(0))?);
        }
        Ok(max)
    };
    let (length, calls) = (largest("end")? + 1, largest("correlationId")? + 1);
    let rounds = export.transaction()?;
    for (table, columns) in &tables {
        let moved = columns.iter().map(|column| match column.as_str() {
            "start" | "end" => format!("\"{column}\" + round.n * {length}"),
            "correlationId" => format!("\"{column}\" + round.n * {calls}"),
            _ => format!("\"{column}\""),
        });
        let moved = moved.collect::<Vec<_>>().join(", ");
        rounds.execute(
            &format!(
                "WITH RECURSIVE round(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM round WHERE n + 1 < ?1) \
                 INSERT INTO \"{table}\" SELECT {moved} FROM \"{table}\", round"
            ),
            [times],
        )?;
    }
    rounds.commit().context("cannot write the longer export")
}

/// Tables whose rows are events, with the names of their columns.
fn timed_tables(export: &Connection) -> Result<Vec<(String, Vec<String>)>> {
    let mut query = export.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
    let names: Vec<String> = query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut tables = Vec::new();
    for name in names {
        let mut query = export.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let columns: Vec<String> = query.query_map([&name], |row| row.get(0))?.collect::<Result<_, _>>()?;
        if ["start", "end"]
            .iter()
            .all(|time| columns.iter().any(|column| column == time))
        {
            tables.push((name, columns));
        }
    }
    Ok(tables)
}
