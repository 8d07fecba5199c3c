//! The advice for a terminal.

use flopwatch_report::page::figure::shown;
use flopwatch_report::page::{Cell, Unit};

use super::by_reason;
use crate::advice::{Advice, Finding, count};

/// The findings in their order, each with its remedy and evidence, then what could not be looked at.
pub(super) fn render(advice: &Advice) -> String {
    let mut out = String::new();
    put(&mut out, &heading(advice));
    for (place, finding) in (1..).zip(&advice.findings) {
        one(&mut out, place, finding);
    }
    if advice.findings_left_out > 0 {
        put(&mut out, &format!("\nand {} more", advice.findings_left_out));
    }
    if !advice.not_captured.is_empty() {
        put(&mut out, "\nNot looked at:");
    }
    for lacking in by_reason(&advice.not_captured) {
        put(&mut out, &format!("  {}: {}", lacking.what, lacking.reason));
    }
    out
}

/// How much was found, of what.
fn heading(advice: &Advice) -> String {
    let found = u64::try_from(advice.findings.len()).unwrap_or(u64::MAX) + advice.findings_left_out;
    let found = count(found, "finding", "findings");
    if advice.gpus == 0 {
        return format!("{found}. The capture holds no times of GPU work, of which most rules are.");
    }
    let window = shown(&Cell::from(advice.window_ns), Unit::Ns);
    let gains = advice.findings.iter().filter(|finding| finding.gain.is_some());
    let overlap = if gains.count() > 1 {
        " Gains overlap where findings have one cause: they are no sum."
    } else {
        ""
    };
    format!("{found} in {window} of {}.{overlap}", count(advice.gpus, "GPU", "GPUs"))
}

fn one(out: &mut String, place: usize, finding: &Finding) {
    let gain = finding.gain.as_ref().map_or(String::new(), |gain| {
        let time = shown(&Cell::from(gain.gain_ns), Unit::Ns);
        let share = shown(&Cell::from(gain.window_share_ratio), Unit::Ratio);
        format!(", worth up to {time} ({share} of the window)")
    });
    put(
        out,
        &format!(
            "\n{place}. [{}] {}{gain}, confidence {}",
            finding.severity.as_str(),
            finding.title,
            finding.confidence.as_str()
        ),
    );
    put(out, &format!("   {}", finding.sentence));
    if let Some(gain) = &finding.gain {
        put(out, &format!("   if: {}", gain.assumption));
    }
    for action in &finding.actions {
        put(out, &format!("   > {action}"));
    }
    for evidence in &finding.evidence {
        let value = shown(&evidence.value, evidence.unit);
        let at = evidence.place.map_or(String::new(), |place| {
            format!(" at {}", shown(&Cell::from(place.start_ns), Unit::Ns))
        });
        put(out, &format!("   - {}: {value}{at}", evidence.what));
    }
}

/// A line. What a capture names is printed without control characters, which must not reach a terminal.
fn put(out: &mut String, line: &str) {
    let clean = line.chars().map(|c| match c {
        '\n' => '\n',
        c if c.is_control() => '\u{fffd}',
        c => c,
    });
    out.extend(clean);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::{Category, Timeline, Track};

    use super::*;
    use crate::advice::{self, Limits};

    const LIMITS: Limits = Limits {
        findings: 50,
        evidence: 5,
    };

    #[test]
    fn a_capture_without_times_says_so_and_each_reason_once() {
        let advice = advice::of(&Timeline::default(), LIMITS);
        let text = render(&advice);
        assert!(
            text.starts_with("0 findings. The capture holds no times of GPU work"),
            "{text}"
        );
        let reason = "recorded no kernels;";
        assert_eq!(text.matches(reason).count(), 1, "{text}");
        assert!(
            text.contains("; the host launches too slowly; host synchronisation drains the GPU"),
            "{text}"
        );
    }

    #[test]
    fn one_finding_of_one_gpu_is_told_in_the_singular() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        trace.event(Category::CudaKernel, stream, "gemm", 0, 1000);
        trace.thread(1, 1, Track::CudaApi);
        let text = render(&advice::of(&trace.build(), LIMITS));
        assert!(
            text.lines()
                .next()
                .is_some_and(|line| line.ends_with("in 1.00 µs of 1 GPU.")),
            "{text}"
        );
    }
}
