//! Caches, the bytes between them, and how loads and stores use what is moved for them.

use std::collections::BTreeMap;

use flopwatch_measures::kernel_figures::{per_second, share};
use flopwatch_model::Metric;
use schemars::JsonSchema;
use serde::Serialize;

use super::occupancy::whole;

/// A cache or the device's memory. Shares are 0 to 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Cache {
    /// `L1/TEX`, `L2` or `DRAM`.
    pub name: String,
    /// Sectors that it had, of those that were asked for.
    pub hit_ratio: Option<f64>,
    /// Its busiest part, against its peak.
    pub busy_ratio: Option<f64>,
}

/// Bytes from one place to another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Link {
    /// Where they come from.
    pub from: String,
    /// Where they go.
    pub to: String,
    /// Bytes that went this way; null where the report does not say.
    pub bytes: Option<u64>,
    /// How many in a second.
    pub bytes_per_second: Option<f64>,
    /// That against its peak, 0 to 1.
    pub peak_ratio: Option<f64>,
}

/// Loads or stores of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Access {
    /// The memory: `global`, `local`, `shared`.
    pub memory: String,
    /// What was done: `load`, `store`.
    pub operation: String,
    /// Requests: one per instruction of a warp.
    pub requests: u64,
    /// Sectors of 32 bytes that were touched; null for shared memory, which has none.
    pub sectors: Option<u64>,
    /// Sectors per request: 4 where 32 threads touch 4 bytes each, side by side.
    pub sectors_per_request: Option<f64>,
    /// Sectors that the first cache had, 0 to 1.
    pub hit_ratio: Option<f64>,
    /// Times that banks of shared memory were asked twice.
    pub bank_conflicts: Option<u64>,
}

/// A metric in the unit that is asked for.
fn find(metrics: &BTreeMap<String, Metric>, name: &str, scale: fn(&str) -> Option<f64>) -> Option<f64> {
    let metric = metrics.get(name)?;
    Some(metric.value.number()? * scale(&metric.unit)?)
}

fn count(metrics: &BTreeMap<String, Metric>, name: &str) -> Option<u64> {
    whole(&metrics.get(name)?.value)
}

pub(super) fn caches(metrics: &BTreeMap<String, Metric>) -> Vec<Cache> {
    let all = [
        (
            "L1/TEX",
            "l1tex__t_sector_hit_rate.pct",
            "l1tex__throughput.avg.pct_of_peak_sustained_active",
        ),
        (
            "L2",
            "lts__t_sector_hit_rate.pct",
            "lts__throughput.avg.pct_of_peak_sustained_elapsed",
        ),
        ("DRAM", "", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
    ];
    let caches = all.into_iter().map(|(name, hits, busy)| Cache {
        name: name.to_owned(),
        hit_ratio: find(metrics, hits, share),
        busy_ratio: find(metrics, busy, share),
    });
    caches
        .filter(|cache| cache.hit_ratio.is_some() || cache.busy_ratio.is_some())
        .collect()
}

pub(super) fn links(metrics: &BTreeMap<String, Metric>) -> Vec<Link> {
    let all = [
        ("L2", "L1/TEX", "l1tex__m_xbar2l1tex_read_bytes"),
        ("L1/TEX", "L2", "l1tex__m_l1tex2xbar_write_bytes"),
        ("DRAM", "L2", "dram__bytes_read"),
        ("L2", "DRAM", "dram__bytes_write"),
    ];
    let links = all.into_iter().map(|(from, to, counter)| Link {
        from: from.to_owned(),
        to: to.to_owned(),
        bytes: count(metrics, &format!("{counter}.sum")),
        bytes_per_second: find(metrics, &format!("{counter}.sum.per_second"), per_second),
        peak_ratio: find(metrics, &format!("{counter}.sum.pct_of_peak_sustained_elapsed"), share),
    });
    links
        .filter(|link| link.bytes.is_some() || link.bytes_per_second.is_some())
        .collect()
}

pub(super) fn accesses(metrics: &BTreeMap<String, Metric>) -> Vec<Access> {
    let mut accesses = Vec::new();
    for (memory, has_sectors) in [("global", true), ("local", true), ("shared", false)] {
        for (operation, short) in [("load", "ld"), ("store", "st")] {
            let named = |begin: &str, end: &str| format!("{begin}_pipe_lsu_mem_{memory}_op_{short}{end}");
            let requests = if has_sectors {
                count(metrics, &named("l1tex__t_requests", ".sum"))
            } else {
                count(metrics, &format!("sass__inst_executed_shared_{operation}s"))
            };
            // What was not done at all is no row.
            let Some(requests) = requests.filter(|requests| *requests > 0) else {
                continue;
            };
            let sectors = has_sectors
                .then(|| count(metrics, &named("l1tex__t_sectors", ".sum")))
                .flatten();
            let of = |number: u64| flopwatch_model::approximate(number.into());
            accesses.push(Access {
                memory: memory.to_owned(),
                operation: operation.to_owned(),
                requests,
                sectors,
                sectors_per_request: sectors.map(|sectors| of(sectors) / of(requests)),
                hit_ratio: has_sectors
                    .then(|| find(metrics, &named("l1tex__t_sector", "_hit_rate.pct"), share))
                    .flatten(),
                bank_conflicts: (!has_sectors)
                    .then(|| count(metrics, &named("l1tex__data_bank_conflicts", ".sum")))
                    .flatten(),
            });
        }
    }
    accesses
}
