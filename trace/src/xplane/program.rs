//! Statistics of an event that name its compiled program and count its own work. They become
//! optional columns, since few events have them.

use super::details::word;
use super::plane::Stat;
use flopwatch_model::{Category, ColumnId, MemoryKind};

/// Values of an event for optional columns. Of two values for one column the later one counts.
#[derive(Debug, Default)]
pub(super) struct ProgramColumns(Vec<(ColumnId, Stat)>);

impl ProgramColumns {
    /// Stores a statistic, where one of the columns is for it.
    pub(super) fn take(&mut self, name: &[u8], value: Stat) {
        if let Some(id) = column(name) {
            self.set(id, value);
        }
    }

    fn set(&mut self, id: ColumnId, value: Stat) {
        match self.0.iter_mut().find(|(known, _)| *known == id) {
            // The operation's own name says more than its type.
            Some(_) if id == ColumnId::TfOp && matches!(&value, Stat::Text(text) if text.ends_with(b"XlaModule:")) => {}
            Some((_, known)) => *known = value,
            None => self.0.push((id, value)),
        }
    }

    /// Stores the values that the packed text of a kernel or copy holds.
    pub(super) fn take_details(&mut self, text: &[u8]) {
        // 0 is what is written where it is not known.
        let occupancy = word(text, "occ_pct").and_then(millionths).filter(|share| *share > 0);
        if let Some(share) = occupancy {
            self.set(ColumnId::TheoreticalOccupancy, Stat::Integer(share));
        }
        for (name, id) in [
            ("kind_src", ColumnId::SrcMemoryKind),
            ("kind_dst", ColumnId::DstMemoryKind),
            ("kind", ColumnId::DstMemoryKind),
        ] {
            if let Some(kind) = word(text, name).and_then(MemoryKind::from_words) {
                self.set(id, Stat::Integer(kind.number().into()));
            }
        }
    }

    /// The values for columns that events of `category` may have.
    pub(super) fn of(&self, category: Category) -> impl Iterator<Item = (ColumnId, &Stat)> {
        let columns = category.optional_columns();
        let message = self.0.iter().filter(|(id, _)| columns.contains(id));
        message.map(|(id, stat)| (*id, stat))
    }
}

/// Whether there is a column for the statistic with this name.
pub(super) fn is_column(name: &[u8]) -> bool {
    column(name).is_some()
}

fn column(name: &[u8]) -> Option<ColumnId> {
    match name {
        b"hlo_op" => Some(ColumnId::HloOp),
        b"hlo_category" => Some(ColumnId::HloCategory),
        b"hlo_module" => Some(ColumnId::HloModule),
        b"program_id" => Some(ColumnId::ProgramId),
        b"tf_op" | b"name" => Some(ColumnId::TfOp),
        b"flops" => Some(ColumnId::Flops),
        b"bytes_accessed" => Some(ColumnId::Bytes),
        _ => None,
    }
}

/// A percentage as text, in millionths of 1.
fn millionths(percent: &[u8]) -> Option<u64> {
    let percent = std::str::from_utf8(percent).ok()?;
    let (whole, fraction) = percent.split_once('.').unwrap_or((percent, ""));
    let digits = fraction.get(..fraction.len().min(4))?;
    format!("{whole}{digits:0<4}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_become_millionths() {
        for (text, share) in [
            ("75", Some(750_000)),
            ("37.5", Some(375_000)),
            ("6.25001", Some(62_500)),
            ("x", None),
        ] {
            assert_eq!(millionths(text.as_bytes()), share, "{text}");
        }
    }

    #[test]
    fn the_name_of_an_operation_wins_over_its_type() {
        let text = |text: &str| Stat::Text(text.as_bytes().to_vec());
        let mut message = ProgramColumns::default();
        message.take(b"name", text("jit(f)/dot_general"));
        message.take(b"tf_op", text("XlaModule:"));
        let found: Vec<_> = message.of(Category::CudaKernel).collect();
        assert_eq!(found, [(ColumnId::TfOp, &text("jit(f)/dot_general"))]);
    }
}
