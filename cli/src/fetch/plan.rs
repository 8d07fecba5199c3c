//! What to fetch, and where to: a function of the session, its captures and the command line.

use std::path::{Path, PathBuf};

use flopwatch_api::artifact::Artifact;
use flopwatch_api::capture::Capture;
use flopwatch_api::reason::SessionCondition;
use flopwatch_api::session::ProfilingSession;
use kube::ResourceExt;

use crate::fetch::FetchError;
use crate::print::line;

/// What the command line says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice<'a> {
    /// One capture alone.
    pub capture: Option<&'a str>,
    /// Names of artifacts; none: all but those that hold unredacted data.
    pub artifacts: &'a [String],
    /// A folder, or a file for one artifact.
    pub output: Option<&'a Path>,
}

/// An artifact to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// `status.id` of its session.
    pub session: String,
    /// Name of its capture.
    pub capture: String,
    /// Name of the artifact.
    pub name: String,
    /// Size of the artifact, in bytes.
    pub bytes: u64,
    /// Its checksum, 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Whether it holds unredacted data of the node, and is to be readable to its owner alone.
    pub sensitive: bool,
    /// Path of the file that the artifact is written to.
    pub to: PathBuf,
}

/// What to fetch, and where to.
pub fn plan(
    session: &ProfilingSession,
    captures: &[Capture],
    choice: &Choice<'_>,
    is_folder: impl Fn(&Path) -> bool,
) -> Result<Vec<Wanted>, FetchError> {
    let name = session.name_any();
    let chosen = chosen(&name, captures, choice)?;
    let mut wanted = Vec::new();
    for capture in &chosen {
        for artifact in published(capture) {
            let named = choice.artifacts.contains(&artifact.name);
            if named || (choice.artifacts.is_empty() && !artifact.sensitive) {
                wanted.push(checked(session, capture, artifact)?);
            }
        }
    }
    let existing = || {
        let artifacts = chosen.iter().flat_map(|capture| published(capture));
        listed(artifacts.map(|artifact| artifact.name.as_str()))
    };
    if chosen.iter().all(|capture| published(capture).is_empty()) {
        return Err(FetchError::NothingPublished {
            why: why_nothing(session, captures),
            session: name,
        });
    }
    let missing = choice
        .artifacts
        .iter()
        .find(|artifact| !wanted.iter().any(|wanted| wanted.name == **artifact));
    if let Some(missing) = missing {
        return Err(FetchError::NoSuchArtifact {
            session: name,
            artifact: line(missing),
            existing: existing(),
        });
    }
    if wanted.is_empty() {
        return Err(FetchError::NothingPublished {
            session: name,
            why: format!("but raw captures, which are fetched by name: --artifact {}", existing()),
        });
    }
    let folder = match choice.output {
        Some(output) if wanted.len() == 1 && !is_folder(output) && !ends_with_separator(output) => {
            for wanted in &mut wanted {
                output.clone_into(&mut wanted.to);
            }
            return Ok(wanted);
        }
        Some(output) => output.to_owned(),
        None => PathBuf::from(&name),
    };
    let several = wanted
        .iter()
        .any(|other| other.capture != wanted.first().map_or("", |first| &first.capture));
    for wanted in &mut wanted {
        let folder = if several {
            folder.join(&wanted.capture)
        } else {
            folder.clone()
        };
        wanted.to = folder.join(&wanted.name);
    }
    Ok(wanted)
}

fn chosen<'a>(session: &str, captures: &'a [Capture], choice: &Choice<'_>) -> Result<Vec<&'a Capture>, FetchError> {
    let Some(name) = choice.capture else {
        return Ok(captures.iter().collect());
    };
    let found: Vec<&Capture> = captures.iter().filter(|capture| capture.name_any() == name).collect();
    if found.is_empty() {
        let names: Vec<String> = captures.iter().map(ResourceExt::name_any).collect();
        return Err(FetchError::NoSuchCapture {
            session: session.to_owned(),
            capture: line(name),
            existing: listed(names.iter().map(String::as_str)),
        });
    }
    Ok(found)
}

