//! The unit of a metric by its name: a report holds names and values alone.
//!
//! Units are those of NVIDIA's own reader, which has them by name and GPU, and none for many
//! metrics that have one in fact: requests of L1 are plain numbers there, those of L2 are requests.
//! Tables here say it of the counters of the sections that Nsight Compute brings. Names follow
//! NVIDIA's scheme, `unit__quantity_qualifiers.rollup.submetric`
//! (<https://docs.nvidia.com/nsight-compute/ProfilingGuide/index.html#metrics-structure>).

/// Metrics without a rollup: how the name begins and ends, and the unit. The first that fits
/// counts.
const ALONE: [(&str, &str, &str); 32] = [
    ("derived__avg_thread_executed", "", "thread"),
    ("derived__memory_l2_theoretical_sectors_", "_excessive", "byte"),
    ("derived__pct_occupancy_per_block_size", "", "%"),
    ("derived__pct_occupancy_per_register_count", "", "%/register"),
    ("derived__pct_occupancy_per_shared_mem_size", "", "%/byte"),
    ("derived__sm", "_x2", "thread"),
    ("inst_executed", "", "inst"),
    ("launch__block_dim_", "", "block"),
    ("launch__cluster_max_active", "", "cluster"),
    ("launch__cluster_max_potential_size", "", "block"),
    ("launch__occupancy_limit_", "", "block"),
    ("launch__registers_per_thread", "", "register/thread"),
    ("launch__shared_mem_config_size", "", "byte"),
    ("launch__shared_mem_per_block", "", "byte/block"),
    ("launch__sm_count", "", "SM"),
    ("launch__thread_count", "", "thread"),
    ("memory_l1_", "", "sectors"),
    ("memory_l2_theoretical_sectors_", "", "sectors"),
    ("profiler__replayer_passes", "", "pass"),
    ("sass__inst_executed_", "_loads", "inst"),
    ("sass__inst_executed_", "_stores", "inst"),
    ("sm__maximum_warps_avg_per_active_cycle", "", "warp"),
    ("smsp__branch_targets_threads_", "", "branches"),
    ("smsp__inst_executed_", "", "inst"),
    ("smsp__maximum_warps_avg_per_active_cycle", "", "warp"),
    ("smsp__pcsamp_", "bytes", "byte"),
    ("smsp__pcsamp_aggregated_passes", "", "pass"),
    ("smsp__pcsamp_interval_cycles", "", "cycle"),
    ("smsp__pcsamp_warps_issue_stalled_branch_resolving", "", "branches"),
    ("smsp__pcsamp_warps_issue_stalled_no_instructions", "", "inst"),
    ("smsp__pcsamp_warps_issue_stalled_", "", "warp"),
    ("thread_inst_executed", "", "inst"),
];

/// Ratios, likewise. Others have no unit.
const RATIOS: [(&str, &str, &str); 4] = [
    ("smsp__average_warp", "_per_inst_executed", "cycle"),
    ("smsp__average_warp", "_per_inst_issued", "cycle"),
    ("smsp__average_warps_issue_stalled_", "_per_issue_active", "inst"),
    ("smsp__sass_average_data_bytes_per_sector_", "", "byte/sector"),
];

/// Hardware whose counters have units.
const HARDWARE: [&str; 17] = [
    "ctc", "dram", "fbpa", "gpc", "gpu", "gr", "idc", "l1tex", "ltc", "lts", "nvlrx", "nvltx", "pcie", "profiler",
    "sm", "smsp", "tpc",
];

/// What is counted: the hardware, where not all of it, a word behind it, and the unit. The first
/// that fits counts.
const QUANTITIES: [(&str, &str, &str); 20] = [
    ("", "time_duration", "ns"),
    ("profiler", "replayer_bytes", "byte"),
    ("", "cycles_active", "cycle"),
    ("", "cycles_elapsed", "cycle"),
    ("", "_writeback_active", "cycle"),
    ("", "issue_active", "cycle"),
    ("", "issue_inst0", "cycle"),
    ("", "bytes", "byte"),
    ("", "sectors", "sector"),
    ("lts", "t_requests", "request"),
    ("lts", "t_tag_requests", "tag"),
    ("", "inst_executed", "inst"),
    ("", "inst_issued", "inst"),
    ("", "warps_active", "warp"),
    ("", "warps_eligible", "warp"),
    ("", "warps_issue_stalled", "warp"),
    ("", "thread_inst", "inst"),
    ("", "branch_targets_threads", "branches"),
    ("", "ctas_launched", "block"),
    ("l1tex", "tmain_requests", "inst"),
];

