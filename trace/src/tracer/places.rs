//! Rows and devices: where events run.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use super::names::Program;
use crate::cupti::NO_STREAM;
use flopwatch_model::{Device, MigInstance, Row, RowId, Track};
use flopwatch_tracer_file::record;

/// Devices that are told apart. A machine has up to 16 GPUs of seven parts each.
pub(super) const MAX_DEVICES: usize = 256;

/// What tells rows apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// A stream of a device: process, device, context, stream.
    Stream(u32, u32, u32, u32),
    /// Waits of a process: context, stream. The device is that of the context.
    Waits(u32, u32, u32),
    /// Calls of a thread of a process.
    Calls(u32, u32),
    /// CUPTI's own work in a process.
    Overhead(u32),
}

/// A device that a program has told.
#[derive(Debug)]
struct Known {
    uuid: [u8; 16],
    /// Which part of the GPU it is; none for a whole one.
    part: Option<(u32, u32)>,
    device: Device,
    /// Number of its name in the file.
    name: u32,
}

/// The rows and devices of a capture.
#[derive(Debug, Default)]
pub(super) struct Places {
    ids: HashMap<Place, RowId>,
    /// The rows, in the order of their ids.
    rows: Vec<Place>,
    devices: Vec<Known>,
    /// Which device a program means by a number: programs that see different ones count each from
    /// 0.
    numbers: HashMap<(Program, u32), u32>,
    /// The device of a context of a process.
    contexts: HashMap<(u32, u32), u32>,
    /// The priority of a stream of a process, where it is another than most have: context, stream.
    priorities: HashMap<(u32, u32, u32), u32>,
}

impl Places {
    /// The row of a place; `None` where there are as many as `most` already.
    pub(super) fn row(&mut self, place: Place, most: u32) -> Option<RowId> {
        if let Some(known) = self.ids.get(&place) {
            return Some(*known);
        }
        let next = RowId::from_index(self.rows.len()).filter(|row| row.number() < most)?;
        if let Place::Stream(process, device, context, _) = place {
            self.contexts.insert((process, context), device);
        }
        self.rows.push(place);
        self.ids.insert(place, next);
        Some(next)
    }

    /// The process of a row.
    pub(super) fn process(&self, row: RowId) -> u32 {
        self.rows.get(row.index()).map_or(0, |place| match place {
            Place::Stream(process, ..)
            | Place::Waits(process, ..)
            | Place::Calls(process, _)
            | Place::Overhead(process) => *process,
        })
    }

    /// The device that a program means by a number.
    pub(super) fn device(&self, program: Program, number: u32) -> u32 {
        self.numbers.get(&(program, number)).copied().unwrap_or(number)
    }

    /// Notes a device that a program sees; false where there are [`MAX_DEVICES`] others.
    pub(super) fn note_device(&mut self, program: Program, device: &record::Device) -> bool {
        // Programs that have a part each of one GPU all have that GPU's UUID.
        let part = (device.is_partition != 0).then_some((device.gpu_instance, device.compute_instance));
        let is_same = |known: &&Known| known.uuid == device.uuid && known.part == part;
        let known = self.devices.iter().find(is_same);
        let known = known.map(|known| known.device.id);
        if known.is_none() && self.devices.len() >= MAX_DEVICES {
            return false;
        }
        let id = known.unwrap_or_else(|| self.free_number(device.device));
        if known.is_none() {
            let figures_from = "CUPTI_ACTIVITY_KIND_DEVICE".to_owned();
            self.devices.push(Known {
                uuid: device.uuid,
                part,
                name: device.name,
                device: Device {
                    id,
                    compute_capability: Some((u32::from(device.major), u32::from(device.minor))),
                    multiprocessors: Some(device.multiprocessors).filter(|count| *count > 0),
                    memory_bytes: Some(device.memory_bytes).filter(|bytes| *bytes > 0),
                    figures_from,
                    mig: instance_of(device),
                    ..Device::default()
                },
            });
        }
        self.numbers.insert((program, device.device), id);
        true
    }

    /// Notes which part of a GPU a device is.
    pub(super) fn note_partition(&mut self, program: Program, partition: &record::Partition) {
        let id = self.device(program, partition.device);
        if let Some(known) = self.devices.iter_mut().find(|known| known.device.id == id) {
            let mig = known.device.mig.get_or_insert_with(MigInstance::default);
            mig.uuid = uuid_text(&partition.uuid);
        }
    }

    /// Notes what a program says of a stream.
    pub(super) fn note_stream(&mut self, process: u32, stream: &record::Stream) {
        if stream.priority != 0 {
            let key = (process, stream.context, stream.stream);
            self.priorities.insert(key, stream.priority);
        }
    }

    /// Notes the device of a context.
    pub(super) fn note_context(&mut self, process: u32, context: u32, device: u32) {
        self.contexts.insert((process, context), device);
    }

    /// The number that the program gives a device, or the next one that no other device has.
    fn free_number(&self, wanted: u32) -> u32 {
        let taken: BTreeSet<u32> = self.devices.iter().map(|known| known.device.id).collect();
        let mut number = wanted;
        while taken.contains(&number) {
            number = number.wrapping_add(1);
        }
        number
    }

    /// Number of the name of each device that is known, by the device.
    pub(super) fn names(&self) -> Vec<(u32, u32)> {
        let all = self.devices.iter().map(|known| (known.device.id, known.name));
        all.collect()
    }

