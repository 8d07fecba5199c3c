//! The launch as people read it.

use flopwatch_measures::speed_of_light::Limiter;
use flopwatch_model::{RuleKind, RuleResult, Scope, whole};
use flopwatch_report::page::{Bars, Cell, Page, Series, Table, Unit};

use super::LaunchDetails;

/// Most lines of code.
const MOST_LINES: usize = 400;
/// Most bars of a list of parts.
const MOST_PARTS: usize = 12;

pub(super) fn of(details: &LaunchDetails) -> Page {
    let about = match (&details.device, details.launch) {
        (_, None) => String::new(),
        (Some(device), Some(id)) => format!("Launch {id} on {device}, as Nsight Compute measured it: replayed alone."),
        (None, Some(id)) => format!("Launch {id}, as Nsight Compute measured it: replayed alone."),
    };
    let title = if details.name.is_empty() {
        "Profiled kernel"
    } else {
        &details.name
    };
    let mut page = Page::new(title, &about);
    page.not_captured.clone_from(&details.not_captured);
    if details.launch.is_none() {
        return page;
    }
    figures(&mut page, details);
    if !details.rules.is_empty() {
        rules(&mut page, details);
    }
    let light = &details.speed_of_light;
    for (title, parts) in [
        ("Compute by unit", &light.compute_parts),
        ("Caches and memory by unit", &light.memory_parts),
    ] {
        let parts: Vec<_> = parts.iter().filter(|part| part.share > 0.0).take(MOST_PARTS).collect();
        let bars = parts.iter().map(|part| (unit_name(&part.metric), part.share));
        bars_of(&mut page, title, "of its peak", Unit::Ratio, bars);
    }
    occupancy(&mut page, details);
    memory(&mut page, details);
    let stalls = details.stalls.iter().filter(|stall| stall.cycles_per_instruction > 0.0);
    bars_of(
        &mut page,
        "Cycles of a warp between two instructions",
        "cycles",
        Unit::None,
        stalls.map(|stall| (stall.reason.replace('_', " "), stall.cycles_per_instruction)),
    );
    let opcodes = details.mix.opcodes.iter().take(2 * MOST_PARTS);
    let executed = opcodes.map(|opcode| {
        (
            opcode.name.clone(),
            flopwatch_model::approximate(opcode.executed.into()),
        )
    });
    bars_of(
        &mut page,
        "Instructions of warps by opcode",
        "executed",
        Unit::None,
        executed,
    );
    if !details.source_lines.is_empty() {
        page.table(source_lines(details));
    }
    if !details.instructions.is_empty() {
        page.table(instructions(details));
    }
    ranges(&mut page, details);
    page
}

fn figures(page: &mut Page, details: &LaunchDetails) {
    let by = |[x, y, z]: [u32; 3]| Cell::from(format!("{x} × {y} × {z}"));
    let light = &details.speed_of_light;
    let figures = details.figures.unwrap_or_default();
    page.tiles([
        ("Duration", figures.duration_ns.into(), Unit::Ns),
        ("Bound by", light.limiter.map(Limiter::label).into(), Unit::None),
        ("Compute", light.compute_share.into(), Unit::Ratio),
        ("Caches and memory", light.memory_share.into(), Unit::Ratio),
        (
            "DRAM bandwidth",
            figures.bandwidth_bytes_per_second.into(),
            Unit::BytesPerSecond,
        ),
        ("Occupancy", details.occupancy.achieved.into(), Unit::Ratio),
        ("Occupancy at most", details.occupancy.theoretical.into(), Unit::Ratio),
        ("Grid", by(details.grid), Unit::None),
        ("Block", by(details.block), Unit::None),
        ("Waves", details.occupancy.waves.into(), Unit::None),
    ]);
}

/// `sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed` without what all of them end in.
fn unit_name(metric: &str) -> String {
    metric
        .split('.')
        .next()
        .unwrap_or(metric)
        .replace("__", ": ")
        .replace('_', " ")
}

