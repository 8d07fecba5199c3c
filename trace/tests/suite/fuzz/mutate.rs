//! Damage to a file.

use crate::random::Random;

/// Bytes that mean something in one of the formats.
const TELLING: &[u8] = b"\"\\{}[],:\n\0\x0a\x12\x1a\x22\x7f\x80\xff0e-.";

/// Numbers at which something overflows, ends or begins.
const EDGES: [u64; 10] = [
    0,
    1,
    0x7F,
    0xFFFF,
    0x7FFF_FFFF,
    0xFFFF_FFFF,
    1 << 40,
    i64::MAX.unsigned_abs(),
    1 << 63,
    u64::MAX,
];

/// Damages `bytes` in one to six places; `other` is another file of the format, of which a piece
/// may be taken.
pub(super) fn mutate(bytes: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    for _ in 0..=random.below(6) {
        if damaged.is_empty() {
            break;
        }
        once(&mut damaged, other, random);
    }
    damaged
}

fn byte(random: &mut Random) -> u8 {
    u8::try_from(random.below(256)).unwrap()
}

fn once(damaged: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    // Headers and indices stand at the begin of most files.
    let reach = if random.below(3) == 0 {
        damaged.len().min(2048)
    } else {
        damaged.len()
    };
    let at = random.below(reach);
    let length = random.below(64).min(damaged.len() - at);
    match random.below(11) {
        0 => damaged[at] ^= 1 << random.below(8),
        1 => damaged[at] = TELLING[random.below(TELLING.len())],
        2 => damaged.truncate(at),
        3 => drop(damaged.drain(at..at + length)),
        4 => damaged.insert(at, TELLING[random.below(TELLING.len())]),
        5 => {
            let copy = damaged[at..at + length].to_vec();
            let to = random.below(damaged.len());
            damaged.splice(to..to, copy);
        }
        6 => damaged[at..at + length].fill(0xff),
        7 => damaged[at..at + length]
            .iter_mut()
            .for_each(|byte| *byte = self::byte(random)),
        8 => number(damaged, at, random),
        9 => {
            let from = random.below(other.len().max(1));
            let piece = &other[from..other.len().min(from + 1 + random.below(512))];
            let end = damaged.len().min(at + piece.len());
            damaged.splice(at..end, piece.iter().copied());
        }
        // Everything from here on.
        _ if random.below(8) == 0 => damaged[at..].iter_mut().for_each(|byte| *byte = self::byte(random)),
        _ => damaged[at..at + length].fill(0),
    }
}

/// Puts a number of one to eight bytes, in either order.
fn number(damaged: &mut [u8], at: usize, random: &mut Random) {
    let width = 1 << random.below(4);
    let value = EDGES[random.below(EDGES.len())].wrapping_add(u64::try_from(random.below(3)).unwrap());
    let mut bytes = value.to_le_bytes()[..width].to_vec();
    if random.below(2) == 0 {
        bytes.reverse();
    }
    // Most numbers are aligned.
    let at = at / width * width;
    for (place, byte) in damaged[at..].iter_mut().zip(bytes) {
        *place = byte;
    }
}