/// The capture of that name; without a name the only one.
pub fn one<'a>(
    session: &ProfilingSession,
    captures: &'a [Capture],
    name: Option<&str>,
) -> Result<&'a Capture, FetchError> {
    let session_name = session.name_any();
    let choice = Choice {
        capture: name,
        ..Choice::default()
    };
    match chosen(&session_name, captures, &choice)?.as_slice() {
        [one] => Ok(one),
        [] => Err(FetchError::NothingPublished {
            why: why_nothing(session, captures),
            session: session_name,
        }),
        several => {
            let names: Vec<String> = several.iter().map(|capture| capture.name_any()).collect();
            Err(FetchError::SeveralCaptures {
                session: session_name,
                existing: names.join(", "),
            })
        }
    }
}

pub(super) fn published(capture: &Capture) -> &[Artifact] {
    let status = capture.status.as_ref();
    status.map_or(&[], |status| status.artifacts.as_slice())
}

/// An artifact whose name is a plain file name and whose checksum is one: both go into paths here
/// and at the gateway.
fn checked(session: &ProfilingSession, capture: &Capture, artifact: &Artifact) -> Result<Wanted, FetchError> {
    let odd = |what: &str| FetchError::Odd {
        capture: capture.name_any(),
        what: line(what),
    };
    let name = checked_name(capture, &artifact.name)?;
    let hexadecimal = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    if artifact.sha256.len() != 64 || !artifact.sha256.bytes().all(hexadecimal) {
        return Err(odd(&artifact.sha256));
    }
    let bytes = u64::try_from(artifact.bytes).map_err(|_negative| odd(&artifact.bytes.to_string()))?;
    Ok(Wanted {
        session: id(session, capture)?.to_owned(),
        capture: capture.name_any(),
        name: name.to_owned(),
        bytes,
        sha256: artifact.sha256.clone(),
        sensitive: artifact.sensitive,
        to: PathBuf::new(),
    })
}

fn is_plain(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(letter)
}

/// The name, if it is a plain file name.
pub(super) fn checked_name<'a>(capture: &Capture, name: &'a str) -> Result<&'a str, FetchError> {
    is_plain(name).then_some(name).ok_or_else(|| FetchError::Odd {
        capture: capture.name_any(),
        what: line(name),
    })
}

/// The identifier by which the gateway knows the session.
pub(super) fn id<'a>(session: &'a ProfilingSession, capture: &Capture) -> Result<&'a str, FetchError> {
    let id = session.status.as_ref().and_then(|status| status.id.as_deref());
    id.filter(|id| is_plain(id)).ok_or_else(|| FetchError::Odd {
        capture: capture.name_any(),
        what: "a session without an id".to_owned(),
    })
}

pub(super) fn why_nothing(session: &ProfilingSession, captures: &[Capture]) -> String {
    let name = session.name_any();
    match session.condition(SessionCondition::Succeeded) {
        Some(verdict) if verdict.status == "False" => format!(
            "it failed ({}: {}); kubectl flopwatch describe {name} says more",
            line(&verdict.reason),
            line(&verdict.message)
        ),
        Some(verdict) if verdict.status == "True" => "its artifacts are gone".to_owned(),
        _ if captures.is_empty() => format!("it has no capture yet; kubectl flopwatch watch {name}"),
        _ => format!("it has not ended; kubectl flopwatch watch {name}"),
    }
}

