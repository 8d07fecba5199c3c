//! What the rows of a trace are: numbers of processes and devices, and labels for people.

use std::collections::{BTreeMap, BTreeSet};

use super::event::Id;
use super::gather::{Gather, OwnedId, OwnedRow};
use super::json::unescape;
use super::owners::group;
use super::part::is_of_gpu;
use flopwatch_model::{LossReason, Row, index};

/// Numbers of what a trace names by texts, or by numbers that do not tell one from the other.
struct Numbers {
    processes: BTreeMap<OwnedId, u32>,
    /// The device that the events of a process are on, where they say a single one.
    devices: BTreeMap<OwnedId, Option<u32>>,
    /// Which capture of those that were merged a process belongs to; the first where there is one.
    captures: BTreeMap<OwnedId, u32>,
}

impl Gather<'_> {
    /// Makes the capture's rows.
    pub(super) fn label_rows(&mut self) {
        let numbers = self.numbers();
        for allocation in &mut self.capture.allocations {
            let process = self.allocating.list.get(index(allocation.process));
            allocation.process = process.map_or(0, |process| numbers.process(process));
        }
        let keys = std::mem::take(&mut self.rows);
        for key in &keys {
            let own = self.writer_metadata.as_ref();
            let own = own.and_then(|own| own.rows.get(&(key.process.clone(), key.thread.clone())));
            let row = own.cloned().unwrap_or_else(|| self.row_of(key, &numbers));
            let label = self.publishable(&row.label);
            self.capture.rows.push(Row { label, ..row });
        }
        self.rows = keys;
        if numbers.captures.values().any(|capture| *capture > 0) {
            let what = "GPUs of one number taken for several, by the names of their processes";
            self.count_loss(LossReason::Inferred, what);
        }
    }

    fn row_of(&self, key: &OwnedRow, numbers: &Numbers) -> Row {
        let of_gpu = is_of_gpu(key.track);
        let process = if of_gpu { &key.owner } else { &key.process };
        let device = of_gpu.then(|| numbers.device(key)).flatten();
        Row {
            capture: numbers.captures.get(process).copied().unwrap_or(0),
            machine: 0,
            process: numbers.process(process),
            track: key.track,
            device,
            context: key.context,
            stream: key.stream,
            thread: match &key.thread {
                OwnedId::Number(number) if !of_gpu => u64::try_from(*number).ok(),
                OwnedId::Number(_) | OwnedId::None | OwnedId::Text(_) => None,
            },
            label: self.label(key, process, device),
        }
    }

    fn numbers(&self) -> Numbers {
        let of_row = |row: &OwnedRow| {
            let is_of_gpu = is_of_gpu(row.track);
            if is_of_gpu {
                row.owner.clone()
            } else {
                row.process.clone()
            }
        };
        let of_rows = self.rows.iter().map(of_row);
        let processes = processes(of_rows.chain(self.allocating.list.iter().cloned()).collect());
        let mut devices: BTreeMap<OwnedId, Option<u32>> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.device.is_some()) {
            let known = devices.entry(row.process.clone()).or_insert(row.device);
            *known = known.filter(|known| Some(*known) == row.device);
        }
        let mut numbers = Numbers {
            processes,
            devices,
            captures: BTreeMap::new(),
        };
        numbers.captures = self.captures(&numbers);
        numbers
    }

    /// The captures that processes belong to, where GPUs of several of them have one number and
    /// names of their own.
    fn captures(&self, numbers: &Numbers) -> BTreeMap<OwnedId, u32> {
        // By the device's number: the names that it has, and for each whose it is.
        let mut named: BTreeMap<u32, BTreeMap<&OwnedId, BTreeSet<&OwnedId>>> = BTreeMap::new();
        let gpus = || {
            self.rows
                .iter()
                .filter(|row| is_of_gpu(row.track) && row.owner != OwnedId::None)
        };
        let on_cpu = self.rows.iter().filter(|row| !is_of_gpu(row.track));
        let programs: BTreeSet<&OwnedId> = on_cpu.map(|row| &row.process).collect();
        for row in gpus().filter(|row| !programs.contains(&row.process)) {
            if let Some(device) = numbers.device(row) {
                let owners = named.entry(device).or_default().entry(&row.process).or_default();
                owners.insert(&row.owner);
            }
        }
        let is_of_several = |names: &BTreeMap<&OwnedId, BTreeSet<&OwnedId>>| {
            let owners: BTreeSet<&BTreeSet<&OwnedId>> = names.values().collect();
            owners.len() > 1
        };
        if !named.values().any(is_of_several) {
            return BTreeMap::new();
        }
        let owners: BTreeSet<&OwnedId> = gpus().map(|row| &row.owner).collect();
        let mut sides: BTreeMap<(&[u8], Option<&OwnedId>), u32> = BTreeMap::new();
        let mut captures = BTreeMap::new();
        for owner in owners {
            let group = group(owner);
            let side = (group, group.is_empty().then_some(owner));
            let next = u32::try_from(sides.len()).unwrap_or(u32::MAX);
            captures.insert(owner.clone(), *sides.entry(side).or_insert(next));
        }
        // What belongs to them beside, such as processes that load their data.
        for row in self.rows.iter().filter(|row| !is_of_gpu(row.track)) {
            let group = group(&row.process);
            if let Some(side) = sides.get(&(group, None))
                && !group.is_empty()
            {
                captures.insert(row.process.clone(), *side);
            }
        }
        captures
    }

    fn label(&self, key: &OwnedRow, process: &OwnedId, device: Option<u32>) -> String {
        let program = self.processes.get(process).map(String::as_str);
        let process_label = match process {
            OwnedId::Number(number) => format!("{} ({number})", program.unwrap_or("process")),
            OwnedId::Text(raw) => {
                let text = unescape(raw);
                // A text without a number is a name of its own.
                let program = program.filter(|_| process.borrow().trailing_number().is_some());
                program.map_or_else(|| text.clone(), |program| format!("{program} ({text})"))
            }
            OwnedId::None => "process".to_owned(),
        };
        if is_of_gpu(key.track) {
            let device = device.map_or_else(|| "?".to_owned(), |device| device.to_string());
            let stream = key
                .stream
                .map_or_else(|| "any stream".to_owned(), |stream| format!("stream {stream}"));
            return format!("{process_label} GPU {device} {stream}");
        }
        let thread = match &key.thread {
            OwnedId::Number(number) => format!("thread {number}"),
            OwnedId::Text(raw) => unescape(raw),
            OwnedId::None => return process_label,
        };
        match self.threads.get(&(key.process.clone(), key.thread.clone())) {
            // Kineto's own names of threads, `thread 24610 (python)`, say nothing more.
            Some(name) if !name.starts_with("thread ") => format!("{process_label} {thread} {name}"),
            _ => format!("{process_label} {thread}"),
        }
    }
}

