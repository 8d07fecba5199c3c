//! Which functions of the runtime and driver were called: records have their numbers, which differ
//! by release, so the library tells their names.

use core::sync::atomic::{AtomicU64, Ordering};

use flopwatch_tracer_file::record::{DRIVER, RUNTIME};

/// Words for the functions of a domain, 64 each. Releases up to 13.5 have fewer than 1,000.
const WORDS: usize = 32;

static SEEN: [[AtomicU64; WORDS]; 2] = [const { [const { AtomicU64::new(0) }; WORDS] }; 2];
static TOLD: [[AtomicU64; WORDS]; 2] = [const { [const { AtomicU64::new(0) }; WORDS] }; 2];

/// Notes that a function was called.
#[inline]
pub(crate) fn note(domain: u8, function: u32) {
    let list = usize::from(domain == RUNTIME);
    let place = usize::try_from(function >> 6).unwrap_or(usize::MAX);
    let Some(word) = SEEN.get(list).and_then(|words| words.get(place)) else {
        return;
    };
    let bit = 1_u64.wrapping_shl(function & 63);
    if word.load(Ordering::Relaxed) & bit == 0 {
        word.fetch_or(bit, Ordering::Relaxed);
    }
}

/// Gives each function that was called and not told yet, domain and number, until one is not
/// taken.
pub(crate) fn tell<E>(mut take: impl FnMut(u8, u32) -> Result<(), E>) -> Result<(), E> {
    for (domain, (seen, told)) in [DRIVER, RUNTIME].into_iter().zip(SEEN.iter().zip(&TOLD)) {
        for (place, (seen, told)) in (0_u32..).zip(seen.iter().zip(told)) {
            let mut new = seen.load(Ordering::Relaxed) & !told.load(Ordering::Relaxed);
            while new != 0 {
                let bit = new.trailing_zeros();
                new &= new.wrapping_sub(1);
                take(domain, place.wrapping_mul(64).wrapping_add(bit))?;
                told.fetch_or(1_u64.wrapping_shl(bit), Ordering::Relaxed);
            }
        }
    }
    Ok(())
}

/// Forgets what was told: a reader of the next window may not have read this one.
pub(crate) fn forget() {
    for word in SEEN.iter().chain(&TOLD).flatten() {
        word.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_told_once_until_it_is_forgotten() {
        let told = || {
            let mut all = Vec::new();
            tell(|domain, function| {
                all.push((domain, function));
                Ok::<(), ()>(())
            })
            .unwrap();
            all
        };
        note(RUNTIME, 211);
        note(RUNTIME, 211);
        note(DRIVER, 0);
        note(DRIVER, u32::MAX);
        assert_eq!(told(), [(DRIVER, 0), (RUNTIME, 211)]);
        assert_eq!(told(), []);
        note(RUNTIME, 64);
        assert_eq!(tell(|_, _| Err(3)), Err(3));
        assert_eq!(told(), [(RUNTIME, 64)]);
        forget();
        assert_eq!(told(), []);
        note(RUNTIME, 211);
        assert_eq!(told(), [(RUNTIME, 211)]);
    }
}