fn ends_with_separator(path: &Path) -> bool {
    path.as_os_str()
        .as_encoded_bytes()
        .last()
        .is_some_and(|byte| std::path::is_separator(char::from(*byte)))
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<String> = names.map(line).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::describe::tests::{capture, published as with_artifacts};
    use crate::sessions::tests::{CREATED, session, verdict};

    /// One capture, some artifacts, and a place; empty texts are none.
    fn choice<'a>(capture: &'a str, artifacts: &'a [String], output: &'a str) -> Choice<'a> {
        let given = |text: &'a str| Some(text).filter(|text| !text.is_empty());
        Choice {
            capture: given(capture),
            artifacts,
            output: given(output).map(Path::new),
        }
    }

    fn planned(captures: &[Capture], choice: &Choice<'_>) -> Result<Vec<String>, String> {
        let session = session("first", CREATED, &verdict("True", "Succeeded", ""));
        let planned = plan(&session, captures, choice, |path| path == Path::new("there"));
        let shown = |wanted: Wanted| format!("{}/{} to {}", wanted.capture, wanted.name, wanted.to.display());
        planned
            .map(|wanted| wanted.into_iter().map(shown).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn files_go_where_a_user_would_look_for_them() {
        let one = [capture("a", &with_artifacts())];
        let two = [capture("a", &with_artifacts()), capture("b", &with_artifacts())];
        let timeline = ["timeline.h5".to_owned()];
        let rows: [(&[Capture], Choice<'_>, &str); 6] = [
            (
                &one,
                choice("", &[], ""),
                "a/timeline.h5 to first/timeline.h5, a/summary.json to first/summary.json",
            ),
            (
                &two,
                choice("", &timeline, ""),
                "a/timeline.h5 to first/a/timeline.h5, b/timeline.h5 to first/b/timeline.h5",
            ),
            (&two, choice("b", &timeline, "x.h5"), "b/timeline.h5 to x.h5"),
            (
                &one,
                choice("", &timeline, "there"),
                "a/timeline.h5 to there/timeline.h5",
            ),
            (&one, choice("", &timeline, "new/"), "a/timeline.h5 to new/timeline.h5"),
            (
                &one,
                choice("", &[], "new"),
                "a/timeline.h5 to new/timeline.h5, a/summary.json to new/summary.json",
            ),
        ];
        for (captures, choice, expected) in rows {
            assert_eq!(planned(captures, &choice).unwrap().join(", "), expected, "{choice:?}");
        }
    }

    #[test]
    fn what_cannot_be_fetched_says_what_there_is() {
        let one = [capture("a", &with_artifacts())];
        let other = ["report".to_owned()];
        let text = planned(&one, &choice("z", &[], "")).unwrap_err();
        assert_eq!(text, "session first has no capture z; it has a");
        let text = planned(&one, &choice("", &other, "")).unwrap_err();
        assert_eq!(
            text,
            "session first published no report; it published summary.json, timeline.h5"
        );
        let text = planned(&[], &Choice::default()).unwrap_err();
        assert_eq!(text, "session first has published nothing: its artifacts are gone");
        let running = session("first", CREATED, &json!({"id": "0badcafe"}));
        let captures = [capture("a", &json!({}))];
        let error = plan(&running, &captures, &Choice::default(), |_| false).unwrap_err();
        let words = "it has not ended; kubectl flopwatch watch first";
        assert!(error.to_string().ends_with(words), "{error}");
    }

    #[test]
    fn raw_captures_are_fetched_by_name_alone() {
        let raw = json!({"artifacts": [{
            "name": "capture.nsys-rep", "type": "Raw", "bytes": 1, "sha256": "c".repeat(64),
            "mediaType": "application/octet-stream", "sensitive": true
        }]});
        let captures = [capture("a", &raw)];
        let text = planned(&captures, &Choice::default()).unwrap_err();
        assert!(text.ends_with("--artifact capture.nsys-rep"), "{text}");
        let named = ["capture.nsys-rep".to_owned()];
        assert!(planned(&captures, &choice("", &named, "")).is_ok());
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["../x", "/etc/passwd", ".hidden", "a b", "a?b", ""] {
            let status = json!({"artifacts": [{
                "name": name, "type": "Summary", "bytes": 1, "sha256": "c".repeat(64), "mediaType": "text/plain"
            }]});
            let text = planned(&[capture("a", &status)], &Choice::default()).unwrap_err();
            assert!(
                text.starts_with("capture a lists an artifact that cannot be one"),
                "{name}: {text}"
            );
        }
    }
}
