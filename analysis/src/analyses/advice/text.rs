//! Writes the result of `advice` as text for a terminal.

use flopwatch_report::page::figure::shown;
use flopwatch_report::page::{Cell, Unit};
use flopwatch_report::{Layout, Tone};

use super::by_reason;
use crate::advice::{Advice, Finding, Severity, count};

/// The findings in their order, each with its actions and evidence, then what is just below the
/// rules' thresholds, and the rules that could not be evaluated and why.
pub(super) fn render(advice: &Advice, layout: Layout) -> String {
    let mut out = String::new();
    put(&mut out, &heading(advice), layout);
    for (number, finding) in (1..).zip(&advice.findings) {
        one(&mut out, number, finding, layout);
    }
    if advice.findings_left_out > 0 {
        put(&mut out, &format!("\nand {} more", advice.findings_left_out), layout);
    }
    if !advice.near_misses.is_empty() {
        put(&mut out, "\nJust below the rules' thresholds:", layout);
    }
    for near in &advice.near_misses {
        put(&mut out, &format!("  {}: {}", near.rule, near.sentence), layout);
    }
    if !advice.not_captured.is_empty() {
        put(&mut out, "\nNot checked:", layout);
    }
    for lacking in by_reason(&advice.not_captured) {
        put(&mut out, &format!("  {}: {}", lacking.what, lacking.reason), layout);
    }
    out
}

/// The first line: number of findings, length of the window and number of GPUs.
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

fn one(out: &mut String, number: usize, finding: &Finding, layout: Layout) {
    let gain = finding.gain.as_ref().map_or(String::new(), |gain| {
        let time = shown(&Cell::from(gain.gain_ns), Unit::Ns);
        let share = shown(&Cell::from(gain.window_share_ratio), Unit::Ratio);
        format!(", worth up to {time} ({share} of the window)")
    });
    let severity = format!("[{}]", finding.severity.as_str());
    let mut first = String::new();
    put(
        &mut first,
        &format!(
            "\n{number}. {severity} {}{gain}, confidence {}",
            finding.title,
            finding.confidence.as_str()
        ),
        layout,
    );
    // Colors are no characters of a line, so they come once it is broken.
    out.push_str(&first.replacen(&severity, &painted(&severity, finding.severity, layout), 1));
    put(out, &format!("   {}", finding.sentence), layout);
    if let Some(gain) = &finding.gain {
        put(out, &format!("   if: {}", gain.assumption), layout);
    }
    for action in &finding.actions {
        put(out, &format!("   > {action}"), layout);
    }
    for evidence in &finding.evidence {
        let value = shown(&evidence.value, evidence.unit);
        let at = evidence.place.map_or(String::new(), |number| {
            format!(" at {}", shown(&Cell::from(number.start_ns), Unit::Ns))
        });
        put(out, &format!("   - {}: {value}{at}", evidence.what), layout);
    }
}

fn painted(text: &str, severity: Severity, layout: Layout) -> String {
    match severity {
        Severity::High => layout.paint(Tone::Bad, text),
        Severity::Medium => layout.paint(Tone::Note, text),
        Severity::Low => text.to_owned(),
    }
}

/// Appends lines, broken between words where they have to fit. Control characters, which names in a
/// capture may hold, are left out: they must not reach a terminal.
fn put(out: &mut String, text: &str, layout: Layout) {
    for line in text.split('\n') {
        let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        let line: String = line.chars().map(clean).collect();
        let indent = line.chars().take_while(|c| *c == ' ').count();
        out.push_str(&layout.wrapped(&line, indent + 2));
        out.push('\n');
    }
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
        let text = render(&advice, Layout::default());
        assert!(
            text.starts_with("0 findings. The capture holds no times of GPU work"),
            "{text}"
        );
        let reason = "recorded no kernels;";
        assert_eq!(text.matches(reason).count(), 1, "{text}");
        assert!(
            text.contains("; pace of launches; waits of the host for the GPU"),
            "{text}"
        );
    }

    /// The GPU is idle for 96 of 1000 ns.
    #[test]
    fn what_is_just_below_a_threshold_is_told_behind_the_findings() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        trace.event(Category::CudaKernel, stream, "gemm", 0, 500);
        trace.event(Category::CudaKernel, stream, "gemm", 596, 1000);
        let advice = advice::of(&trace.build(), LIMITS);
        assert_eq!(advice.near_misses.len(), 1, "{:?}", advice.near_misses);
        assert_eq!(advice.near_misses[0].time_ns, 96);
        let text = render(&advice, Layout::default());
        let told = "Just below the rules' thresholds:\n  gpu-idle: Idle share of the window: 9.6 % (96 ns), below the rule's 10 %.";
        assert!(text.contains(told), "{text}");
    }

    #[test]
    fn one_finding_of_one_gpu_is_told_in_the_singular() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        trace.event(Category::CudaKernel, stream, "gemm", 0, 1000);
        trace.thread(1, 1, Track::CudaApi);
        let text = render(&advice::of(&trace.build(), LIMITS), Layout::default());
        assert!(
            text.lines()
                .next()
                .is_some_and(|line| line.ends_with("in 1.00 µs of 1 GPU.")),
            "{text}"
        );
    }

    #[test]
    fn lines_fit_a_terminal_and_grave_findings_are_red() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        trace.event(Category::CudaKernel, stream, "gemm", 0, 1000);
        trace.thread(1, 1, Track::CudaApi);
        let mut advice = advice::of(&trace.build(), LIMITS);
        for finding in &mut advice.findings {
            finding.severity = Severity::High;
        }
        let layout = Layout {
            columns: Some(60),
            colors: false,
        };
        let text = render(&advice, layout);
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&text), words(&render(&advice, Layout::default())));
        let colored = render(&advice, Layout { colors: true, ..layout });
        assert!(colored.contains("\u{1b}[1m\u{1b}[31m[high]\u{1b}[0m"), "{colored:?}");
    }
}
