//! Whether this start of the container may be grafted, from what earlier starts left.
//!
//! The rule. Right before it becomes the workload, a grafted launcher writes a marker with the
//! time. The session's supervisor, which lives in the container's PID namespace and so cannot
//! outlive the workload, marks it as survived after [`SHORT_LIFE`]. A launcher that finds a marker
//! which nobody marked as survived, younger than [`SHORT_LIFE`] and the kubelet's longest wait
//! between restarts together, takes the last grafted start for an early death: this start is plain,
//! the next one may be grafted again; after [`EARLY_DEATHS`] early deaths the container stays
//! plain.
//!
//! Its limit: when the supervisor died before it could mark (killed by hand, or by the kernel for
//! memory), a long life that ends within [`SHORT_LIFE`] + [`LONGEST_BACKOFF`] is taken for an early
//! death. The price is one start without a profile; the other way round it would be a crash loop.

/// A grafted workload that dies sooner than this, in milliseconds, may have died of the graft.
pub const SHORT_LIFE: u64 = 30_000;
/// The kubelet's longest wait between two restarts (its default, `maxContainerRestartPeriod`), in
/// milliseconds.
pub const LONGEST_BACKOFF: u64 = 300_000;
/// Early deaths after which a container is never grafted again.
pub const EARLY_DEATHS: u32 = 2;

/// The marker's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// When the last start happened, Unix milliseconds.
    pub started_unix_ms: u64,
    /// Whether that start was grafted.
    pub grafted: bool,
    /// Whether it was seen alive after [`SHORT_LIFE`].
    pub survived: bool,
    /// Early deaths of grafted starts so far.
    pub early_deaths: u32,
}

/// What to do with this start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Wait for a session.
    pub graft: bool,
    /// Early deaths including the one just found.
    pub early_deaths: u32,
}

/// Applies the rule above.
pub fn decide(marker: Option<Marker>, now_unix_ms: u64) -> Decision {
    let Some(marker) = marker else {
        return Decision {
            graft: true,
            early_deaths: 0,
        };
    };
    if marker.grafted && !marker.survived {
        // A clock that ran backwards says nothing about the life's length: the careful answer.
        let recent = now_unix_ms
            .checked_sub(marker.started_unix_ms)
            .is_none_or(|age| age <= SHORT_LIFE + LONGEST_BACKOFF);
        if recent {
            return Decision {
                graft: false,
                early_deaths: marker.early_deaths.saturating_add(1),
            };
        }
    }
    let early_deaths = if marker.grafted { 0 } else { marker.early_deaths };
    Decision {
        graft: early_deaths < EARLY_DEATHS,
        early_deaths,
    }
}

impl Marker {
    /// The file's text.
    pub fn render(&self) -> String {
        format!(
            "started_unix_ms={}\ngrafted={}\nsurvived={}\nearly_deaths={}\n",
            self.started_unix_ms, self.grafted, self.survived, self.early_deaths
        )
    }

    /// Reads the file's text; none when a field is absent or malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        Some(Self {
            started_unix_ms: field("started_unix_ms")?.parse().ok()?,
            grafted: field("grafted")?.parse().ok()?,
            survived: field("survived")?.parse().ok()?,
            early_deaths: field("early_deaths")?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(grafted: bool, survived: bool, early_deaths: u32) -> Marker {
        Marker {
            started_unix_ms: 1_000_000,
            grafted,
            survived,
            early_deaths,
        }
    }

    #[test]
    fn the_next_start_follows_from_the_last() {
        let cases = [
            ("nothing known", None, 0, true, 0),
            ("died after 2 s", Some(marker(true, false, 0)), 2_000, false, 1),
            (
                "died early, restarted after the longest wait",
                Some(marker(true, false, 0)),
                329_000,
                false,
                1,
            ),
            (
                "restarted after more than any wait",
                Some(marker(true, false, 1)),
                331_000,
                true,
                0,
            ),
            ("was seen alive", Some(marker(true, true, 1)), 40_000, true, 0),
            (
                "plain after one early death: one more try",
                Some(marker(false, false, 1)),
                5_000,
                true,
                1,
            ),
            (
                "plain after two: never again",
                Some(marker(false, false, 2)),
                900_000,
                false,
                2,
            ),
            ("second early death", Some(marker(true, false, 1)), 1_000, false, 2),
        ];
        for (what, marker, age, graft, early_deaths) in cases {
            assert_eq!(
                decide(marker, 1_000_000 + age),
                Decision { graft, early_deaths },
                "{what}"
            );
        }
    }

    #[test]
    fn a_clock_that_ran_backwards_means_plain() {
        assert!(!decide(Some(marker(true, false, 0)), 999_999).graft);
    }

    #[test]
    fn a_marker_reads_back_and_a_broken_one_is_none() {
        let marker = marker(true, false, 3);
        assert_eq!(Marker::parse(&marker.render()), Some(marker));
        for text in [
            "",
            "started_unix_ms=1\n",
            "started_unix_ms=x\ngrafted=true\nsurvived=true\nearly_deaths=0\n",
        ] {
            assert_eq!(Marker::parse(text), None, "{text:?}");
        }
    }
}
