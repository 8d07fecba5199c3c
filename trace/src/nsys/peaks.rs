//! Peak rates of a GPU from its clock, its multiprocessors and what one of these does in a cycle.

use std::collections::BTreeMap;

/// Where the rates come from, behind the table that has clock and multiprocessors.
pub(super) const SOURCE: &str = "FP32 and FP64 units of a multiprocessor as in the CUDA C++ Programming Guide";

/// Multiply-adds that a multiprocessor starts per cycle, in single and in double precision, by
/// compute capability: the guide's table of the throughput of native arithmetic instructions.
/// Tensor cores are left out: they run at a clock of their own.
const UNITS: [((u32, u32), u64, Option<u64>); 6] = [
    ((7, 0), 64, Some(32)),
    ((7, 5), 64, None),
    ((8, 0), 64, Some(32)),
    ((8, 6), 128, None),
    ((8, 9), 128, None),
    ((9, 0), 128, Some(64)),
];

/// Peak operations per second by type of number; empty where clock, multiprocessors or compute
/// capability are not known.
pub(super) fn peak_flops(capability: (u32, u32), multiprocessors: u32, clock_hz: u64) -> BTreeMap<String, u64> {
    let Some((_, single, double)) = UNITS.iter().find(|(known, ..)| *known == capability) else {
        return BTreeMap::new();
    };
    // A multiply-add is two operations.
    let cycles = u64::from(multiprocessors).saturating_mul(clock_hz).saturating_mul(2);
    let rates = [("fp32", Some(*single)), ("fp64", *double)];
    let rates = rates.into_iter().filter_map(|(name, units)| {
        let rate = cycles.saturating_mul(units?);
        (rate > 0).then(|| (name.to_owned(), rate))
    });
    rates.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_that_data_sheets_round() {
        // Product, capability, multiprocessors, MHz, and what the data sheet has in GFLOP/s.
        for (product, capability, multiprocessors, mega, single, double) in [
            ("T4", (7, 5), 40, 1590, 8_100, None),
            ("A100", (8, 0), 108, 1410, 19_500, Some(9_700)),
            ("H100 SXM", (9, 0), 132, 1980, 67_000, Some(34_000)),
        ] {
            let rates = peak_flops(capability, multiprocessors, mega * 1_000_000);
            let near = |name: &str, sheet: u64| rates[name].abs_diff(sheet * 1_000_000_000) < sheet * 20_000_000;
            assert!(near("fp32", single), "{product}: {rates:?}");
            assert_eq!(rates.contains_key("fp64"), double.is_some());
            assert!(double.is_none_or(|double| near("fp64", double)), "{product}: {rates:?}");
        }
        assert!(peak_flops((9, 0), 132, 0).is_empty() && peak_flops((1, 0), 1, 1).is_empty());
    }
}