/// The unit of the metric `name`; empty for numbers without one, and where the name does not tell.
pub(super) fn unit_of(name: &str) -> String {
    let name = name.strip_prefix("breakdown:").unwrap_or(name);
    if name.contains(':') {
        return String::new();
    }
    let mut parts = name.split('.');
    let counter = parts.next().unwrap_or_default();
    let of_table = |table: &[(&str, &str, &str)]| {
        let found = table
            .iter()
            .find(|(begin, end, _)| counter.starts_with(begin) && counter.ends_with(end));
        found.map(|(_, _, unit)| (*unit).to_owned())
    };
    let share = |is_share: bool| if is_share { "%".to_owned() } else { String::new() };
    match (parts.next(), parts.next(), parts.next_back()) {
        (None, ..) => of_table(&ALONE).unwrap_or_else(|| share(counter.ends_with("_pct"))),
        (Some("ratio"), ..) => of_table(&RATIOS).unwrap_or_default(),
        (Some(rollup), None, _) if rollup.starts_with("pct") => share(true),
        (_, Some(submetric), _) if submetric.starts_with("pct") => share(true),
        (_, Some("per_second"), _) | (_, _, Some("per_second")) => match quantity(counter) {
            "" => "1/s".to_owned(),
            "cycle" => "hz".to_owned(),
            unit => format!("{unit}/s"),
        },
        (_, Some(submetric), _) if is_per_cycle(submetric) => match quantity(counter) {
            "" => "1/cycle".to_owned(),
            // Cycles of cycles are a share, and warps are those at a time.
            "cycle" => String::new(),
            "warp" => "warp".to_owned(),
            unit => format!("{unit}/cycle"),
        },
        _ => quantity(counter).to_owned(),
    }
}

/// What a counter counts.
fn quantity(counter: &str) -> &'static str {
    let Some((hardware, words)) = counter.split_once("__").filter(|(of, _)| HARDWARE.contains(of)) else {
        return "";
    };
    let fits = |(of, word, _): &&(&str, &str, &str)| (of.is_empty() || *of == hardware) && words.contains(word);
    QUANTITIES.iter().find(fits).map_or("", |(_, _, unit)| *unit)
}

fn is_per_cycle(submetric: &str) -> bool {
    ["peak_sustained", "peak_burst"].contains(&submetric) || submetric.starts_with("per_cycle")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_unit_that_nvidias_reader_has() {
        for (name, unit) in [
            ("gpu__time_duration.sum", "ns"),
            ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "%"),
            ("breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed", "%"),
            ("group:memory__chart", ""),
            ("lts__t_sector_hit_rate.pct", "%"),
            ("sm__maximum_warps_per_active_cycle_pct", "%"),
            ("sm__maximum_warps_avg_per_active_cycle", "warp"),
            ("dram__bytes_read.sum", "byte"),
            ("dram__bytes_read.sum.per_second", "byte/s"),
            ("dram__bytes.sum.peak_sustained", "byte/cycle"),
            ("lts__t_sectors.sum.peak_sustained_elapsed.per_second", "sector/s"),
            ("lts__t_sectors.sum.peak_sustained_elapsed", "sector"),
            ("sm__cycles_elapsed.avg.per_second", "hz"),
            ("sm__inst_executed.avg.per_cycle_active", "inst/cycle"),
            ("sm__warps_active.avg.per_cycle_active", "warp"),
            ("smsp__warps_active.avg.peak_sustained", "warp"),
            // A cycle of each cycle.
            ("smsp__issue_active.avg.per_cycle_active", ""),
            ("l1tex__tex_writeback_active.sum", "cycle"),
            // Requests of L1 are numbers, those of L2 are requests.
            ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", ""),
            ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum.per_second", "1/s"),
            ("lts__t_requests_srcunit_tex_op_read.sum", "request"),
            ("smsp__thread_inst_executed_per_inst_executed.ratio", ""),
            ("smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", "inst"),
            ("smsp__average_warp_latency_per_inst_issued.ratio", "cycle"),
            (
                "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
                "byte/sector",
            ),
            ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", "%"),
            ("smsp__pcsamp_warps_issue_stalled_no_instructions_not_issued", "inst"),
            ("smsp__pcsamp_warps_issue_stalled_wait", "warp"),
            ("smsp__pcsamp_sample_count", ""),
            ("profiler__replayer_bytes_mem_accessible.max", "byte"),
            ("launch__registers_per_thread", "register/thread"),
            ("launch__block_dim_x", "block"),
            ("launch__grid_size", ""),
            ("sass__inst_executed_global_loads", "inst"),
            ("sass__inst_executed_per_opcode", ""),
            // NVIDIA's reader counts them in bytes.
            ("derived__memory_l2_theoretical_sectors_global_excessive", "byte"),
            ("derived__memory_l1_wavefronts_shared_excessive", ""),
            ("memory_l1_wavefronts_shared", "sectors"),
            ("device__attribute_total_memory_bytes", ""),
            ("", ""),
        ] {
            assert_eq!(unit_of(name), unit, "{name}");
        }
    }
}
