//! Names of functions that a compiler made symbols of, where a source has the symbols alone. Short
//! names are made of these where they are shown (`flopwatch_measures::kernel_name`).

use std::fmt;

use cpp_demangle::{DemangleOptions, Symbol};

/// Most bytes of a name: a short symbol may stand for a text of any length.
const MAX_BYTES: usize = 16 << 10;
/// How the symbols of C++ begin.
const PREFIX: &str = "_Z";
/// How the namespace without a name begins.
const ANONYMOUS: &str = "_GLOBAL__N";

/// The name that a symbol of C++ stands for; `None` for a text that is none, and for a name that is
/// longer than a reader keeps.
pub(crate) fn demangled(symbol: &str) -> Option<String> {
    if !symbol.starts_with(PREFIX) {
        return None;
    }
    let parsed = Symbol::new(symbol.as_bytes()).ok()?;
    let mut name = Bounded(String::new());
    parsed
        .structured_demangle(&mut name, &DemangleOptions::default())
        .ok()?;
    Some(name.0).filter(|name| !name.is_empty())
}

/// The path of the function that a symbol of C++ stands for, without arguments of templates and of
/// its own, such as `at::native::gemm`; `None` for a text that is none, and for the symbol of
/// something else. It is read in one pass, whatever the symbol holds.
pub(crate) fn path(symbol: &str) -> Option<String> {
    let encoding = symbol.strip_prefix(PREFIX)?;
    let nested = encoding.strip_prefix('N');
    // A member function says first whether it is const.
    let mut rest = nested.map_or(encoding, |nested| nested.trim_start_matches(['r', 'V', 'K']));
    let mut path = String::new();
    if let Some(of_standard) = rest.strip_prefix("St") {
        path.push_str("std");
        rest = of_standard;
    }
    loop {
        // Some compilers mark what no other file sees.
        let named = rest.strip_prefix('L').unwrap_or(rest);
        let digits = named.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            break;
        }
        let (length, behind) = named.split_at_checked(digits)?;
        let (part, behind) = behind.split_at_checked(length.parse().ok()?)?;
        let part = if part.starts_with(ANONYMOUS) {
            "(anonymous namespace)"
        } else {
            part
        };
        if !path.is_empty() {
            path.push_str("::");
        }
        path.push_str(part);
        rest = behind;
        if nested.is_none() {
            break;
        }
    }
    Some(path).filter(|path| !path.is_empty())
}

/// A text that takes no more than [`MAX_BYTES`].
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.0.len().saturating_add(part.len()) > MAX_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_becomes_the_name_that_the_source_has() {
        for (symbol, name) in [
            ("_Z4gemmIfEvPT_", Some("void gemm<float>(float*)")),
            ("_Z6kernelPfi", Some("kernel(float*, int)")),
            ("triton_poi_fused_add_0", None),
            ("void gemm<float>(float*)", None),
            ("_Z", None),
            ("_Z4gem", None),
            ("", None),
        ] {
            assert_eq!(demangled(symbol).as_deref(), name, "{symbol}");
        }
    }

    #[test]
    fn the_path_of_a_function_is_read_without_its_arguments() {
        for (symbol, name) in [
            ("_Z4gemmIfEvPT_", Some("gemm")),
            ("_ZL6kernelPfi", Some("kernel")),
            ("_ZN7cutlass6KernelINS_4GemmEEEvNT_6ParamsE", Some("cutlass::Kernel")),
            ("_ZNK3abc1fEv", Some("abc::f")),
            ("_ZSt4moveIfEvT_", Some("std::move")),
            ("_ZNSt3abcE", Some("std::abc")),
            ("_ZN12_GLOBAL__N_13runEv", Some("(anonymous namespace)::run")),
            ("triton_poi_fused_add_0", None),
            ("_Z", None),
            ("_Z4gem", None),
            ("_Z99999999999999999999999gemm", None),
            ("_Z1\u{e9}", None),
            ("_ZTV3abc", None),
            ("", None),
        ] {
            assert_eq!(path(symbol).as_deref(), name, "{symbol}");
        }
    }

    #[test]
    fn a_symbol_that_stands_for_a_text_without_end_is_left_as_it_is() {
        // Each argument is a pair of two of the one before it.
        let mut symbol = "_Z1f1AIiiE".to_owned();
        for last in "0123456789ABCDEFGH".chars() {
            symbol.extend(["S_IS", &last.to_string(), "_S", &last.to_string(), "_E"]);
            if last == '0' {
                let name = demangled(&symbol).unwrap();
                assert!(name.starts_with("f(A<int, int>, A<A<int, int>, A<int, int>"), "{name}");
            }
        }
        assert_eq!(demangled(&symbol), None);
    }
}
