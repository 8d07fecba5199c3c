//! How people read the memory of a program.

use flopwatch_measures::hlo_memory::HloBufferUse;
use flopwatch_model::approximate;
use flopwatch_report::page::{Bars, Page, Series, Table, Tile, Unit};

use super::{HloBuffer, HloMemory, HloMemoryAnalysis};
use crate::definition::Analysis;

/// Bars of the steps; more are put together, each with its largest.
const MAX_BARS: usize = 40;

/// Values of the table of all values.
const MAX_ROWS: usize = 100;

pub(super) fn page(output: &HloMemory) -> Page {
    let title = if output.program.is_empty() {
        HloMemoryAnalysis::TITLE.to_owned()
    } else {
        format!("Memory of {}", output.program)
    };
    let mut page = Page::of(&title, HloMemoryAnalysis::ABOUT, &output.not_captured);
    if output.allocated_bytes > 0 {
        page.tiles([
            Tile::figure("Peak of values", Unit::Bytes, output.peak_bytes),
            Tile::figure("Allocated", Unit::Bytes, output.allocated_bytes),
            Tile::figure("Parameters", Unit::Bytes, output.parameters_bytes),
            Tile::figure("Results", Unit::Bytes, output.outputs_bytes),
            Tile::figure("Temporaries", Unit::Bytes, output.temporaries_bytes),
            Tile::figure("Constants", Unit::Bytes, output.constants_bytes),
        ]);
        for caution in &output.cautions {
            page.text("", caution.clone());
        }
        if !output.steps.is_empty() {
            page.bars(steps(output));
        }
        let mut at_peak = values("In memory at the peak", &output.at_peak);
        at_peak.left_out = output.at_peak_left_out;
        if let Some(instruction) = &output.peak_instruction {
            at_peak.about = format!("Behind the step of {instruction}.");
        }
        page.table(at_peak);
        let all = output.buffers.get(..MAX_ROWS).unwrap_or(&output.buffers);
        let mut all_values = values("Lifetimes of values", all);
        let more = u64::try_from(output.buffers.len().saturating_sub(MAX_ROWS)).unwrap_or(u64::MAX);
        all_values.left_out = output.buffers_left_out.saturating_add(more);
        "Steps are where a temporary begins or ends, in the order of the program.".clone_into(&mut all_values.about);
        page.table(all_values);
    }
    if output.programs.len() > 1 {
        page.table(flopwatch_measures::hlo_program::table(&output.programs));
    }
    page
}

fn steps(output: &HloMemory) -> Bars {
    let per_bar = output.steps.len().div_ceil(MAX_BARS).max(1);
    let mut labels = Vec::new();
    let (mut fixed, mut others) = (Vec::new(), Vec::new());
    for chunk in output.steps.chunks(per_bar) {
        if let Some(max) = chunk
            .iter()
            .reduce(|max, step| if step.bytes > max.bytes { step } else { max })
        {
            labels.push(max.instruction.clone());
            fixed.push(Some(approximate(output.fixed_bytes.into())));
            let heap = max.bytes.saturating_sub(output.fixed_bytes);
            others.push(Some(approximate(heap.into())));
        }
    }
    let series = |name: &str, values| Series {
        name: name.to_owned(),
        values,
    };
    Bars {
        title: "Memory in the order of the program".to_owned(),
        unit: Unit::Bytes,
        stacked: true,
        labels,
        series: vec![series("from begin to end", fixed), series("temporaries", others)],
    }
}

fn values(title: &str, buffers: &[HloBuffer]) -> Table {
    Table::of(title, buffers)
        .column("Value of", |buffer| buffer.instruction.as_str())
        .column("Opcode", |buffer| buffer.opcode.as_str())
        .column("Shape", |buffer| buffer.shape.as_str())
        .figure("Size", Unit::Bytes, |buffer| buffer.bytes)
        .column("Use", |buffer| match buffer.kind {
            HloBufferUse::Parameter => "parameter",
            HloBufferUse::Output => "result",
            HloBufferUse::Constant => "constant",
            HloBufferUse::Temporary => "temporary",
        })
        .column("Begins at", |buffer| buffer.begin_step)
        .column("Ends at", |buffer| buffer.end_step)
        .column("Allocation", |buffer| buffer.allocation)
        .figure("Offset", Unit::Bytes, |buffer| buffer.offset_bytes)
        .column("Framework operation", |buffer| buffer.framework_op.as_str())
        .column("Source", |buffer| buffer.source.as_deref())
        .without_unknown()
        .build()
}
