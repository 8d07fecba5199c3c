//! Variables that a container is given, for profilers that need no more than those.
//!
//! A variable is appended; whatever the user set stays as it is. What the image or `envFrom` sets
//! cannot be seen here, and a variable of the container goes before it.

use flopwatch_api::preparation::{JAX_DIR, JAX_DUMP_IR_TO, PreparationWord, PreparedFor, XLA_DUMP_TO, XLA_FLAGS};
use k8s_openapi::api::core::v1::{Container, EnvVar};
use serde_json::{Value, json};

use crate::admission::refusal::Refusal;

/// Programs as text, and how many at most: each has some files, and a program may compile without
/// end.
const XLA_DUMPS: &str = "--xla_dump_to=/flopwatch/jax --xla_dump_hlo_as_text --xla_dump_max_hlo_modules=512";

/// What is added to a container's environment.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Environment {
    /// Variables to append.
    pub(super) added: Vec<Value>,
    /// Variables that get another value: their place in the container's list, and the value.
    pub(super) changed: Vec<(usize, String)>,
    /// Words whose variables are all there then.
    pub(super) prepared_for: PreparedFor,
    /// Variables that are there with another value.
    pub(super) kept: Vec<Refusal>,
}

/// What the words add to the container.
pub(super) fn of(container: &Container, words: &PreparedFor) -> Environment {
    let mut environment = Environment::default();
    for word in words.words() {
        let wanted = word.variables();
        let mut complete = !wanted.is_empty();
        for (name, value) in wanted {
            match set(container, name) {
                None => environment.added.push(json!({"name": name, "value": value})),
                Some((_, there)) if there.value.as_deref() == Some(value) => {}
                Some(_) => {
                    complete = false;
                    environment.kept.push(Refusal::VariableKept { name, value });
                }
            }
        }
        if complete {
            let absent = word.guards().iter().filter(|(name, _)| set(container, name).is_none());
            let guards = absent.map(|(name, value)| json!({"name": name, "value": value}));
            environment.added.extend(guards);
            environment.is_prepared_for(word);
        }
    }
    environment
}

impl Environment {
    /// Notes that the container has all that a word asks for.
    pub(super) fn is_prepared_for(&mut self, word: PreparationWord) {
        self.prepared_for = std::mem::take(&mut self.prepared_for).with(word);
    }

    /// Has JAX's compiler write its programs to our own folder, where the container does not say
    /// another.
    pub(super) fn dump_programs(&mut self, container: &Container) {
        let own = XLA_DUMPS;
        match set(container, XLA_FLAGS) {
            None => self.added.push(json!({"name": XLA_FLAGS, "value": own})),
            Some((place, flags)) => match flags.value.as_deref().map(str::trim) {
                Some("") => self.changed.push((place, own.to_owned())),
                // Whatever does not begin so is the name of a file with flags.
                Some(flags) if flags.starts_with("--") && !flags.contains(XLA_DUMP_TO) => {
                    self.changed.push((place, format!("{flags} {own}")));
                }
                Some(flags) if flags.contains(XLA_DUMP_TO) => {}
                _ => self.kept.push(Refusal::VariableKept {
                    name: XLA_FLAGS,
                    value: own,
                }),
            },
        }
        if set(container, JAX_DUMP_IR_TO).is_none() {
            self.added.push(json!({"name": JAX_DUMP_IR_TO, "value": JAX_DIR}));
        }
    }
}

/// The variable of that name and its place; of several the last, which is the one that the
/// container gets.
pub(super) fn set<'a>(container: &'a Container, name: &str) -> Option<(usize, &'a EnvVar)> {
    let variables = container.env.as_deref().unwrap_or_default();
    let mut places = variables.iter().enumerate().rev();
    places.find(|(_, variable)| variable.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(env: &Value, words: &str) -> Environment {
        let container: Container = serde_json::from_value(json!({"name": "main", "env": env})).unwrap();
        of(&container, &words.parse().unwrap())
    }

    #[test]
    fn a_variable_is_added_once() {
        let daemon = || json!({"name": "KINETO_USE_DAEMON", "value": "1"});
        let delay = |seconds: &str| json!({"name": "KINETO_DAEMON_INIT_DELAY_S", "value": seconds});
        for (env, added) in [
            (Value::Null, json!([daemon(), delay("10")])),
            (json!([{"name": "A", "value": "1"}]), json!([daemon(), delay("10")])),
            (json!([daemon()]), json!([delay("10")])),
            (json!([delay("3")]), json!([daemon()])),
            (json!([daemon(), delay("10")]), json!([])),
        ] {
            let found = environment(&env, "kineto");
            assert_eq!(json!(found.added), added);
            assert_eq!(found.prepared_for.to_string(), "kineto");
            assert_eq!(found.kept, []);
        }
    }

    #[test]
    fn what_the_user_set_stays_and_is_told() {
        for there in [
            json!({"name": "KINETO_USE_DAEMON", "value": "0"}),
            json!({"name": "KINETO_USE_DAEMON", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}),
        ] {
            let found = environment(&json!([there]), "jax.kineto");
            assert_eq!(
                json!(found.added),
                json!([{"name": "JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "value": "-1"}])
            );
            assert_eq!(found.prepared_for.to_string(), "jax");
            let name = "KINETO_USE_DAEMON";
            assert_eq!(found.kept, [Refusal::VariableKept { name, value: "1" }]);
        }
    }

    #[test]
    fn flags_of_xla_are_appended_to_and_never_replaced() {
        let ir = json!({"name": "JAX_DUMP_IR_TO", "value": "/flopwatch/jax"});
        let own = json!({"name": "XLA_FLAGS", "value": XLA_DUMPS});
        let flags = |value: &str| json!({"name": "XLA_FLAGS", "value": value});
        let appended = format!("--xla_a=1 {XLA_DUMPS}");
        let from = json!({"name": "XLA_FLAGS", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}});
        for (there, added, changed, kept) in [
            (json!([]), vec![&own, &ir], None, false),
            (
                json!([{"name": "A", "value": "1"}, flags("--xla_a=1")]),
                vec![&ir],
                Some((1, appended.as_str())),
                false,
            ),
            (json!([flags("")]), vec![&ir], Some((0, XLA_DUMPS)), false),
            (json!([flags("--xla_dump_to=/mine")]), vec![&ir], None, false),
            (json!([flags("/etc/flags")]), vec![&ir], None, true),
            (json!([from]), vec![&ir], None, true),
            (
                json!([own, {"name": "JAX_DUMP_IR_TO", "value": "/mine"}]),
                vec![],
                None,
                false,
            ),
        ] {
            let container: Container = serde_json::from_value(json!({"name": "main", "env": there})).unwrap();
            let mut environment = Environment::default();
            environment.dump_programs(&container);
            assert_eq!(environment.added.iter().collect::<Vec<_>>(), added, "{there}");
            let expected: Vec<_> = changed
                .into_iter()
                .map(|(place, value)| (place, value.to_owned()))
                .collect();
            assert_eq!(environment.changed, expected, "{there}");
            assert_eq!(!environment.kept.is_empty(), kept, "{there}");
        }
    }

    #[test]
    fn a_word_without_variables_is_not_the_environments() {
        assert_eq!(environment(&Value::Null, "nsys"), Environment::default());
    }
}
