//! How people read the memory of a program.

use flopwatch_measures::hlo_memory::HloBufferUse;
use flopwatch_model::approximate;
use flopwatch_report::page::{Bars, Page, Series, Table, Unit};

use super::{HloBuffer, HloMemory, HloMemoryAnalysis};
use crate::definition::Analysis;

/// Bars of the steps; more are put together, each with its largest.
const BARS: usize = 40;

/// Values of the table of all values.
const VALUES: usize = 100;

pub(super) fn page(output: &HloMemory) -> Page {
    let title = if output.program.is_empty() {
        "Memory of a compiled program".to_owned()
    } else {
        format!("Memory of {}", output.program)
    };
    let mut page = Page::new(&title, HloMemoryAnalysis::ABOUT);
    page.not_captured.clone_from(&output.not_captured);
    if output.allocated_bytes > 0 {
        page.tiles([
            ("Peak of values", output.peak_bytes.into(), Unit::Bytes),
            ("Allocated", output.allocated_bytes.into(), Unit::Bytes),
            ("Parameters", output.parameters_bytes.into(), Unit::Bytes),
            ("Results", output.outputs_bytes.into(), Unit::Bytes),
            ("Temporaries", output.temporaries_bytes.into(), Unit::Bytes),
            ("Constants", output.constants_bytes.into(), Unit::Bytes),
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
        let all = output.buffers.get(..VALUES).unwrap_or(&output.buffers);
        let mut all_values = values("Lifetimes of values", all);
        let more = u64::try_from(output.buffers.len().saturating_sub(VALUES)).unwrap_or(u64::MAX);
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
    let per_bar = output.steps.len().div_ceil(BARS).max(1);
    let mut labels = Vec::new();
    let (mut fixed, mut others) = (Vec::new(), Vec::new());
    for chunk in output.steps.chunks(per_bar) {
        if let Some(most) = chunk
            .iter()
            .reduce(|most, step| if step.bytes > most.bytes { step } else { most })
        {
            labels.push(most.instruction.clone());
            fixed.push(Some(approximate(output.fixed_bytes.into())));
            let heap = most.bytes.saturating_sub(output.fixed_bytes);
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
    let columns = [
        ("Value of", Unit::None),
        ("Opcode", Unit::None),
        ("Shape", Unit::None),
        ("Size", Unit::Bytes),
        ("Use", Unit::None),
        ("Begins at", Unit::None),
        ("Ends at", Unit::None),
        ("Allocation", Unit::None),
        ("Offset", Unit::Bytes),
        ("Framework operation", Unit::None),
        ("Source", Unit::None),
    ];
    let mut table = Table::new(title, &columns);
    for buffer in buffers {
        let kind = match buffer.kind {
            HloBufferUse::Parameter => "parameter",
            HloBufferUse::Output => "result",
            HloBufferUse::Constant => "constant",
            HloBufferUse::Temporary => "temporary",
        };
        table.push([
            buffer.instruction.as_str().into(),
            buffer.opcode.as_str().into(),
            buffer.shape.as_str().into(),
            buffer.bytes.into(),
            kind.into(),
            buffer.begin_step.into(),
            buffer.end_step.into(),
            buffer.allocation.into(),
            buffer.offset_bytes.into(),
            buffer.framework_op.as_str().into(),
            buffer.source.as_deref().into(),
        ]);
    }
    table.without_unknown();
    table
}
