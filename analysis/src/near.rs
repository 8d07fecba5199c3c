//! Names that are near to one that there is not.

/// How alike two names are at least, from 0 to 1, for the one to be meant with the other.
const LEAST_LIKENESS_RATIO: f64 = 0.8;
/// Most names that are offered.
const MAX_OFFERED: usize = 3;

/// Those of `names` that may be meant with `wanted`, the likeliest first.
pub(crate) fn near<'a>(wanted: &str, names: &[&'a str]) -> Vec<&'a str> {
    let likeness = names.iter().map(|name| (strsim::jaro(wanted, name), *name));
    let mut found: Vec<(f64, &str)> = likeness.filter(|(alike, _)| *alike >= LEAST_LIKENESS_RATIO).collect();
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    found.into_iter().take(MAX_OFFERED).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_known_and_nonsense_is_not() {
        let names = [
            "flame-graph",
            "flame-pprof",
            "kernel-types",
            "kernels-per-stream",
            "idle",
        ];
        assert_eq!(near("flame-graf", &names), ["flame-graph", "flame-pprof"]);
        assert_eq!(near("kernel-per-stream", &names), ["kernels-per-stream"]);
        assert_eq!(near("nothing", &names), [""; 0]);
    }

    #[test]
    fn no_more_than_three_are_offered() {
        assert_eq!(
            near("memory", &["memory-1", "memory-2", "memory-3", "memory-4"]).len(),
            3
        );
    }
}
