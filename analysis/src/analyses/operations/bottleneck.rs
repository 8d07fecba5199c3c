//! The operations that cost most, and why.

use flopwatch_model::{RowId, approximate};
use schemars::JsonSchema;
use serde::Serialize;

use super::Operation;

/// An operation that costs much.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OperationBottleneck {
    /// Name of the operation.
    pub operation: String,
    /// What it costs in ns: the longer of its own time on the host and the time of the GPU work
    /// that it launched itself.
    pub cost_ns: u64,
    /// Its share of the own time of all operations.
    pub self_ratio: f64,
    /// Number of calls of the operation.
    pub calls: u64,
    /// Its longest call: start in ns.
    pub longest_start_ns: u64,
    /// Its longest call: end in ns.
    pub longest_end_ns: u64,
    /// The timeline's row of that call; null where the operations are of no timeline.
    pub longest_row: Option<RowId>,
    /// What stands out, the gravest first. Empty where nothing does but its cost.
    pub reasons: Vec<OperationReason>,
}

/// What stands out of an operation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OperationReason {
    /// Which rule it is.
    pub rule: OperationRule,
    /// The figures and what they mean.
    pub text: String,
}

/// The rules by which an operation stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperationRule {
    /// Transfers and overhead take longer than the GPU: the CPU may be the better place.
    CpuMayBeBetter,
    /// The host waits for the GPU for half of the time or longer.
    WaitsForGpu,
    /// Calls of the CUDA API take half of the time or longer.
    ApiBound,
    /// It launches GPU work and spends four fifths of its time or more on the host outside of the
    /// CUDA API, longer than the GPU works.
    HostBound,
    /// The GPU works longer on what the operation launches than its calls last.
    GpuBound,
    /// The longest call takes ten times the mean or longer.
    Uneven,
    /// A thousand calls or more of less than 20 µs on average.
    ManyShortCalls,
}

/// From this share of the time on the host waits or calls the API for long.
const MIN_WAIT_SHARE: f64 = 0.5;
/// From this share on the host's own work is what takes long.
const MIN_HOST_SHARE: f64 = 0.8;
/// Times the mean from which on the longest call stands out.
const MIN_LONGEST_TO_MEAN: f64 = 10.0;
/// Calls from which on they are many.
const MIN_MANY_CALLS: u64 = 1000;
/// Mean length in ns below which calls are short: a kernel's launch takes as long as that.
const SHORT_NS: f64 = 20_000.0;

/// The longer of the own time on the host and on the GPU.
fn cost_ns(operation: &Operation) -> u64 {
    operation.self_ns.max(operation.self_gpu_ns.unwrap_or(0))
}

/// The `top` operations that cost most.
pub(super) fn bottlenecks(operations: &[Operation], top: usize) -> Vec<OperationBottleneck> {
    let mut costly: Vec<&Operation> = operations.iter().filter(|operation| cost_ns(operation) > 0).collect();
    costly.sort_by(|a, b| cost_ns(b).cmp(&cost_ns(a)).then_with(|| a.operation.cmp(&b.operation)));
    let bottleneck = |operation: &&Operation| OperationBottleneck {
        operation: operation.operation.clone(),
        cost_ns: cost_ns(operation),
        self_ratio: operation.self_ratio,
        calls: operation.calls,
        longest_start_ns: operation.longest_start_ns,
        longest_end_ns: operation.longest_end_ns,
        longest_row: operation.longest_row,
        reasons: reasons(operation),
    };
    costly.iter().take(top).map(bottleneck).collect()
}

fn reasons(operation: &Operation) -> Vec<OperationReason> {
    let mut reasons = Vec::new();
    let mut add = |rule, text| reasons.push(OperationReason { rule, text });
    let total = operation.total_ns;
    let share = |part: u64| {
        if total == 0 {
            0.0
        } else {
            approximate(part.into()) / approximate(total.into())
        }
    };
    let percent = |part: u64| format!("{:.0} %", share(part) * 100.0);
    if let (Some(gpu), Some(transfer), Some(overhead)) =
        (operation.gpu_ns, operation.transfer_ns, operation.overhead_ns)
    {
        // A call that only copies has nothing that another place could compute.
        if gpu > 0 && transfer.saturating_add(overhead) > gpu {
            let text = format!(
                "transfers ({}) and overhead ({}) take longer than the GPU ({}): the CPU may be the better place, or the calls should be fewer and larger",
                duration(transfer),
                duration(overhead),
                duration(gpu)
            );
            add(OperationRule::CpuMayBeBetter, text);
        }
    }
    if let Some(wait) = operation.wait_ns.filter(|wait| share(*wait) >= MIN_WAIT_SHARE) {
        let text = format!("the host waits for the GPU for {} of the time", percent(wait));
        add(OperationRule::WaitsForGpu, text);
    }
    if let Some(overhead) = operation
        .overhead_ns
        .filter(|overhead| share(*overhead) >= MIN_WAIT_SHARE)
    {
        let text = format!(
            "{} of the time is inside of the CUDA API and no waiting",
            percent(overhead)
        );
        add(OperationRule::ApiBound, text);
    }
    if let (Some(cpu), Some(gpu)) = (operation.cpu_ns, operation.gpu_ns)
        && gpu > 0
    {
        if share(cpu) >= MIN_HOST_SHARE && cpu > gpu {
            let text = format!(
                "{} of the time is the host's own work, longer than the GPU works ({})",
                percent(cpu),
                duration(gpu)
            );
            add(OperationRule::HostBound, text);
        } else if gpu > total {
            let text = format!(
                "the GPU works {} on what the host launches in {}",
                duration(gpu),
                duration(total)
            );
            add(OperationRule::GpuBound, text);
        }
    }
    let mean = operation.avg_ns;
    if operation.calls > 2 && approximate(operation.max_ns.into()) >= MIN_LONGEST_TO_MEAN * mean {
        let times = approximate(operation.max_ns.into()) / mean;
        let text = format!("the longest call takes {times:.0} times the mean of {}", rounded(mean));
        add(OperationRule::Uneven, text);
    }
    if operation.calls >= MIN_MANY_CALLS && mean < SHORT_NS {
        let text = format!(
            "{} calls of {} on average: batch or fuse them",
            operation.calls,
            rounded(mean)
        );
        add(OperationRule::ManyShortCalls, text);
    }
    reasons
}

/// A length of time for people.
fn duration(ns: u64) -> String {
    rounded(approximate(ns.into()))
}

fn rounded(ns: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    let unit = units.into_iter().find(|(size, _)| ns >= *size);
    unit.map_or_else(
        || format!("{ns:.0} ns"),
        |(size, unit)| format!("{:.2} {unit}", ns / size),
    )
}
