//! What the process has mapped: copies of libcupti, and libraries of other profilers. Told by the
//! names of files, for to ask another profiler could be its harm.

use flopwatch_injected::Path;
use flopwatch_injected::kernel::File;
use flopwatch_tracer_file::process::Holder;

/// Libraries by which profilers are known, the ones first that record all the time that they are
/// loaded.
const PROFILERS: [(&[u8], Holder); 3] = [
    (b"libToolsInjection", Holder::NsightSystems),
    (b"libcuda-injection", Holder::NsightCompute),
    (b"libparcagpu", Holder::Parcagpu),
];
/// Libraries of programs that have a profiler in them, which records when it is asked.
const WITH_PROFILER: [(&[u8], Holder); 5] = [
    (b"/cupti_python/", Holder::CuptiPython),
    (b"libtorch_cpu", Holder::Pytorch),
    (b"xla_cuda", Holder::Jax),
    (b"libjax", Holder::Jax),
    (b"libtensorflow", Holder::Tensorflow),
];
/// How the name of every libcupti begins.
const CUPTI: &[u8] = b"libcupti.so";
/// Bytes that are looked at at once; a longer line is no library of ours to know.
const WINDOW_BYTES: usize = 4096;

/// What the process has mapped.
pub(crate) struct Libraries {
    /// The copy of libcupti that was found first.
    pub(crate) cupti: Option<Path>,
    /// Whether there is another one.
    pub(crate) has_two: bool,
    /// A profiler that records all the time.
    pub(crate) profiler: Holder,
    /// A program's own profiler.
    pub(crate) with_profiler: Holder,
}

impl Libraries {
    /// Looks at the process's mappings; `None` where they cannot be read.
    pub(crate) fn of_process() -> Option<Self> {
        let maps = File::open_to_read(c"/proc/self/maps")?;
        let mut found = Self::nothing();
        let mut window = [0; WINDOW_BYTES];
        let (mut at, mut held) = (0_usize, 0_usize);
        loop {
            let read = maps.read_at(at, window.get_mut(held..)?)?;
            if read == 0 {
                break;
            }
            at = at.wrapping_add(read);
            held = held.wrapping_add(read);
            let text = window.get(..held)?;
            let Some(end) = text.iter().rposition(|byte| *byte == b'\n') else {
                // A line without an end in sight.
                held = if held == WINDOW_BYTES { 0 } else { held };
                continue;
            };
            for line in text.get(..end)?.split(|byte| *byte == b'\n') {
                found.line(line);
            }
            let rest = end.wrapping_add(1);
            held = held.wrapping_sub(rest);
            shift(&mut window, rest, held);
        }
        Some(found)
    }

    const fn nothing() -> Self {
        Self {
            cupti: None,
            has_two: false,
            profiler: Holder::None,
            with_profiler: Holder::None,
        }
    }

    /// Looks at a line of `/proc/self/maps`.
    fn line(&mut self, line: &[u8]) {
        let Some(path) = line.iter().position(|byte| *byte == b'/').and_then(|at| line.get(at..)) else {
            return;
        };
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        let holder = |list: &[(&[u8], Holder)]| {
            let known = list.iter().find(|(part, _)| has(path, part));
            known.map(|(_, holder)| *holder)
        };
        if self.profiler == Holder::None {
            self.profiler = holder(&PROFILERS).unwrap_or(Holder::None);
        }
        if self.with_profiler == Holder::None {
            self.with_profiler = holder(&WITH_PROFILER).unwrap_or(Holder::None);
        }
        if !file_name(path).starts_with(CUPTI) {
            return;
        }
        match &self.cupti {
            None => self.cupti = Path::of(&[path]),
            Some(known) => self.has_two |= known.bytes() != path,
        }
    }

    /// Who has CUPTI's subscription, where somebody has it.
    pub(crate) const fn holder(&self) -> Holder {
        match (self.profiler, self.with_profiler) {
            (Holder::None, Holder::None) => Holder::Unknown,
            (Holder::None, with) => with,
            (profiler, _) => profiler,
        }
    }
}

/// Moves bytes from a place to the begin, without the panic that the standard library's way has.
fn shift(bytes: &mut [u8], from: usize, count: usize) {
    for place in 0..count {
        let byte = bytes.get(from.wrapping_add(place)).copied();
        if let (Some(to), Some(byte)) = (bytes.get_mut(place), byte) {
            *to = byte;
        }
    }
}

/// The last part of a path.
pub(crate) fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

fn has(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len().max(1)).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paths: &[&str]) -> Libraries {
        let mut libraries = Libraries::nothing();
        for path in paths {
            libraries.line(format!("7f00-7f01 r-xp 00000000 08:01 99   {path}").as_bytes());
        }
        libraries
    }

    #[test]
    fn one_copy_of_libcupti_is_mapped_in_several_parts() {
        let path = "/venv/nvidia/cuda_cupti/lib/libcupti.so.12";
        let one = of(&[path, path, "[heap]", "/lib/libc.so.6"]);
        assert_eq!(one.cupti.unwrap().bytes(), path.as_bytes());
        assert!(!one.has_two);
        assert!(of(&[path, "/usr/local/cuda/lib64/libcupti.so.2025.1.1"]).has_two);
        assert!(of(&["/lib/libcupti-like.so"]).cupti.is_none());
    }

    #[test]
    fn the_holder_is_the_profiler_before_the_framework() {
        assert_eq!(of(&["/lib/libc.so.6"]).holder(), Holder::Unknown);
        let torch = "/venv/torch/lib/libtorch_cpu.so";
        assert_eq!(of(&[torch]).holder(), Holder::Pytorch);
        assert_eq!(of(&[torch]).profiler, Holder::None);
        let both = of(&[torch, "/opt/nsys/target-linux-x64/libToolsInjection64.so"]);
        assert_eq!(
            (both.holder(), both.profiler),
            (Holder::NsightSystems, Holder::NsightSystems)
        );
    }

    #[test]
    fn the_mappings_of_this_process_are_read() {
        let own = Libraries::of_process().unwrap();
        assert!(own.cupti.is_none() && own.profiler == Holder::None);
    }
}
