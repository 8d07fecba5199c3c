//! What calls of `analyze` give.

use flopwatch_analysis::InputCount;

use super::Entry;
use super::text::{WIDTH, docstring, width};

/// A method or function `analyze` of the package.
pub(super) struct Call {
    name: &'static str,
    about: &'static str,
    /// What stands around the analysis's name, and behind it.
    arguments: fn(&str) -> Vec<String>,
    is_awaited: bool,
    is_of_one: bool,
}

pub(super) const CALLS: [Call; 5] = [
    Call {
        name: "AnalyzeCapture",
        about: "`analyze` of a capture.",
        arguments: |analysis| vec![format!("name: {analysis}"), "/".to_owned()],
        is_awaited: false,
        is_of_one: true,
    },
    Call {
        name: "AnalyzeCaptureAwaited",
        about: "The same, awaited.",
        arguments: |analysis| vec![format!("name: {analysis}"), "/".to_owned()],
        is_awaited: true,
        is_of_one: true,
    },
    Call {
        name: "AnalyzeCaptures",
        about: "`analyze` of one or more captures.",
        arguments: |analysis| {
            vec![
                format!("name: {analysis}"),
                "/".to_owned(),
                "captures: Sequence[Capture]".to_owned(),
            ]
        },
        is_awaited: false,
        is_of_one: false,
    },
    Call {
        name: "AnalyzeSession",
        about: "`analyze` of a client, of a session.",
        arguments: of_session,
        is_awaited: false,
        is_of_one: false,
    },
    Call {
        name: "AnalyzeSessionAwaited",
        about: "The same, awaited.",
        arguments: of_session,
        is_awaited: true,
        is_of_one: false,
    },
];

fn of_session(analysis: &str) -> Vec<String> {
    vec![
        "name: str".to_owned(),
        format!("analysis: {analysis}"),
        "/".to_owned(),
        "capture: str | None = None".to_owned(),
        "*".to_owned(),
        "others: Sequence[str] = ()".to_owned(),
    ]
}

/// Its type: a signature for each analysis.
pub(super) fn protocol(call: &Call, entries: &[Entry]) -> String {
    let mut text = format!("\nclass {}(Protocol):\n{}\n", call.name, docstring(Some(call.about)));
    for entry in entries {
        if call.is_of_one && entry.definition.inputs == InputCount::Two {
            continue;
        }
        let mut arguments = vec!["self".to_owned()];
        arguments.extend((call.arguments)(&format!("Literal[\"{}\"]", entry.definition.name)));
        let parameters = entry.parameters.as_ref();
        arguments.extend(parameters.map(|parameters| format!("**parameters: Unpack[{parameters}]")));
        let returns = if call.is_awaited {
            format!("Coroutine[Any, Any, {}]", entry.result)
        } else {
            entry.result.clone()
        };
        text.push_str("    @overload\n");
        let line = format!("    def __call__({}) -> {returns}: ...\n", arguments.join(", "));
        if width(&line) <= WIDTH {
            text.push_str(&line);
        } else {
            let line = format!(
                "    def __call__(\n        {},\n    ) -> {returns}: ...\n",
                arguments.join(",\n        ")
            );
            text.push_str(&line);
        }
    }
    text
}
