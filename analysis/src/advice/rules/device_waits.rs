//! Operations of a compiled program that wait for copies and collectives which run beside others.

use std::collections::BTreeSet;

use flopwatch_measures::hlo_time::{HloTime, MeasuredOperation, awaits, operation_name};
use flopwatch_model::{Category, ratio};
use flopwatch_report::page::Unit;

use crate::advice::wording::{share, time};
use crate::advice::{Area, Facts, FindingDraft, Rule, Severity, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "own time of operations that await others, of that of all operations of the devices",
    10,
    "XProf: a tenth of the step is the least that its smart suggestions name",
);

/// How a shape in the host's memory is written: XLA's memory space of the host is 5.
const HOST_MEMORY: &str = "S(5)";

/// Fires where a device spends its operations' time in awaiting others (`copy-done`,
/// `all-reduce-done`): what was begun early enough is done by then.
pub(super) static RULE: Rule = Rule {
    id: "device-waits",
    title: "Operations wait for asynchronous copies or collectives",
    area: Area::Transfers,
    needs: &[&[Category::DeviceOp]],
    of_gpu_work: false,
    thresholds: &[SHARE],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(20), || scene(10)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let measured = HloTime::of(facts.timeline).operations;
    let of_devices = |one: &&MeasuredOperation| one.device.is_some() && !one.is_asynchronous;
    let own: Vec<&MeasuredOperation> = measured.iter().filter(of_devices).collect();
    let all = sum(own.iter().copied());
    let waits: Vec<&MeasuredOperation> = own.into_iter().filter(|one| awaits(&one.name)).collect();
    let waiting = sum(waits.iter().copied());
    if !SHARE.reached(waiting, all) {
        return Verdict::Quiet;
    }
    let with_host = names_of_host_memory(facts);
    let of_host = sum(waits
        .iter()
        .copied()
        .filter(|one| with_host.contains(one.name.as_str())));
    let copies = if of_host > 0 {
        format!(
            ", {} of it for copies between the device and the host's memory",
            time(of_host)
        )
    } else {
        String::new()
    };
    let pieces = waits.iter().filter_map(|one| {
        let (row, longest) = one.longest?;
        Some((one.self_ns, format!("own time of {}", one.name), longest, row))
    });
    let found = FindingDraft::new(format!(
        "Operations of the devices take {} of their own time, and {} of it ({}) they only wait for what other operations began{copies}.",
        time(all),
        time(waiting),
        share(waiting, all)
    ))
    .severity(Severity::of_share(ratio(waiting, all).unwrap_or(0.0)))
    .evidence("own time of operations", all, Unit::Ns)
    .evidence("of it in operations that await others", waiting, Unit::Ns)
    .evidence("of that for the host's memory", of_host, Unit::Ns)
    .at(facts.largest(pieces, Unit::Ns));
    let found = if of_host > waiting / 2 {
        found.do_this("Offload less to the host: keep in the device's memory what is used soon again, save fewer values (policies of jax.checkpoint), use shorter types of numbers.")
    } else {
        found
    };
    found
        .do_this("Begin earlier: more operations between a start and its done (analysis `hlo-graph` shows them), XLA's latency-hiding scheduler, scans that prefetch the next layer.")
        .into()
}

fn sum<'a>(operations: impl Iterator<Item = &'a MeasuredOperation>) -> u64 {
    operations.map(|one| one.self_ns).fold(0, u64::saturating_add)
}

/// Names of operations whose text has a shape in the host's memory.
fn names_of_host_memory<'a>(facts: &Facts<'a>) -> BTreeSet<&'a str> {
    let events = facts.events(Category::DeviceOp);
    let names = events.into_iter().flat_map(|events| &events.names);
    let of_host = names.filter(|name| name.contains(HOST_MEMORY));
    of_host.map(|name| operation_name(name)).collect()
}

/// An operation of 100 us, and so much waiting for a copy to the host.
#[cfg(test)]
fn scene(waiting: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.device_operation("%fusion.1 = f32[8] fusion(f32[8] %x)", (0, 100));
    let awaited = "%copy-done.2 = f32[8]{0:S(5)} copy-done((f32[8]{0:S(5)}, f32[8]) %copy-start.2)";
    scene.device_operation(awaited, (100, waiting));
    scene.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_with_the_hosts_memory_are_told_apart() {
        let found = evaluate(&Facts::of(&scene(300), 5)).found();
        assert_eq!(found.severity, Some(Severity::High));
        let told =
            "300.00 µs of it (75.0 %) they only wait for what other operations began, 300.00 µs of it for copies";
        assert!(found.sentence.contains(told), "{}", found.sentence);
        assert!(found.actions[0].starts_with("Offload less"), "{:?}", found.actions);
    }
}
