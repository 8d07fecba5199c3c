//! The columns of the tables: those of every event, then each column that a category may have of
//! its own.

use flopwatch_model::{Category, ColumnId, Events, Row, Timeline, Width};
use strum::IntoStaticStr;

/// A column of the table of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Field {
    /// Name of the category.
    Category,
    /// Name of the event.
    Name,
    /// Start in ns from the session's start.
    StartNs,
    /// Length in ns.
    DurationNs,
    /// Which capture of a merged session.
    Capture,
    /// Machine as the profiler numbers it.
    Machine,
    /// Process id.
    Process,
    /// Thread id; none for a GPU.
    Thread,
    /// GPU; none for the CPU.
    Device,
    /// CUDA context; none for the CPU.
    Context,
    /// CUDA stream; none for the CPU.
    Stream,
    /// What the row shows.
    Track,
    /// The row's label.
    #[strum(serialize = "row_label")]
    Label,
    /// Lane within the row.
    Lane,
    /// Correlation id, 0 for none.
    Correlation,
    /// A column of some categories.
    Own(ColumnId),
}

/// How a column is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
}

/// The columns that every table has, in published order.
const FIELDS: [Field; 36] = [
    Field::Category,
    Field::Name,
    Field::StartNs,
    Field::DurationNs,
    Field::Capture,
    Field::Machine,
    Field::Process,
    Field::Thread,
    Field::Device,
    Field::Context,
    Field::Stream,
    Field::Track,
    Field::Label,
    Field::Lane,
    Field::Correlation,
    Field::Own(ColumnId::GridX),
    Field::Own(ColumnId::GridY),
    Field::Own(ColumnId::GridZ),
    Field::Own(ColumnId::BlockX),
    Field::Own(ColumnId::BlockY),
    Field::Own(ColumnId::BlockZ),
    Field::Own(ColumnId::Registers),
    Field::Own(ColumnId::SharedStatic),
    Field::Own(ColumnId::SharedDynamic),
    Field::Own(ColumnId::Bytes),
    Field::Own(ColumnId::Launch),
    Field::Own(ColumnId::Color),
    Field::Own(ColumnId::RangeStyle),
    Field::Own(ColumnId::StepNumber),
    Field::Own(ColumnId::ExternalId),
    Field::Own(ColumnId::Sequence),
    Field::Own(ColumnId::ForwardThread),
    Field::Own(ColumnId::PythonId),
    Field::Own(ColumnId::PythonParent),
    Field::Own(ColumnId::GraphNode),
    Field::Own(ColumnId::Flops),
];

/// Columns that a table has behind the others where an event of the timeline says something in
/// them, in published order. New ones go to the end.
const FURTHER: [ColumnId; 31] = [
    ColumnId::BlocksPerSm,
    ColumnId::WarpsPerSm,
    ColumnId::AchievedOccupancy,
    ColumnId::TheoreticalOccupancy,
    ColumnId::SrcMemoryKind,
    ColumnId::DstMemoryKind,
    ColumnId::ReturnValue,
    ColumnId::InElements,
    ColumnId::OutElements,
    ColumnId::GroupSize,
    ColumnId::ProgramId,
    ColumnId::InputShapes,
    ColumnId::InputTypes,
    ColumnId::Collective,
    ColumnId::ElementType,
    ColumnId::ProcessGroup,
    ColumnId::GroupRanks,
    ColumnId::HloOp,
    ColumnId::HloCategory,
    ColumnId::HloModule,
    ColumnId::TfOp,
    ColumnId::RangeCategory,
    ColumnId::GraphId,
    ColumnId::GraphExec,
    ColumnId::WaitOnStream,
    ColumnId::WaitOnRecord,
    ColumnId::ClusterX,
    ColumnId::ClusterY,
    ColumnId::ClusterZ,
    ColumnId::CallStack,
    ColumnId::Cpu,
];