fn bars_of(page: &mut Page, title: &str, series: &str, unit: Unit, bars: impl Iterator<Item = (String, f64)>) {
    let (labels, values): (Vec<String>, Vec<Option<f64>>) = bars.map(|(label, value)| (label, Some(value))).unzip();
    if labels.is_empty() {
        return;
    }
    let name = series.to_owned();
    page.bars(Bars {
        title: title.to_owned(),
        unit,
        stacked: false,
        labels,
        series: vec![Series { name, values }],
    });
}

/// A table of what rules said, and their messages in full: they are longer than a cell.
fn rules(page: &mut Page, details: &LaunchDetails) {
    let columns = [
        ("Says", Unit::None),
        ("Rule", Unit::None),
        ("Section", Unit::None),
        ("Estimated gain", Unit::None),
        ("From", Unit::None),
    ];
    let mut table = Table::new("NVIDIA's rules", &columns);
    "What the rules of Nsight Compute said when the report was made. Gains are NVIDIA's estimates: local ones are of what the rule looks at, not of the launch."
        .clone_into(&mut table.about);
    let mut rules: Vec<&RuleResult> = details.rules.iter().collect();
    rules.sort_by_key(|rule| match rule.kind {
        RuleKind::Optimization => 0,
        RuleKind::Warning => 1,
        RuleKind::Error => 2,
        RuleKind::Information => 3,
    });
    let mut messages = Vec::new();
    for rule in rules {
        let kind = match rule.kind {
            RuleKind::Information => "information",
            RuleKind::Optimization => "optimisation",
            RuleKind::Warning => "warning",
            RuleKind::Error => "error",
        };
        let gain = rule.speedup.map(|speedup| {
            let scope = match speedup.scope {
                Scope::Unknown => "",
                Scope::Local => ", local",
                Scope::Global => ", of the launch",
            };
            format!("{:.1} %{scope}", speedup.percent)
        });
        let name = if rule.title.is_empty() {
            rule.name.clone()
        } else {
            format!("{}: {}", rule.name, rule.title)
        };
        let from: Vec<String> = rule
            .metrics
            .iter()
            .map(|of| format!("{}: {}", of.name, of.info))
            .collect();
        messages.push(format!("{name}. {}", plain(&rule.text)));
        table.push([
            kind.into(),
            name.into(),
            rule.section.as_str().into(),
            gain.into(),
            if from.is_empty() {
                Cell::Nothing
            } else {
                from.join("; ").into()
            },
        ]);
    }
    table.without_unknown();
    page.table(table);
    page.text("What they say, in NVIDIA's words", messages.join("\n\n"));
}

/// NVIDIA's text without its marks: `@section:Occupancy:Occupancy@` is `Occupancy`, a link its title.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        let (before, mark) = rest.split_at(at);
        out.push_str(before);
        let inside = mark.get(1..).unwrap_or_default();
        let known = ["section:", "url:", "source:"]
            .iter()
            .find_map(|kind| inside.strip_prefix(kind).map(|inside| (*kind, inside)));
        if let Some((kind, (body, behind))) = known.and_then(|(kind, inside)| Some((kind, inside.split_once('@')?))) {
            let title = match kind {
                "section:" => body.rsplit(':').next(),
                _ => body.split(':').next(),
            };
            out.push_str(title.unwrap_or(body));
            rest = behind;
        } else {
            out.push('@');
            rest = inside;
        }
    }
    out.push_str(rest);
    out
}

