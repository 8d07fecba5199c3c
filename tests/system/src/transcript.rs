//! Transcripts of a document: the commands of its fenced `console` blocks, and what they are said
//! to print.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::cluster::run;

/// One command and the lines below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// What the shell gets; continuation lines included.
    pub command: String,
    /// What the document shows of its output.
    pub output: Vec<String>,
}

/// The part of a document from a heading of the second level to the next one.
pub fn part<'a>(document: &'a str, heading: &str) -> Option<&'a str> {
    let (_, rest) = document.split_once(&format!("\n## {heading}\n"))?;
    Some(rest.split_once("\n## ").map_or(rest, |(part, _)| part))
}

/// The contents of fenced blocks of a language, in their order.
pub fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(name)) => open = Some((name == language, String::new())),
            (None, None) => {}
            (Some(_), Some(_)) => blocks.extend(open.take().filter(|(ours, _)| *ours).map(|(_, block)| block)),
            (Some((_, block)), None) => {
                block.push_str(line);
                block.push('\n');
            }
        }
    }
    blocks
}

/// The commands of blocks, each with its output.
pub fn steps(blocks: &[String]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut continued = false;
    for line in blocks.iter().flat_map(|block| block.lines()) {
        let command = line.strip_prefix("$ ");
        if let Some(command) = command {
            steps.push(Step {
                command: command.to_owned(),
                output: Vec::new(),
            });
        } else if let Some(step) = steps.last_mut() {
            if continued {
                step.command.push('\n');
                step.command.push_str(line);
            } else {
                step.output.push(line.to_owned());
            }
        }
        continued = (command.is_some() || continued) && line.ends_with('\\');
    }
    steps
}

/// Runs the commands in one shell, as a reader would, in `folder`, and holds what they print
/// against what is shown.
///
/// # Errors
/// When a command fails, or prints no line like one that is shown.
pub async fn follow(steps: &[Step], folder: &Path) -> Result<()> {
    let printed = run("bash", &["-c", &script(steps, folder.to_str().context("path")?)]).await?;
    let mut printed = printed.split(MARK).skip(1);
    for step in steps {
        let found = printed.next().unwrap_or_default();
        for line in &step.output {
            ensure!(
                found.lines().any(|real| is_like(real, line)),
                "$ {}\nprints no line like this one:\n{line}\nbut:\n{found}",
                step.command
            );
        }
    }
    Ok(())
}

/// Before the output of each command.
const MARK: &str = "@@ next command @@\n";

fn script(steps: &[Step], folder: &str) -> String {
    let mut script =
        format!("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\ncd '{folder}'\nexec 2>&1\n");
    let mark = MARK.replace('\n', "\\n");
    for step in steps {
        script.extend(["printf '", &mark, "'\n", &step.command, "\n"]);
    }
    script
}

/// Whether a printed line has every word of a shown one that is the same each time: of three
/// letters or more, without a digit.
fn is_like(real: &str, shown: &str) -> bool {
    let lasting = |word: &&str| word.len() > 2 && !word.bytes().any(|byte| byte.is_ascii_digit());
    let real: Vec<&str> = real.split_whitespace().collect();
    shown
        .split_whitespace()
        .filter(lasting)
        .all(|word| real.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = include_str!("../../../README.md");
    const SESSIONS: &str = include_str!("../../../docs/sessions.md");

    #[test]
    fn a_part_ends_where_the_next_one_begins() {
        let document = "# D\n\n## One\nfirst\n\n## Two\nsecond\n";
        assert_eq!(part(document, "One"), Some("first\n"));
        assert_eq!(part(document, "Two"), Some("second\n"));
        assert_eq!(part(document, "Three"), None);
    }

    #[test]
    fn commands_are_told_from_their_output_and_may_have_several_lines() {
        let text =
            "```console\n$ one \\\n    --more\nsaid\n$ two\n```\n```yaml\na: 1\n```\n```console\n$ three\nx\ny\n```\n";
        let found = steps(&blocks(text, "console"));
        let expected = [
            ("one \\\n    --more", vec!["said"]),
            ("two", vec![]),
            ("three", vec!["x", "y"]),
        ];
        let expected = expected.map(|(command, output)| Step {
            command: command.to_owned(),
            output: output.into_iter().map(str::to_owned).collect(),
        });
        assert_eq!(found, expected);
        assert_eq!(blocks(text, "yaml"), ["a: 1\n"]);
    }

    #[test]
    fn a_line_is_like_another_when_all_words_but_figures_and_names_are_there() {
        let shown = "capture.flopwatch.dev/first-391a8cda74   trainer   main   Done   100   True   Succeeded   7s";
        assert!(is_like(
            "capture.flopwatch.dev/first-00ff trainer main Done 100 True Succeeded 12s",
            shown
        ));
        assert!(!is_like(
            "capture.flopwatch.dev/first-00ff trainer main Done 100 False Failed 12s",
            shown
        ));
    }

    #[test]
    fn the_readme_shows_the_examples_that_its_first_session_applies() {
        let part = part(README, "A first session").unwrap();
        let shown = blocks(part, "yaml");
        let examples = [
            include_str!("../../../examples/trainer.yaml"),
            include_str!("../../../examples/first.yaml"),
        ];
        assert_eq!(shown, examples);
        let mut steps = steps(&blocks(part, "console"));
        let continued = super::part(SESSIONS, "The result over HTTP").unwrap();
        steps.extend(super::steps(&blocks(continued, "console")));
        let applied: Vec<&str> = steps
            .iter()
            .filter_map(|step| step.command.strip_prefix("kubectl apply -f "))
            .collect();
        assert_eq!(applied, ["examples/trainer.yaml", "examples/first.yaml"]);
        assert!(steps.len() > 9, "{steps:#?}");
    }

    /// Tests that start a shell.
    mod crate_tests {
        use super::*;

        async fn followed(text: &str) -> Result<()> {
            let folder = tempfile::tempdir()?;
            follow(&steps(&[text.to_owned()]), folder.path()).await
        }

        #[tokio::test]
        async fn commands_share_a_shell_that_ends_with_all_it_started() {
            let begin = std::time::Instant::now();
            let text =
                "$ sleep 600 &\n$ NAME=$(echo wor; true)ld\n$ printf 'hello %s 12\\n' \\\n    $NAME\nhello world 99\n";
            followed(text).await.unwrap();
            assert!(begin.elapsed() < std::time::Duration::from_mins(1));
        }

        #[tokio::test]
        async fn a_command_that_fails_or_prints_something_else_is_named() {
            let failed = followed("$ echo one\n$ ls /no/such/folder\n").await.unwrap_err();
            assert!(failed.to_string().contains("/no/such/folder"), "{failed}");
            let other = followed("$ echo condition met\ncondition failed\n").await.unwrap_err();
            assert!(other.to_string().contains("$ echo condition met"), "{other}");
        }
    }
}