/// The columns of a table of this timeline.
pub fn fields(timeline: &Timeline) -> Vec<Field> {
    let held = |id: &ColumnId| {
        let mut all = timeline.capture.events.values();
        all.any(|events| events.column(*id).is_some())
    };
    let further = FURTHER.into_iter().filter(held).map(Field::Own);
    FIELDS.into_iter().chain(further).collect()
}

impl Field {
    /// Name in headings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own(id) => id.name(),
            field => field.into(),
        }
    }

    /// How its cells are stored.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Category | Self::Name | Self::Track | Self::Label => Kind::Text,
            Self::StartNs | Self::DurationNs | Self::Thread | Self::Context | Self::Stream => Kind::U64,
            Self::Capture | Self::Machine | Self::Process | Self::Device | Self::Lane | Self::Correlation => Kind::U32,
            Self::Own(id) if id.is_text() => Kind::Text,
            Self::Own(id) => match id.width() {
                Width::U32 => Kind::U32,
                Width::U64 => Kind::U64,
            },
        }
    }

    /// Whether an event may lack it.
    pub const fn is_optional(self) -> bool {
        matches!(
            self,
            Self::Thread | Self::Device | Self::Context | Self::Stream | Self::Own(_)
        )
    }
}

/// The events of one category, cell by cell.
#[derive(Debug, Clone, Copy)]
pub struct Cells<'a> {
    /// Category of the events.
    pub category: Category,
    /// Events of the category.
    pub events: &'a Events,
    /// What the events' rows are.
    pub rows: &'a [Row],
}

impl<'a> Cells<'a> {
    fn row(&self, at: usize) -> Option<&'a Row> {
        self.rows.get(self.events.row.get(at)?.index())
    }

    /// A cell of a column of text.
    pub fn text(&self, field: Field, at: usize) -> &'a str {
        match field {
            Field::Category => self.category.name(),
            Field::Name => self.events.name_of(at),
            Field::Track => self.row(at).map_or("", |row| row.track.name()),
            Field::Label => self.row(at).map_or("", |row| row.label.as_str()),
            Field::Own(id) => self.events.text(id, at).unwrap_or(""),
            _ => "",
        }
    }

    /// A cell of a column of numbers.
    pub fn number(&self, field: Field, at: usize) -> Option<u64> {
        let events = self.events;
        match field {
            Field::StartNs => events.start_ns.get(at).copied(),
            Field::DurationNs => events.duration_ns.get(at).copied(),
            Field::Capture => self.row(at).map(|row| row.capture.into()),
            Field::Machine => self.row(at).map(|row| row.machine.into()),
            Field::Process => self.row(at).map(|row| row.process.into()),
            Field::Thread => self.row(at)?.thread,
            Field::Device => self.row(at)?.device.map(u64::from),
            Field::Context => self.row(at)?.context,
            Field::Stream => self.row(at)?.stream,
            Field::Lane => events.lane.get(at).copied().map(u64::from),
            Field::Correlation => events.correlation.get(at).copied().map(u64::from),
            Field::Own(id) => own(events, id, at),
            Field::Category | Field::Name | Field::Track | Field::Label => None,
        }
    }
}

/// The value of a category's own column of numbers; none where the event does not say it and 0
/// would be an ordinary value.
pub fn own(events: &Events, id: ColumnId, at: usize) -> Option<u64> {
    (!id.is_text()).then(|| events.number(id, at)).flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_column_of_every_category_is_in_the_table_once() {
        let further = FURTHER.into_iter().map(Field::Own);
        let names: BTreeSet<&str> = FIELDS.into_iter().chain(further).map(Field::name).collect();
        assert_eq!(names.len(), FIELDS.len() + FURTHER.len());
        for category in Category::ALL {
            for id in category.columns().iter().chain(category.optional_columns()) {
                assert!(names.contains(id.name()), "{}", id.name());
            }
        }
    }
}
