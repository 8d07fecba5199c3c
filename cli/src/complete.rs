//! Answers kubectl, which asks a program `kubectl_complete-flopwatch` what may come next on this
//! plugin's command line.
//!
//! The answer is that of cobra's completions: a candidate a line, a tab before its description, and
//! a number at the end that says what the shell may add of its own
//! (<https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/>).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use clap::CommandFactory as _;
use flopwatch_api::schedule::ProfilingSchedule;
use flopwatch_api::session::ProfilingSession;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::arguments::{Cli, ConnectionArguments};
use crate::cluster::Cluster;
use crate::print::line;

/// The program that kubectl looks for on the PATH.
pub const SCRIPT: &str = "#!/bin/sh
# kubectl's completion of `kubectl flopwatch`. Save it as kubectl_complete-flopwatch in a folder on the PATH and make it executable.
exec kubectl-flopwatch __complete \"$@\"
";

/// The shell adds no names of files of its own.
const NO_FILES: &str = ":4\n";
/// The shell may add names of files.
const FILES: &str = ":0\n";
/// Longest wait for the cluster: whoever pressed the key waits as long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// What a word stands for, where the cluster knows the candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Name of a session.
    Session,
    /// Name of a schedule.
    Schedule,
    /// Name of a pod.
    Pod,
    /// Something that the cluster has no candidates for.
    Other,
}

/// The answer for these words; the last one is what has been typed so far of the next.
pub async fn answer(words: &[OsString]) -> String {
    let mut candidates = of_command_line(words);
    let names = match position(words) {
        Position::Other => Vec::new(),
        position => tokio::time::timeout(ANSWER_TIMEOUT, names(position, words))
            .await
            .unwrap_or_default(),
    };
    let typed = words
        .last()
        .map(|word| word.to_string_lossy().into_owned())
        .unwrap_or_default();
    // Options are offered to whoever begins one.
    candidates.retain(|candidate, _| typed.starts_with('-') || !candidate.starts_with('-'));
    for name in names.into_iter().filter(|name| name.starts_with(&typed)) {
        candidates.insert(name, String::new());
    }
    let takes_file = previous(words).is_some_and(|word| matches!(word.as_str(), "--kubeconfig" | "--gateway-ca"));
    let takes_file =
        takes_file || (previous(words).as_deref() == Some("-o") && subcommand(words).as_deref() == Some("fetch"));
    let mut text = String::new();
    for (value, help) in candidates {
        text.push_str(&line(&value));
        if !help.is_empty() {
            text.push('\t');
            text.push_str(&line(&help));
        }
        text.push('\n');
    }
    text.push_str(if takes_file { FILES } else { NO_FILES });
    text
}

/// Subcommands, options and values that the program itself knows, with what they are.
fn of_command_line(words: &[OsString]) -> BTreeMap<String, String> {
    let mut all = vec![OsString::from("kubectl-flopwatch")];
    all.extend(words.iter().cloned());
    let last = all.len() - 1;
    let found = clap_complete::engine::complete(&mut Cli::command(), all, last, None).unwrap_or_default();
    found
        .into_iter()
        .filter(|candidate| !candidate.is_hide_set())
        .map(|candidate| {
            let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
            let first = help.lines().next().unwrap_or_default().to_owned();
            (candidate.get_value().to_string_lossy().into_owned(), first)
        })
        .collect()
}

