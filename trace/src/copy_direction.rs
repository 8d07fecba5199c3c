//! Directions of copies, which their names tell: profilers, and versions of one, write them in
//! their own words.

use flopwatch_model::{Category, MemoryKind};

/// Words for a direction, without what parts them.
const WORDS: [(&[u8], Category); 4] = [
    (b"hosttodevice", Category::CudaMemcpyH2d),
    (b"devicetohost", Category::CudaMemcpyD2h),
    (b"devicetodevice", Category::CudaMemcpyD2d),
    (b"peertopeer", Category::CudaMemcpyP2p),
];

/// Short forms, at the end of a word.
const SHORT: [(&[u8], Category); 10] = [
    (b"htod", Category::CudaMemcpyH2d),
    (b"h2d", Category::CudaMemcpyH2d),
    // Intel's word for memory that is no device's.
    (b"m2d", Category::CudaMemcpyH2d),
    (b"dtoh", Category::CudaMemcpyD2h),
    (b"d2h", Category::CudaMemcpyD2h),
    (b"d2m", Category::CudaMemcpyD2h),
    (b"dtod", Category::CudaMemcpyD2d),
    (b"d2d", Category::CudaMemcpyD2d),
    (b"ptop", Category::CudaMemcpyP2p),
    (b"p2p", Category::CudaMemcpyP2p),
];

/// The category of a copy of that name: by its words (`[CUDA memcpy Host-to-Device]`,
/// `CopyHostToDevice`), its short form (`Memcpy HtoD (Pageable -> Device)`, `MemcpyH2D`), or the
/// kinds of memory at its ends (`Memcpy (Pinned -> Device)`). `None` where it tells none of these.
pub fn copy_category(name: &str) -> Option<Category> {
    category(name.as_bytes())
}

/// Category of a copy whose name is bytes; see [`copy_category`].
pub(crate) fn category(name: &[u8]) -> Option<Category> {
    // What PyTorch writes, at once: a trace has a million of them.
    let short = name.strip_prefix(b"Memcpy ").and_then(|kind| kind.get(..4));
    match short {
        Some(b"HtoD") => return Some(Category::CudaMemcpyH2d),
        Some(b"DtoH") => return Some(Category::CudaMemcpyD2h),
        Some(b"DtoD") => return Some(Category::CudaMemcpyD2d),
        Some(b"PtoP") => return Some(Category::CudaMemcpyP2p),
        _ => {}
    }
    let lower = name.to_ascii_lowercase();
    let direction = of_words(&lower)
        .or_else(|| of_short(&lower))
        .or_else(|| of_ends(&lower));
    let unified = memchr::memmem::find(&lower, b"unified").is_some();
    // Pages of unified memory migrate, whatever way: no call copies them.
    direction.map(|direction| if unified { Category::CudaMigration } else { direction })
}

fn of_words(lower: &[u8]) -> Option<Category> {
    let joined: Vec<u8> = lower.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
    let found = WORDS
        .into_iter()
        .find(|(words, _)| memchr::memmem::find(&joined, words).is_some());
    found.map(|(_, category)| category)
}

fn of_short(lower: &[u8]) -> Option<Category> {
    let mut words = lower.split(|byte| !byte.is_ascii_alphanumeric());
    words.find_map(|word| {
        let found = SHORT.into_iter().find(|(short, _)| word.ends_with(short));
        found.map(|(_, category)| category)
    })
}

/// By what stands on both sides of the arrow.
fn of_ends(lower: &[u8]) -> Option<Category> {
    let arrow = memchr::memmem::find(lower, b"->")?;
    let (from, to) = (lower.get(..arrow)?, lower.get(arrow + 2..)?);
    let from = from.rsplit(|byte| *byte == b'(').next()?;
    let to = to.split(|byte| *byte == b')').next()?;
    match (is_of_host(from)?, is_of_host(to)?) {
        (true, true) => None,
        (true, false) => Some(Category::CudaMemcpyH2d),
        (false, true) => Some(Category::CudaMemcpyD2h),
        (false, false) => Some(Category::CudaMemcpyD2d),
    }
}

/// Whether a kind of memory is the host's; `None` of one that is neither the host's nor a device's
/// own.
fn is_of_host(kind: &[u8]) -> Option<bool> {
    if kind.trim_ascii() == b"host" {
        return Some(true);
    }
    match MemoryKind::from_words(kind)? {
        MemoryKind::Pageable | MemoryKind::Pinned => Some(true),
        MemoryKind::Device | MemoryKind::DeviceStatic => Some(false),
        MemoryKind::Array | MemoryKind::Managed | MemoryKind::ManagedStatic | MemoryKind::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_profiler_tell_the_direction() {
        for (name, expected) in [
            ("Memcpy HtoD (Pageable -> Device)", Some(Category::CudaMemcpyH2d)),
            ("Memcpy DtoH (Device -> Pinned)", Some(Category::CudaMemcpyD2h)),
            ("Memcpy PtoP (Device -> Device)", Some(Category::CudaMemcpyP2p)),
            ("Memcpy HtoH (Pageable -> Pinned)", None),
            ("Memcpy AtoD (Array -> Device)", None),
            ("Memcpy Unknown (Pageable -> Device)", Some(Category::CudaMemcpyH2d)),
            ("Memcpy (Device -> Host)", Some(Category::CudaMemcpyD2h)),
            ("[CUDA memcpy Host-to-Device]", Some(Category::CudaMemcpyH2d)),
            ("[CUDA memcpy HtoD]", Some(Category::CudaMemcpyH2d)),
            ("[CUDA memcpy Device-to-Device]", Some(Category::CudaMemcpyD2d)),
            ("[CUDA memcpy Peer-to-Peer]", Some(Category::CudaMemcpyP2p)),
            ("[CUDA memcpy Host-to-Array]", None),
            ("[CUDA memcpy Unified Host-to-Device]", Some(Category::CudaMigration)),
            ("[CUDA Unified Memory memcpy DtoH]", Some(Category::CudaMigration)),
            ("CopyHostToDevice", Some(Category::CudaMemcpyH2d)),
            ("Memcpy M2D(Host -> Device)", Some(Category::CudaMemcpyH2d)),
            ("Memcpy M2D (MEMORY(Unknown) -> DEVICE)", Some(Category::CudaMemcpyH2d)),
            ("Memcpy D2M (DEVICE -> MEMORY(Unknown))", Some(Category::CudaMemcpyD2h)),
            ("MEMORY_COPY_DEVICE_TO_HOST", Some(Category::CudaMemcpyD2h)),
            ("MemcpyD2D", Some(Category::CudaMemcpyD2d)),
            ("copy", None),
        ] {
            assert_eq!(copy_category(name), expected, "{name}");
        }
    }
}
