//! Devices, as the file holds them: a column per property. Columns of MIG instances are there where
//! a device is one.

use std::collections::BTreeMap;

use hdf5::Group;

use super::NONE_U32;
use super::read::{Failure, Reader, from_json};
use super::write::{collect, json, list, strings};
use flopwatch_model::{Device, MigInstance};

/// The column that says which devices are MIG instances.
const IS_MIG: &str = "mig";

/// A figure that is not known is 0.
pub(super) fn write(group: &Group, devices: &[Device]) -> hdf5::Result<()> {
    let capability = |device: &Device| device.compute_capability.unwrap_or_default();
    list(group, "id", &collect(devices, |device| device.id))?;
    strings(group, "name", devices.iter().map(|device| device.name.as_str()))?;
    list(group, "compute_major", &collect(devices, |device| capability(device).0))?;
    list(group, "compute_minor", &collect(devices, |device| capability(device).1))?;
    list(
        group,
        "multiprocessors",
        &collect(devices, |device| device.multiprocessors.unwrap_or(0)),
    )?;
    list(
        group,
        "memory_bytes",
        &collect(devices, |device| device.memory_bytes.unwrap_or(0)),
    )?;
    list(
        group,
        "peak_bandwidth",
        &collect(devices, |device| device.peak_bandwidth.unwrap_or(0)),
    )?;
    let flops = devices
        .iter()
        .map(|device| json(&device.peak_flops))
        .collect::<hdf5::Result<Vec<String>>>()?;
    strings(group, "peak_flops", flops.iter().map(String::as_str))?;
    strings(
        group,
        "figures_from",
        devices.iter().map(|device| device.figures_from.as_str()),
    )?;
    write_mig(group, devices)
}

/// Which devices are MIG instances, and which; nothing where none is one.
fn write_mig(group: &Group, devices: &[Device]) -> hdf5::Result<()> {
    if devices.iter().all(|device| device.mig.is_none()) {
        return Ok(());
    }
    let number = |number: fn(&MigInstance) -> Option<u32>| {
        collect(devices, |device| {
            device.mig.as_ref().and_then(number).unwrap_or(NONE_U32)
        })
    };
    list(
        group,
        IS_MIG,
        &collect(devices, |device| u32::from(device.mig.is_some())),
    )?;
    list(group, "mig_gpu_instance", &number(|mig| mig.gpu_instance))?;
    list(group, "mig_compute_instance", &number(|mig| mig.compute_instance))?;
    let uuids = devices
        .iter()
        .map(|device| device.mig.as_ref().map_or("", |mig| mig.uuid.as_str()));
    strings(group, "mig_uuid", uuids)
}

impl Reader<'_> {
    pub(super) fn devices(&mut self, group: &Group) -> Result<Vec<Device>, Failure> {
        let names = self.strings(group, "name")?;
        let sources = self.strings(group, "figures_from")?;
        let count = Some(names.len());
        let id: Vec<u32> = self.numbers(group, "id", count)?;
        let major: Vec<u32> = self.numbers(group, "compute_major", count)?;
        let minor: Vec<u32> = self.numbers(group, "compute_minor", count)?;
        let multiprocessors: Vec<u32> = self.numbers(group, "multiprocessors", count)?;
        let memory: Vec<u64> = self.numbers(group, "memory_bytes", count)?;
        let bandwidth: Vec<u64> = self.numbers(group, "peak_bandwidth", count)?;
        let flops = self.strings(group, "peak_flops")?;
        let flops = flops.iter().map(|text| from_json(text));
        let mut flops: Vec<BTreeMap<String, u64>> = flops.collect::<Result<_, _>>()?;
        for rates in &mut flops {
            rates.retain(|_, rate| *rate > 0);
        }
        if flops.len() != names.len() || sources.len() != names.len() {
            return Err(Failure::Inconsistent(
                "devices: columns of different lengths".to_owned(),
            ));
        }
        let figures = major
            .into_iter()
            .zip(minor)
            .zip(multiprocessors)
            .zip(memory)
            .zip(bandwidth)
            .zip(flops);
        let mut instances = self.mig_instances(group, id.len())?.into_iter();
        let devices = id.into_iter().zip(names).zip(sources).zip(figures);
        let devices = devices.map(
            |(((id, name), figures_from), (((((major, minor), sms), memory), bandwidth), peak_flops))| Device {
                id,
                name,
                compute_capability: (major > 0).then_some((major, minor)),
                multiprocessors: (sms > 0).then_some(sms),
                memory_bytes: (memory > 0).then_some(memory),
                peak_bandwidth: (bandwidth > 0).then_some(bandwidth),
                peak_flops,
                figures_from,
                mig: instances.next().flatten(),
            },
        );
        Ok(devices.collect())
    }

    /// Which of so many devices are MIG instances, and which; none in a file that does not say it.
    fn mig_instances(&mut self, group: &Group, devices: usize) -> Result<Vec<Option<MigInstance>>, Failure> {
        if !group.link_exists(IS_MIG) {
            return Ok(Vec::new());
        }
        let count = Some(devices);
        let is_mig: Vec<u32> = self.numbers(group, IS_MIG, count)?;
        let gpu: Vec<u32> = self.numbers(group, "mig_gpu_instance", count)?;
        let compute: Vec<u32> = self.numbers(group, "mig_compute_instance", count)?;
        let uuids = self.strings(group, "mig_uuid")?;
        if uuids.len() != devices {
            return Err(Failure::Inconsistent("devices: not one MIG UUID per device".to_owned()));
        }
        let known = |number: u32| (number != NONE_U32).then_some(number);
        let instances = is_mig.into_iter().zip(gpu.into_iter().zip(compute)).zip(uuids);
        let instances = instances.map(|((is_mig, (gpu, compute)), uuid)| {
            (is_mig != 0).then(|| MigInstance {
                gpu_instance: known(gpu),
                compute_instance: known(compute),
                uuid,
            })
        });
        Ok(instances.collect())
    }
}