fn text(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Options whose value is a word of its own.
fn takes_value(word: &str) -> bool {
    let command = Cli::command();
    let all = command.get_subcommands().flat_map(clap::Command::get_arguments);
    let mut options = command.get_arguments().chain(all);
    options.any(|option| {
        let named = option.get_long().is_some_and(|long| word == format!("--{long}"))
            || option.get_short().is_some_and(|short| word == format!("-{short}"));
        named && option.get_action().takes_values() && !option.is_require_equals_set()
    })
}

/// The words that are neither options nor their values, without the one that is being typed.
fn positional(words: &[OsString]) -> Vec<String> {
    let words = text(words);
    let mut found = Vec::new();
    let mut skip = false;
    for word in words.iter().take(words.len().saturating_sub(1)) {
        if std::mem::take(&mut skip) {
            continue;
        }
        if word.starts_with('-') {
            skip = takes_value(word);
        } else {
            found.push(word.clone());
        }
    }
    found
}

fn subcommand(words: &[OsString]) -> Option<String> {
    positional(words).into_iter().next()
}

fn previous(words: &[OsString]) -> Option<String> {
    let words = text(words);
    words.len().checked_sub(2).and_then(|at| words.get(at)).cloned()
}

/// What the word that is being typed stands for.
fn position(words: &[OsString]) -> Position {
    let typed = words.last().is_some_and(|word| word.to_string_lossy().starts_with('-'));
    if typed || previous(words).is_some_and(|word| takes_value(&word)) {
        return Position::Other;
    }
    let positional = positional(words);
    match positional.as_slice() {
        [command] => match command.as_str() {
            "describe" | "watch" | "wait" | "stop" | "fetch" | "open" | "compare" => Position::Session,
            "schedule" | "schedules" => Position::Schedule,
            "profile" | "recent" | "doctor" => Position::Pod,
            _ => Position::Other,
        },
        [command, _] if command == "compare" => Position::Session,
        _ => Position::Other,
    }
}

/// The value of an option, given as `--name value` or `--name=value`.
fn option(words: &[OsString], names: &[&str]) -> Option<String> {
    let words = text(words);
    let mut found = None;
    for (at, word) in words.iter().enumerate() {
        for name in names {
            if word == name {
                found = words.get(at + 1).cloned();
            } else if let Some(value) = word.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
                found = Some(value.to_owned());
            }
        }
    }
    found.filter(|value| !value.is_empty())
}

async fn names(position: Position, words: &[OsString]) -> Vec<String> {
    let arguments = ConnectionArguments {
        namespace: option(words, &["--namespace", "-n"]),
        context: option(words, &["--context"]),
        kubeconfig: option(words, &["--kubeconfig"]).map(Into::into),
        flopwatch_namespace: String::new(),
    };
    // Whatever goes wrong: there are no candidates then, and the terminal is not written to.
    let Ok(cluster) = Cluster::connect(&arguments).await else {
        return Vec::new();
    };
    match position {
        Position::Session => names_of::<ProfilingSession>(&cluster).await,
        Position::Schedule => names_of::<ProfilingSchedule>(&cluster).await,
        Position::Pod => {
            let typed = words
                .last()
                .is_some_and(|word| word.to_string_lossy().starts_with("pod/"));
            let kind = if typed { "pod/" } else { "" };
            let pods = names_of::<Pod>(&cluster).await;
            pods.into_iter().map(|name| format!("{kind}{name}")).collect()
        }
        Position::Other => Vec::new(),
    }
}

/// The names of a kind's objects in the namespace; none where they cannot be read.
async fn names_of<K>(cluster: &Cluster) -> Vec<String>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let params = ListParams::default().limit(500);
    let found = cluster.api::<K>().list_metadata(&params).await;
    let found = found.map(|found| found.items).unwrap_or_default();
    found.iter().map(ResourceExt::name_any).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[tokio::test]
    async fn subcommands_options_and_values_are_offered_with_what_they_are() {
        let message = answer(&words("prof")).await;
        assert_eq!(message, "profile\tProfile a pod\n:4\n");
        let message = answer(&words("profile trainer --prof")).await;
        assert!(message.starts_with("--profiler\tWhat to profile with"), "{message}");
        let message = answer(&words("profile trainer --profiler m")).await;
        assert!(message.starts_with("metrics"), "{message}");
        assert!(
            answer(&words("sessions --kubeconfig ")).await.ends_with(":0\n"),
            "a file"
        );
    }

    #[test]
    fn the_cluster_is_asked_only_where_it_knows_the_names() {
        let rows = [
            ("describe ", Position::Session),
            ("-n team fetch fi", Position::Session),
            ("schedule ni", Position::Schedule),
            ("schedule nightly ", Position::Other),
            ("profile tr", Position::Pod),
            ("doctor --container main ", Position::Pod),
            ("fetch first ", Position::Other),
            ("fetch -o ", Position::Other),
            ("fetch --fo", Position::Other),
            ("sessions ", Position::Other),
            ("", Position::Other),
        ];
        for (line, expected) in rows {
            assert_eq!(position(&words(line)), expected, "{line}");
        }
        assert_eq!(
            option(&words("-n a --namespace=b x"), &["--namespace", "-n"]).as_deref(),
            Some("b")
        );
        assert_eq!(option(&words("describe x"), &["--namespace", "-n"]), None);
    }
}