fn occupancy(page: &mut Page, details: &LaunchDetails) {
    let occupancy = &details.occupancy;
    if occupancy.limits.is_empty() {
        return;
    }
    let columns = [
        ("Resource", Unit::None),
        ("Blocks per multiprocessor", Unit::None),
        ("Limits the launch", Unit::None),
    ];
    let mut table = Table::new("What limits occupancy", &columns);
    let said = [
        occupancy
            .registers_per_thread
            .map(|count| format!("{count} registers per thread")),
        occupancy
            .shared_memory_per_block_bytes
            .map(|bytes| format!("{bytes} bytes of shared memory per block")),
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    table.about = if said.is_empty() {
        String::new()
    } else {
        format!("{}.", said.join(", "))
    };
    for limit in &occupancy.limits {
        let resource = match limit.resource.as_str() {
            "shared_mem" => "shared memory",
            "warps" => "warps (block size)",
            other => other,
        };
        table.push([resource.into(), limit.blocks.into(), limit.limits.into()]);
    }
    page.table(table);
}

fn memory(page: &mut Page, details: &LaunchDetails) {
    if !details.caches.is_empty() {
        let columns = [("Memory", Unit::None), ("Hits", Unit::Ratio), ("Busy", Unit::Ratio)];
        let mut table = Table::new("Caches", &columns);
        for cache in &details.caches {
            table.push([
                cache.name.as_str().into(),
                cache.hit_ratio.into(),
                cache.busy_ratio.into(),
            ]);
        }
        page.table(table);
    }
    if !details.links.is_empty() {
        let columns = [
            ("From", Unit::None),
            ("To", Unit::None),
            ("Bytes", Unit::Bytes),
            ("Bandwidth", Unit::BytesPerSecond),
            ("Of its peak", Unit::Ratio),
        ];
        let mut table = Table::new("Bytes between memories", &columns);
        for link in &details.links {
            table.push([
                link.from.as_str().into(),
                link.to.as_str().into(),
                link.bytes.into(),
                link.bytes_per_second.into(),
                link.peak_ratio.into(),
            ]);
        }
        page.table(table);
    }
    if !details.accesses.is_empty() {
        let columns = [
            ("Memory", Unit::None),
            ("Operation", Unit::None),
            ("Requests", Unit::None),
            ("Sectors", Unit::None),
            ("Sectors per request", Unit::None),
            ("L1 hits", Unit::Ratio),
            ("Bank conflicts", Unit::None),
        ];
        let mut table = Table::new("Loads and stores", &columns);
        "A request is an instruction of a warp, a sector 32 bytes: 32 threads that touch 4 bytes side by side need 4."
            .clone_into(&mut table.about);
        for access in &details.accesses {
            table.push([
                access.memory.as_str().into(),
                access.operation.as_str().into(),
                access.requests.into(),
                access.sectors.into(),
                access.sectors_per_request.into(),
                access.hit_ratio.into(),
                access.bank_conflicts.into(),
            ]);
        }
        table.without_unknown();
        page.table(table);
    }
}

/// Eight characters for a share of what is most, so that what is hot is seen at a glance.
fn heat(share: Option<f64>, most: f64) -> Cell {
    const EIGHTHS: [&str; 9] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];
    const CHARACTERS: f64 = 8.0;
    let Some(share) = share.filter(|share| *share > 0.0 && most > 0.0) else {
        return Cell::Nothing;
    };
    let eighths = usize::try_from(whole(share / most * CHARACTERS * 8.0))
        .unwrap_or(0)
        .max(1);
    let part = EIGHTHS.get(eighths % 8).copied().unwrap_or_default();
    format!("{}{part}", "█".repeat(eighths / 8)).into()
}

/// The last part of a path, which tells files apart in most captures.
fn short(place: &str) -> &str {
    place.rsplit('/').next().unwrap_or(place)
}

