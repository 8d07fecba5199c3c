//! Code that launches ran: what a report has of it as text, and how much machine code.

use hashbrown::HashMap;

use super::rules::text;
use crate::model::KernelCode;
use crate::wire::{Damage, Message};

/// The section of machine code in which compilers leave the PTX that they made it of, where they are asked for line numbers.
const PTX: &[u8] = b".nv_debug_ptx_txt";

/// The code of each source, by its id.
pub(super) fn all(sources: &[Message<'_>]) -> Result<HashMap<u64, KernelCode>, Damage> {
    let mut all = HashMap::new();
    for source in sources {
        let (mut id, mut code) = (None, KernelCode::default());
        for field in source.fields() {
            match field? {
                (1, value) => id = value.number(),
                (2, value) => code.source = text(value),
                (3, value) => code.ptx = text(value),
                (4, value) => {
                    let binary = value.bytes().unwrap_or_default();
                    code.machine_code_bytes = u64::try_from(binary.len()).unwrap_or(u64::MAX);
                    if code.ptx.is_empty() {
                        code.ptx = section(binary, PTX).map(lines).unwrap_or_default();
                    }
                }
                _ => {}
            }
        }
        if let Some(id) = id.filter(|_| code != KernelCode::default()) {
            all.insert(id, code);
        }
    }
    Ok(all)
}

/// Lines that end in a zero byte each.
fn lines(bytes: &[u8]) -> String {
    let lines = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let text: Vec<_> = lines.collect();
    text.join("\n").trim_end().to_owned()
}

/// A section of an ELF file of 64 bits, little-endian, as machine code of NVIDIA's devices is; `None` of any other, and of a damaged one.
fn section<'a>(elf: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    const HEADER: usize = 64;
    elf.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    let table = wide(elf, 0x28)?;
    let (count, names) = (short(elf, 0x3c)?, short(elf, 0x3e)?);
    let header = |at: usize| {
        let begin = table.checked_add(at.checked_mul(HEADER)?)?;
        elf.get(begin..begin.checked_add(HEADER)?)
    };
    let content = |header: &[u8]| {
        let begin = wide(header, 0x18)?;
        elf.get(begin..begin.checked_add(wide(header, 0x20)?)?)
    };
    let names = content(header(names)?)?;
    (0..count).filter_map(header).find_map(|header| {
        let name = usize::try_from(u32::from_le_bytes(header.get(..4)?.try_into().ok()?)).ok()?;
        let rest = names.get(name..)?.strip_prefix(wanted)?;
        rest.starts_with(b"\0").then(|| content(header))?
    })
}

fn wide(bytes: &[u8], at: usize) -> Option<usize> {
    let value = u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?);
    usize::try_from(value).ok()
}

fn short(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with the sections `.shstrtab` and that of the PTX.
    fn elf(ptx: &[u8]) -> Vec<u8> {
        let names = b"\0.shstrtab\0.nv_debug_ptx_txt\0";
        let mut file = b"\x7fELF\x02\x01".to_vec();
        file.resize(64, 0);
        let mut headers = vec![0; 64];
        for (name, content) in [(1_u32, &names[..]), (11, ptx)] {
            let mut header = vec![0; 64];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[0x18..0x20].copy_from_slice(&u64::try_from(file.len()).unwrap().to_le_bytes());
            header[0x20..0x28].copy_from_slice(&u64::try_from(content.len()).unwrap().to_le_bytes());
            file.extend_from_slice(content);
            headers.extend(header);
        }
        let table = u64::try_from(file.len()).unwrap();
        file[0x28..0x30].copy_from_slice(&table.to_le_bytes());
        file[0x3c..0x3e].copy_from_slice(&3_u16.to_le_bytes());
        file[0x3e..0x40].copy_from_slice(&1_u16.to_le_bytes());
        file.extend(headers);
        file
    }

    #[test]
    fn ptx_is_found_in_machine_code_and_damage_finds_none() {
        let file = elf(b".version 8.0\0ret;\0\0");
        assert_eq!(section(&file, PTX).map(lines).as_deref(), Some(".version 8.0\nret;"));
        for end in 0..file.len() {
            // No end of it panics; the headers are last.
            assert_eq!(section(&file[..end], PTX), None, "{end}");
        }
        let mut far = file.clone();
        far[0x28..0x30].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(section(&far, PTX), None);
    }
}