    /// The rows, and the devices that they refer to, with names as `names` has them.
    pub(super) fn finish(self, names: &HashMap<u32, String>) -> (Vec<Row>, Vec<Device>) {
        let rows: Vec<Row> = self.rows.iter().map(|place| self.row_of(*place)).collect();
        let used: BTreeSet<u32> = rows.iter().filter_map(|row| row.device).collect();
        let known: BTreeSet<u32> = self.devices.iter().map(|known| known.device.id).collect();
        let mut devices: Vec<Device> = self.devices.into_iter().map(|known| known.device).collect();
        for device in &mut devices {
            device.name = names.get(&device.id).cloned().unwrap_or_default();
        }
        devices.extend(used.difference(&known).map(|id| Device {
            id: *id,
            ..Device::default()
        }));
        devices.retain(|device| used.contains(&device.id));
        devices.sort_by_key(|device| device.id);
        (rows, devices)
    }

    fn row_of(&self, place: Place) -> Row {
        let on_gpu = |process: u32, track, device: u32, context: u32, stream: u32| {
            let of = Some(u64::from(stream)).filter(|stream| *stream != NO_STREAM);
            let priority = self.priorities.get(&(process, context, stream));
            let which = match (of, priority) {
                (None, _) => "any stream".to_owned(),
                (Some(stream), None) => format!("stream {stream}"),
                // The highest is the lowest number, below 0.
                (Some(stream), Some(priority)) => format!("stream {stream} (priority {})", priority.cast_signed()),
            };
            Row {
                capture: 0,
                machine: 0,
                process,
                track,
                device: Some(device),
                context: Some(u64::from(context)),
                stream: of,
                thread: None,
                label: format!("process ({process}) GPU {device} {which}"),
            }
        };
        let on_thread = |process: u32, track, thread: Option<u32>| Row {
            capture: 0,
            machine: 0,
            process,
            track,
            device: None,
            context: None,
            stream: None,
            thread: thread.map(u64::from),
            label: match thread {
                Some(thread) => format!("process ({process}) thread ({thread})"),
                None => format!("process ({process})"),
            },
        };
        match place {
            Place::Stream(process, device, context, stream) => {
                on_gpu(process, Track::GpuStream, device, context, stream)
            }
            Place::Waits(process, context, stream) => {
                let device = self.contexts.get(&(process, context)).copied().unwrap_or(0);
                on_gpu(process, Track::CudaSync, device, context, stream)
            }
            Place::Calls(process, thread) => on_thread(process, Track::CudaApi, Some(thread)),
            Place::Overhead(process) => on_thread(process, Track::Overhead, None),
        }
    }
}

/// Which part of a GPU a device is, as its record says it.
fn instance_of(device: &record::Device) -> Option<MigInstance> {
    let number = |number: u32| (number != u32::MAX).then_some(number);
    (device.is_partition != 0).then(|| MigInstance {
        gpu_instance: number(device.gpu_instance),
        compute_instance: number(device.compute_instance),
        uuid: String::new(),
    })
}

/// The UUID of a part of a GPU, as NVIDIA's programs write it.
fn uuid_text(uuid: &[u8; 16]) -> String {
    use std::fmt::Write as _;

    let mut text = "MIG".to_owned();
    for (at, byte) in uuid.iter().enumerate() {
        if [0, 4, 6, 8, 10].contains(&at) {
            text.push('-');
        }
        // A text takes everything that is written to it.
        write!(text, "{byte:02x}").ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_gpu_is_told_by_its_numbers_and_its_uuid() {
        let mut places = Places::default();
        let device = record::Device {
            uuid: [1; 16],
            is_partition: 1,
            gpu_instance: 3,
            compute_instance: u32::MAX,
            ..record::Device::default()
        };
        places.note_device((0, 1), &device);
        let mut uuid = [0xab; 16];
        uuid[15] = 1;
        places.note_partition((0, 1), &record::Partition { uuid, device: 0 });
        let row = places.row(Place::Stream(7, 0, 1, 2), 10).unwrap();
        assert_eq!(places.process(row), 7);
        let (_, devices) = places.finish(&HashMap::new());
        let mig = devices[0].mig.clone().unwrap();
        assert_eq!((mig.gpu_instance, mig.compute_instance), (Some(3), None));
        assert_eq!(mig.uuid, "MIG-abababab-abab-abab-abab-ababababab01");
    }

    #[test]
    fn no_more_devices_are_told_apart_than_machines_have() {
        let mut places = Places::default();
        let mut note = |number: u32| {
            let mut uuid = [0; 16];
            uuid[..4].copy_from_slice(&number.to_le_bytes());
            let device = record::Device {
                uuid,
                device: number,
                ..record::Device::default()
            };
            places.note_device((0, 1), &device)
        };
        let kept = (0..300).filter(|number| note(*number)).count();
        assert_eq!(kept, MAX_DEVICES);
        assert!(note(3), "one that is known");
        assert_eq!(places.device((0, 1), 299), 299);
    }

    #[test]
    fn a_stream_of_another_priority_says_it() {
        let mut places = Places::default();
        for stream in [7, 8] {
            places.row(Place::Stream(7, 0, 1, stream), 10).unwrap();
        }
        let high = record::Stream {
            context: 1,
            stream: 8,
            priority: u32::MAX,
            flags: 0,
        };
        places.note_stream(7, &high);
        let (rows, _) = places.finish(&HashMap::new());
        let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!(
            labels,
            ["process (7) GPU 0 stream 7", "process (7) GPU 0 stream 8 (priority -1)"]
        );
    }
}