fn source_lines(details: &LaunchDetails) -> Table {
    let columns = [
        ("Line", Unit::None),
        ("Heat", Unit::None),
        ("Of all", Unit::Ratio),
        ("Samples", Unit::None),
        ("Mostly", Unit::None),
        ("Executed", Unit::None),
        ("Threads", Unit::None),
        ("Instructions", Unit::None),
        ("Source", Unit::None),
        ("File", Unit::None),
    ];
    let mut table = Table::new("Source lines", &columns);
    if let Some(coverage) = &details.line_coverage {
        table.about = format!(
            "Sums over the instructions that a line was made into, the hottest first. {} of {} instructions and {} of {} samples have a line. \
             What was inlined counts where NVIDIA's tools count it: at the first line that the table of lines gives the instruction.",
            coverage.instructions_with_line, coverage.instructions, coverage.samples_with_line, coverage.samples
        );
    }
    let mut files: Vec<&str> = details.source_lines.iter().map(|line| line.file.as_str()).collect();
    files.dedup();
    let only = files.len() == 1;
    if let Some(file) = files.first().filter(|_| only) {
        table.about = format!("All of {file}. {}", table.about);
    }
    table.left_out = details.source_lines_left_out;
    let most = details.source_lines.iter().filter_map(|line| line.sample_ratio);
    let most = most.fold(0.0, f64::max);
    for line in &details.source_lines {
        table.push([
            format!("{}:{}", short(&line.file), line.line).into(),
            heat(line.sample_ratio, most),
            line.sample_ratio.into(),
            line.samples.into(),
            line.stall.as_deref().map(|stall| stall.replace('_', " ")).into(),
            line.executed.into(),
            line.threads.into(),
            line.instructions.into(),
            line.text.as_deref().into(),
            if only { Cell::Nothing } else { line.file.as_str().into() },
        ]);
    }
    table.without_unknown();
    table
}

fn instructions(details: &LaunchDetails) -> Table {
    let columns = [
        ("Offset", Unit::None),
        ("Instruction", Unit::None),
        ("Heat", Unit::None),
        ("Of all", Unit::Ratio),
        ("Samples", Unit::None),
        ("Mostly", Unit::None),
        ("Executed", Unit::None),
        ("Threads", Unit::None),
        ("Line", Unit::None),
        ("PTX line", Unit::None),
    ];
    let mut table = Table::new("Instructions by address", &columns);
    let architecture = details
        .architecture
        .as_deref()
        .map(|name| format!(" Machine code of {name}."));
    table.about = format!(
        "Bytes behind the kernel's first instruction. Samples are of warps that were at the instruction, most of them in the state that is named.{}",
        architecture.unwrap_or_default()
    );
    table.left_out = details.instructions_left_out;
    let most = details.instructions.iter().filter_map(|of| of.sample_ratio);
    let most = most.fold(0.0, f64::max);
    for instruction in &details.instructions {
        let inlined = instruction.inlined.iter().map(|place| short(place));
        let line = match instruction.source.as_deref() {
            // The innermost line first, and behind it where that was inlined.
            Some(_) if !instruction.inlined.is_empty() => Some(inlined.collect::<Vec<_>>().join(" ← ")),
            source => source.map(|source| short(source).to_owned()),
        };
        table.push([
            format!("{:#06x}", instruction.offset_bytes).into(),
            instruction.text.as_deref().into(),
            heat(instruction.sample_ratio, most),
            instruction.sample_ratio.into(),
            instruction.samples.into(),
            instruction.stall.as_deref().map(|stall| stall.replace('_', " ")).into(),
            instruction.executed.into(),
            instruction.threads.into(),
            line.into(),
            instruction.ptx_line.map(u64::from).into(),
        ]);
    }
    table.without_unknown();
    table
}

fn ranges(page: &mut Page, details: &LaunchDetails) {
    if let Some(code) = &details.code {
        for (title, text) in [("Source", &code.source), ("PTX of its module", &code.ptx)] {
            let count = text.lines().count();
            let mut shown: Vec<String> = text.lines().take(MOST_LINES).map(str::to_owned).collect();
            if count > shown.len() {
                shown.push(format!(
                    "... and {} more lines, which are in the JSON of this page",
                    count - shown.len()
                ));
            }
            if !shown.is_empty() {
                page.text(
                    title,
                    shown.join(
                        "
",
                    ),
                );
            }
        }
        if code.machine_code_bytes > 0 {
            let told = format!("{} bytes of machine code in its module.", code.machine_code_bytes);
            page.text("Machine code", told);
        }
    }
    if !details.ranges.is_empty() {
        let ranges = details.ranges.iter().map(|range| {
            if range.domain.is_empty() {
                range.name.clone()
            } else {
                format!("{}: {}", range.domain, range.name)
            }
        });
        page.text("Annotated ranges around it", ranges.collect::<Vec<String>>().join("\n"));
    }
    if !details.sections.is_empty() {
        page.text("Sections of the report", details.sections.join(", "));
    }
}
