//! How many times each resample takes a capture.

use flopwatch_model::approximate;
use twox_hash::XxHash64;

/// Cumulative probabilities of 0, 1, 2, ... of the Poisson distribution of mean 1, times 2^64.
/// Beyond the last one it is less than 1e-14.
const BELOW: [u64; 17] = [
    0x5e2d_58d8_b3bc_df1a,
    0xbc5a_b1b1_6779_be35,
    0xeb71_5e1d_c158_2dc2,
    0xfb23_9797_34a2_52f1,
    0xff10_25f5_9174_dc3d,
    0xffd9_0f3b_a405_5e19,
    0xfffa_8b71_fc72_c913,
    0xffff_540c_0914_b3c9,
    0xffff_ed1f_4aa8_f120,
    0xffff_fe21_6e64_1462,
    0xffff_ffd4_d85d_3183,
    0xffff_fffc_6da2_62b4,
    0xffff_ffff_ba12_d178,
    0xffff_ffff_fb07_c64c,
    0xffff_ffff_ffab_8ea5,
    0xffff_ffff_fffa_be22,
    0xffff_ffff_ffff_b11a,
];

/// Numbers of one capture, the same in whichever order captures come.
#[derive(Debug)]
pub(super) struct Resamples {
    /// Times that each resample takes the capture.
    pub(super) times: Vec<f64>,
}

impl Resamples {
    pub(super) fn of(capture_uid: &str, seed: u64, resamples: usize) -> Self {
        let mut state = XxHash64::oneshot(seed, capture_uid.as_bytes());
        let times = (0..resamples).map(|_| {
            let drawn = split_mix(&mut state);
            let times = BELOW.iter().take_while(|below| **below <= drawn).count();
            approximate(u128::try_from(times).unwrap_or(0))
        });
        Self { times: times.collect() }
    }
}

/// The next number of SplitMix64 (Steele, Lea and Flood, 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use flopwatch_model::count;

    use super::*;

    #[test]
    fn numbers_are_those_of_a_poisson_distribution_of_mean_one() {
        let mut probability = (-1.0_f64).exp();
        let mut below = 0.0;
        for (times, bound) in (0_u64..).zip(BELOW) {
            below += probability;
            probability /= approximate(u128::from(times) + 1);
            let stored = approximate(u128::from(bound)) / 2.0_f64.powi(64);
            assert!((stored - below).abs() < 1e-15, "{times}: {stored} against {below}");
        }
        let many: Vec<f64> = (0..100)
            .flat_map(|n| Resamples::of(&n.to_string(), 1, 1_000).times)
            .collect();
        let numbers = approximate(u128::from(count(many.len())));
        let mean = many.iter().sum::<f64>() / numbers;
        let variance = many.iter().map(|times| (times - mean).powi(2)).sum::<f64>() / numbers;
        // Six standard deviations of a hundred thousand.
        assert!(
            (mean - 1.0).abs() < 0.02 && (variance - 1.0).abs() < 0.04,
            "{mean}, {variance}"
        );
    }

    #[test]
    fn numbers_depend_on_the_capture_and_the_seed_alone() {
        let times = |uid, seed| Resamples::of(uid, seed, 64).times;
        assert_eq!(times("a", 1), times("a", 1));
        assert_ne!(times("a", 1), times("b", 1));
        assert_ne!(times("a", 1), times("a", 2));
    }
}
