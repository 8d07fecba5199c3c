//! The unit of a metric by its name: a report holds names and values alone.
//!
//! Names follow [NVIDIA's scheme](https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#metrics-structure):
//! `unit__quantity_qualifiers.rollup.submetric`. Only quantities that the scheme makes plain have a unit here; the rest have none rather
//! than a wrong one.

/// What is counted, by a word of the name behind its hardware unit.
const QUANTITIES: [(&str, &str); 9] = [
    ("time_duration", "ns"),
    ("cycles_active", "cycle"),
    ("cycles_elapsed", "cycle"),
    ("bytes", "byte"),
    ("sectors", "sector"),
    ("inst_executed", "inst"),
    ("inst_issued", "inst"),
    ("warps_active", "warp"),
    ("thread_inst", "inst"),
];

/// Hardware whose counters follow the scheme.
const HARDWARE: [&str; 9] = ["dram", "fbpa", "gpc", "gpu", "l1tex", "ltc", "lts", "sm", "smsp"];

/// Metrics of launches, which are told one by one.
const OF_LAUNCHES: [(&str, &str); 5] = [
    ("launch__registers_per_thread", "register/thread"),
    ("launch__shared_mem_per_block", "byte/block"),
    ("launch__shared_mem_config_size", "byte"),
    ("launch__thread_count", "thread"),
    ("launch__occupancy_limit_", "block"),
];

/// The unit of the metric `name`; empty for numbers without one, and where the name does not tell.
pub(super) fn unit_of(name: &str) -> &'static str {
    let mut parts = name.split('.');
    let counter = parts.next().unwrap_or_default();
    let of_launch = OF_LAUNCHES.iter().find(|(begin, _)| counter.starts_with(begin));
    if let Some((_, unit)) = of_launch {
        return unit;
    }
    let submetric = parts.nth(1);
    let is_share = submetric
        .or(name.rsplit('.').next())
        .is_some_and(|part| part.starts_with("pct"));
    if (is_share || counter.ends_with("_pct")) && !name.contains(':') {
        return "%";
    }
    let quantity = counter
        .split_once("__")
        .filter(|(hardware, _)| HARDWARE.contains(hardware))
        .and_then(|(_, rest)| QUANTITIES.iter().find(|(word, _)| rest.contains(word)))
        .map(|(_, unit)| *unit);
    match (quantity, submetric) {
        // A ratio has a unit of its own.
        (Some(_), None) if name.rsplit('.').next() == Some("ratio") => "",
        (Some(unit), None) => unit,
        (Some("cycle"), Some("per_second")) => "hz",
        (Some("byte"), Some("per_second")) => "byte/s",
        (Some("sector"), Some("per_second")) => "sector/s",
        (Some("inst"), Some("per_second")) => "inst/s",
        (Some("byte"), Some(part)) if is_per_cycle(part) => "byte/cycle",
        (Some("sector"), Some(part)) if is_per_cycle(part) => "sector/cycle",
        (Some("inst"), Some(part)) if is_per_cycle(part) => "inst/cycle",
        _ => "",
    }
}

fn is_per_cycle(submetric: &str) -> bool {
    submetric == "peak_sustained" || submetric.starts_with("per_cycle")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_their_unit_or_none() {
        for (name, unit) in [
            ("gpu__time_duration.sum", "ns"),
            ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "%"),
            ("lts__t_sector_hit_rate.pct", "%"),
            ("sm__maximum_warps_per_active_cycle_pct", "%"),
            ("dram__bytes_read.sum", "byte"),
            ("dram__bytes_read.sum.per_second", "byte/s"),
            ("dram__bytes.sum.peak_sustained", "byte/cycle"),
            ("sm__cycles_elapsed.avg.per_second", "hz"),
            ("sm__inst_executed.avg.per_cycle_active", "inst/cycle"),
            ("smsp__thread_inst_executed_per_inst_executed.ratio", ""),
            ("launch__registers_per_thread", "register/thread"),
            ("launch__grid_size", ""),
            ("device__attribute_total_memory_bytes", ""),
        ] {
            assert_eq!(unit_of(name), unit, "{name}");
        }
    }
}
