//! Compiled programs, as the file holds them: their messages one behind the other.

use hdf5::Group;

use super::read::{Failure, Reader};
use super::write::{list, strings};
use flopwatch_model::Program;

pub(super) fn write(group: &Group, all: &[Program]) -> hdf5::Result<()> {
    strings(group, "name", all.iter().map(|program| program.name.as_str()))?;
    list(group, "id", &all.iter().map(|program| program.id).collect::<Vec<u64>>())?;
    let lengths = all
        .iter()
        .map(|program| u64::try_from(program.proto.len()).unwrap_or(u64::MAX));
    list(group, "bytes", &lengths.collect::<Vec<u64>>())?;
    let protos: Vec<u8> = all.iter().flat_map(|program| &program.proto).copied().collect();
    list(group, "proto", &protos)
}

impl Reader<'_> {
    pub(super) fn programs(&mut self, group: &Group) -> Result<Vec<Program>, Failure> {
        let wrong = |what: &str| Failure::Inconsistent(format!("programs: {what}"));
        let names = self.strings(group, "name")?;
        let ids: Vec<u64> = self.numbers(group, "id", Some(names.len()))?;
        let lengths: Vec<u64> = self.numbers(group, "bytes", Some(names.len()))?;
        let bytes: Vec<u32> = self.numbers(group, "proto", None)?;
        let mut rest = bytes.as_slice();
        let mut programs = Vec::with_capacity(names.len());
        for ((name, id), length) in names.into_iter().zip(ids).zip(lengths) {
            let length = usize::try_from(length).ok();
            let cut = length.and_then(|length| rest.split_at_checked(length));
            let (proto, behind) = cut.ok_or_else(|| wrong("messages that are longer than all of them"))?;
            let proto = proto
                .iter()
                .map(|byte| u8::try_from(*byte).unwrap_or(u8::MAX))
                .collect();
            programs.push(Program { name, id, proto });
            rest = behind;
        }
        if rest.is_empty() {
            Ok(programs)
        } else {
            Err(wrong("bytes behind the last message"))
        }
    }
}
