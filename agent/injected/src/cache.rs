//! What is asked of the processor ahead of its use.
#![allow(unsafe_code, reason = "the processor is asked by an instruction")]

use core::arch::asm;

/// Has the line of the processor's cache that lies at an address brought near, without waiting for
/// it. An address at which nothing is mapped is left alone.
#[inline]
pub fn prefetch(address: usize) {
    // SAFETY: every x86-64 processor has the instruction, which is a hint: it changes no register
    // and no memory, and never faults, whatever the address is.
    unsafe {
        asm!("prefetcht0 [{address}]", address = in(reg) address, options(nomem, nostack, preserves_flags));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_at_which_nothing_is_mapped_is_left_alone() {
        let word = 7_u64;
        for address in [0, 16, usize::MAX, (&raw const word).addr()] {
            prefetch(address);
        }
        assert_eq!(word, 7);
    }
}
