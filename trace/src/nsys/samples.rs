//! Samples of the CPU (`--sample`), with the stacks of calls that they were taken in.

use hashbrown::{HashMap, HashSet};

use super::chains::{Chain, Chains, Frame};
use super::metrics::within;
use super::{Failure, GlobalId, Reader, RowKey, TIME_BIAS};
use flopwatch_model::{CallFrame, CallStacks, Category, Event, Events, LossReason, NameId, Track, count};

const SAMPLES: &str = "COMPOSITE_EVENTS";
const CHAINS: &str = "SAMPLING_CALLCHAINS";

/// The tables that are read here.
pub(super) const TABLES: &[&str] = &[SAMPLES];

/// The stacks of an export, and the number of each sample's by the sample's id.
type OfExport = (Chains, HashMap<u64, u32>);

/// The stack of the sample whose rows are being read.
#[derive(Debug, Default)]
struct Run {
    sample: Option<u64>,
    /// Depths and frames.
    rows: Vec<(u64, Frame)>,
    left_out: u64,
    chain: Chain,
}

impl Run {
    fn push(&mut self, depth: u64, frame: Frame) {
        if self.rows.len() < CallStacks::MAX_FRAMES {
            self.rows.push((depth, frame));
        } else {
            self.left_out += 1;
        }
    }

    /// Ends the stack, whose rows may come in any order. Gives the rows of a sample that has one
    /// already, and that are not kept.
    fn finish(&mut self, (chains, numbers): &mut OfExport) -> u64 {
        let Some(sample) = self.sample.take() else {
            return 0;
        };
        if numbers.contains_key(&sample) {
            let rows = count(self.rows.len()).saturating_add(std::mem::take(&mut self.left_out));
            self.rows.clear();
            return rows;
        }
        self.rows.sort_by_key(|(depth, _)| *depth);
        self.chain.clear();
        for (_, frame) in self.rows.drain(..) {
            self.chain.push(frame);
        }
        self.chain.leave_out(std::mem::take(&mut self.left_out));
        numbers.insert(sample, chains.number(&self.chain));
        0
    }
}

