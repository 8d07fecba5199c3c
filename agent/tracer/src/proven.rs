//! With which drivers a GPU has shown that the tracer works. `cargo xtask gpu-check --stage tracer`
//! makes what shows it, and `docs/gpu-results.md` has the results.

use std::fmt;

/// A version of CUDA: major and minor number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cuda(pub u32, pub u32);

impl Cuda {
    /// Of what `cuDriverGetVersion` says, such as 13000 for 13.0.
    pub const fn of_driver(version: u32) -> Self {
        Self(version / 1000, version % 1000 / 10)
    }
}

impl fmt::Display for Cuda {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}.{}", self.0, self.1)
    }
}

/// A driver with a libcupti that a GPU has shown to record every launch and to harm no program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proven {
    /// The newest CUDA that the driver serves: its generation.
    pub driver: Cuda,
    /// The release of libcupti.
    pub cupti: Cuda,
}

/// The table. No GPU has shown anything yet, so it is empty: a row is added with the results that
/// show it, in the same commit.
pub const PROVEN: &[Proven] = &[];

/// Why the tracer is closed to sessions for a driver: no GPU has shown that it works there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unproven {
    /// The driver's generation.
    pub driver: Cuda,
}

impl fmt::Display for Unproven {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "no GPU has shown yet that the CUDA tracer works with drivers of CUDA {}; \
             the bundle of `cargo xtask gpu-check --stage tracer` shows it",
            self.driver
        )
    }
}

impl std::error::Error for Unproven {}

/// Whether the tracer is proven for a driver, of what `cuDriverGetVersion` says.
///
/// # Errors
///
/// When no GPU has shown that it works with drivers of that generation.
pub fn check(driver: u32) -> Result<(), Unproven> {
    check_in(PROVEN, driver)
}

fn check_in(proven: &[Proven], driver: u32) -> Result<(), Unproven> {
    let driver = Cuda::of_driver(driver);
    if proven.iter().any(|row| row.driver == driver) {
        Ok(())
    } else {
        Err(Unproven { driver })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS: &str = include_str!("../../../docs/gpu-results.md");

    #[test]
    fn a_driver_is_proven_by_its_own_generation_alone() {
        let proven = [Proven {
            driver: Cuda(13, 0),
            cupti: Cuda(13, 5),
        }];
        assert_eq!(check_in(&proven, 13_000), Ok(()));
        for (driver, expected) in [(12_080, Cuda(12, 8)), (13_010, Cuda(13, 1)), (14_000, Cuda(14, 0))] {
            assert_eq!(check_in(&proven, driver), Err(Unproven { driver: expected }));
        }
    }

    #[test]
    fn the_reason_names_the_driver_and_what_would_show_it() {
        let reason = check_in(&[], 13_010).unwrap_err().to_string();
        assert!(
            reason.contains("drivers of CUDA 13.1") && reason.contains("gpu-check"),
            "{reason}"
        );
    }

    /// Rows of the page's table: the driver, the release of libcupti, the word.
    fn rows() -> Vec<(String, String, String)> {
        let behind = RESULTS.split("| driver | libcupti | shown |").nth(1).unwrap();
        let lines = behind.lines().skip(2).take_while(|line| line.starts_with('|'));
        let cells = lines.map(|line| {
            let mut cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
            let mut next = || cells.next().unwrap();
            (next(), next(), next())
        });
        cells.collect()
    }

    #[test]
    fn the_page_of_results_has_the_same_table() {
        let rows = rows();
        assert!(rows.len() > 3, "{rows:?}");
        for (driver, cupti, word) in &rows {
            let is_row = |row: &&Proven| row.driver.to_string() == *driver && row.cupti.to_string() == *cupti;
            let is_proven = PROVEN.iter().any(|row| is_row(&row));
            assert_eq!(word != "unproven", is_proven, "{driver} {cupti}: {word}");
        }
        for row in PROVEN {
            let is_row = |(driver, cupti, _): &&(String, String, String)| {
                *driver == row.driver.to_string() && *cupti == row.cupti.to_string()
            };
            assert!(rows.iter().any(|found| is_row(&found)), "{row:?}");
        }
    }
}