impl Numbers {
    fn process(&self, process: &OwnedId) -> u32 {
        self.processes.get(process).copied().unwrap_or(0)
    }

    /// The device of a GPU's row: what its events say, else what others of its process say, else
    /// the number of its process.
    fn device(&self, row: &OwnedRow) -> Option<u32> {
        let of_process = || self.devices.get(&row.process).copied().flatten();
        row.device.or_else(of_process).or_else(|| number(row.process.borrow()))
    }
}

/// A number for each process: its own, else the one at the end of its name, else the next that no
/// other has; 0 for none.
fn processes(all: BTreeSet<OwnedId>) -> BTreeMap<OwnedId, u32> {
    let mut numbers: BTreeMap<OwnedId, u32> = BTreeMap::new();
    let mut taken = BTreeSet::from([0]);
    let mut named = Vec::new();
    for process in all {
        let number = number(process.borrow()).filter(|_| matches!(process, OwnedId::Number(_)));
        if let Some(number) = number {
            taken.insert(number);
            numbers.insert(process, number);
        } else if process != OwnedId::None {
            named.push(process);
        }
    }
    let mut unnumbered = Vec::new();
    for process in named {
        match number(process.borrow()) {
            Some(number) if taken.insert(number) => {
                numbers.insert(process, number);
            }
            _ => unnumbered.push(process),
        }
    }
    let mut next = 1_u32;
    for process in unnumbered {
        while !taken.insert(next) {
            next = next.saturating_add(1);
        }
        numbers.insert(process, next);
    }
    numbers
}

fn number(id: Id<'_>) -> Option<u32> {
    id.trailing_number().and_then(|number| u32::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_a_number_that_no_other_has() {
        let text = |text: &str| OwnedId::Text(text.as_bytes().to_vec());
        let all = [
            OwnedId::Number(7),
            OwnedId::Number(0),
            OwnedId::Number(-4),
            text("[TP00] 7"),
            text("[TP01] 9"),
            text("Host 0"),
            text("Spans"),
            OwnedId::None,
        ];
        let numbers = processes(all.into_iter().collect());
        let number = |process: &OwnedId| numbers[process];
        assert_eq!(number(&OwnedId::Number(7)), 7);
        assert_eq!(number(&OwnedId::Number(0)), 0);
        assert_eq!(number(&text("[TP01] 9")), 9);
        let of_their_own: BTreeSet<u32> = numbers.values().copied().collect();
        assert_eq!(of_their_own, BTreeSet::from([0, 1, 2, 3, 4, 7, 9]));
    }
}