impl Reader<'_> {
    /// Reads the samples, which become events without a length.
    pub(super) fn read_samples(&mut self) -> Result<(), Failure> {
        let Some(table) = self.table(SAMPLES)? else {
            return Ok(());
        };
        if table.rows() == 0 {
            return Ok(());
        }
        self.captured(&table, [Category::CpuSample]);
        table.must_have("globalTid")?;
        let (chains, by_sample) = if let Some(chains) = self.tables.chains() {
            (chains, None)
        } else {
            let (chains, numbers) = self.read_chains()?;
            (chains, Some(numbers))
        };
        self.take_stacks(chains)?;
        let mut events = Events::new(Category::CpuSample);
        let stacks = std::mem::take(&mut self.capture.call_stacks);
        // A name for each frame, behind that of a sample without any.
        let frames = 0..u32::try_from(stacks.frames.len()).unwrap_or(u32::MAX);
        let of_frames = frames.map(|frame| stacks.name(frame).into_owned());
        events.names = [CallStacks::UNKNOWN.to_owned()].into_iter().chain(of_frames).collect();
        for slab in table.slabs() {
            self.count_samples(SAMPLES, slab.len())?;
            let times: Vec<i64> = table.required("start", &slab)?;
            let threads: Vec<u64> = table.optional_ids("globalTid", &slab)?;
            let numbers: Vec<u32> = match &by_sample {
                None => table.optional("stack", &slab)?,
                Some(by_sample) => {
                    let ids: Vec<u64> = table.optional("id", &slab)?;
                    let of = |id: u64| by_sample.get(&id).copied().unwrap_or(0);
                    ids.into_iter().map(of).collect()
                }
            };
            for ((time, thread), number) in times.into_iter().zip(threads).zip(numbers) {
                let key = RowKey::Thread {
                    track: Track::CpuSample,
                    thread: GlobalId(thread),
                };
                let event = Event {
                    start_ns: time.cast_unsigned() ^ TIME_BIAS,
                    duration_ns: 0,
                    row: self.row(&table, key)?,
                    name: NameId::new(stacks.stack(number).map_or(0, |stack| stack.frame.saturating_add(1))),
                    correlation: 0,
                };
                events.push(event, &[u64::from(number)]);
            }
        }
        self.capture.call_stacks = stacks;
        self.capture.events.insert(Category::CpuSample, events);
        Ok(())
    }

    /// Reads the stacks of an export. The rows of a sample lie behind each other.
    fn read_chains(&mut self) -> Result<OfExport, Failure> {
        let mut found = OfExport::default();
        let Some(table) = self.table(CHAINS)?.filter(|table| table.rows() > 0) else {
            return Ok(found);
        };
        let mut run = Run::default();
        let mut apart = 0_u64;
        for slab in table.slabs() {
            let samples: Vec<u64> = table.required("id", &slab)?;
            let depths: Vec<u64> = table.required("stackDepth", &slab)?;
            let symbols: Vec<u64> = table.required("symbol", &slab)?;
            let modules: Vec<u64> = table.optional("module", &slab)?;
            let unresolved: Vec<u32> = table.optional("unresolved", &slab)?;
            let names = symbols.into_iter().zip(unresolved).zip(modules);
            for ((sample, depth), ((symbol, unresolved), module)) in samples.into_iter().zip(depths).zip(names) {
                if run.sample != Some(sample) {
                    apart = apart.saturating_add(run.finish(&mut found));
                    run.sample = Some(sample);
                }
                let symbol = (unresolved == 0).then_some(symbol);
                run.push(depth, Frame { symbol, module });
            }
            let (chains, numbers) = &found;
            let held = chains.len().saturating_add(count(numbers.len()));
            within(CHAINS, held, "stacks of calls", self.limits.max_events)?;
        }
        apart = apart.saturating_add(run.finish(&mut found));
        let what = format!("{CHAINS}: frames apart from others of their sample");
        self.capture.losses.add(LossReason::Skipped, &what, apart);
        Ok(found)
    }

    /// Makes [`Capture::call_stacks`](flopwatch_model::Capture::call_stacks) of stacks of ids.
    /// Names are redacted, and of the path of a program or library its last part alone is kept.
    fn take_stacks(&mut self, chains: Chains) -> Result<(), Failure> {
        let (left_out, frames, stacks) = chains.into_parts();
        let what = format!("frames of stacks beyond the innermost {}", CallStacks::MAX_FRAMES);
        self.capture.losses.add(LossReason::Truncated, &what, left_out);
        let symbols: HashSet<u64> = frames.iter().filter_map(|frame| frame.symbol).collect();
        let modules: HashSet<u64> = frames.iter().map(|frame| frame.module).collect();
        let strings = self.strings_of(&symbols.union(&modules).copied().collect())?;
        let mut found = CallStacks {
            texts: vec![String::new()],
            frames: Vec::with_capacity(frames.len()),
            stacks,
        };
        let mut known: HashMap<(u64, bool), u32> = HashMap::new();
        for Frame { symbol, module } in frames {
            let mut text = |id: u64, is_module: bool| {
                *known.entry((id, is_module)).or_insert_with(|| {
                    let text = match strings.get(&id) {
                        Some(text) if is_module => text.rsplit('/').next().unwrap_or("").to_owned(),
                        Some(text) => text.clone(),
                        None if is_module => String::new(),
                        None => format!("[string {id} missing]"),
                    };
                    if text.is_empty() {
                        return 0;
                    }
                    found.texts.push(self.publishable(&text));
                    u32::try_from(found.texts.len()).unwrap_or(u32::MAX).saturating_sub(1)
                })
            };
            let function = symbol.map_or(0, |symbol| text(symbol, false));
            let module = text(module, true);
            found.frames.push(CallFrame { function, module });
        }
        self.capture.call_stacks = found;
        Ok(())
    }
}
