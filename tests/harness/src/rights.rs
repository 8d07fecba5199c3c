//! What a user or a group may do.

use std::fmt;

use serde_json::Value;

use crate::fault::Verb;
use crate::path::ResourcePath;

/// Stands for every verb, API group or resource.
const ALL: &str = "*";

/// Something that may be done, as RBAC gives it. `*` as verb, API group or resource stands for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    verb: String,
    /// Empty for the core group, and with a path.
    group: String,
    /// The subresource included: `captures/status`. Empty with a path.
    resource: String,
    /// All where there is none.
    namespace: Option<String>,
    /// All where there is none.
    name: Option<String>,
    /// In place of a resource.
    path: Option<String>,
}

impl Right {
    /// A right to a resource (`captures/status` for a subresource) of an API group, in every namespace. The core group is empty.
    pub fn resource(verb: &str, group: &str, resource: &str) -> Self {
        Self {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            namespace: None,
            name: None,
            path: None,
        }
    }

    /// A right to a path that is no resource, such as `/metrics`.
    pub fn path(verb: &str, path: &str) -> Self {
        Self {
            path: Some(path.to_owned()),
            ..Self::resource(verb, "", "")
        }
    }

    /// The same right in one namespace alone.
    #[must_use]
    pub fn in_namespace(self, namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..self
        }
    }

    /// The same right to the objects of one name alone.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self {
            name: Some(name.to_owned()),
            ..self
        }
    }

    /// What a call needs.
    pub(crate) fn needed(verb: Verb, place: &ResourcePath) -> Self {
        let verb = match verb {
            Verb::Replace => "update".to_owned(),
            other => other.to_string(),
        };
        Self {
            namespace: place.namespace.clone(),
            name: place.name.clone(),
            ..Self::resource(&verb, place.group(), &place.named())
        }
    }

    /// What the `spec` of an access review asks about; none when it names neither a resource nor a path, or both.
    pub(crate) fn asked(spec: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        match (&spec["resourceAttributes"], &spec["nonResourceAttributes"]) {
            (attributes @ Value::Object(_), Value::Null) => {
                let mut resource = text(&attributes["resource"]).unwrap_or_default();
                if let Some(subresource) = text(&attributes["subresource"]) {
                    resource = format!("{resource}/{subresource}");
                }
                Some(Self {
                    verb: text(&attributes["verb"]).unwrap_or_default(),
                    group: text(&attributes["group"]).unwrap_or_default(),
                    resource,
                    namespace: text(&attributes["namespace"]),
                    name: text(&attributes["name"]),
                    path: None,
                })
            }
            (Value::Null, attributes @ Value::Object(_)) => {
                let verb = text(&attributes["verb"]).unwrap_or_default();
                Some(Self::path(&verb, &text(&attributes["path"]).unwrap_or_default()))
            }
            _ => None,
        }
    }

    /// Whether who has this right has that one too.
    pub(crate) fn covers(&self, wanted: &Self) -> bool {
        let is = |given: &str, wanted: &str| given == ALL || given == wanted;
        let within = |given: &Option<String>, wanted: &Option<String>| given.is_none() || given == wanted;
        self.path == wanted.path
            && is(&self.verb, &wanted.verb)
            && is(&self.group, &wanted.group)
            && is(&self.resource, &wanted.resource)
            && within(&self.namespace, &wanted.namespace)
            && within(&self.name, &wanted.name)
    }
}

/// As a refusal words it: `create resource "pods" in API group "" in the namespace "team"`.
impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            return write!(f, "{} path \"{path}\"", self.verb);
        }
        let Self {
            verb, group, resource, ..
        } = self;
        write!(f, "{verb} resource \"{resource}\" in API group \"{group}\"")?;
        match &self.namespace {
            Some(namespace) => write!(f, " in the namespace \"{namespace}\""),
            None => f.write_str(" at the cluster scope"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_right_covers_what_is_within_it_and_nothing_beside_it() {
        let get = Right::resource("get", "", "pods");
        let here = get.clone().in_namespace("team");
        let one = here.clone().named("p");
        for (given, wanted, covers) in [
            (&get, &one, true),
            (&here, &one, true),
            (&one, &here, false),
            (&here, &get, false),
            (&here, &get.clone().in_namespace("other"), false),
            (&get, &Right::resource("list", "", "pods"), false),
            (&get, &Right::resource("get", "", "pods/log"), false),
            (&get, &Right::resource("get", "apps", "pods"), false),
            (&Right::resource("*", "*", "*"), &one, true),
            (&Right::resource("*", "*", "*"), &Right::path("get", "/metrics"), false),
            (&Right::path("get", "/metrics"), &Right::path("get", "/metrics"), true),
            (&Right::path("get", "/metrics"), &Right::path("get", "/logs"), false),
        ] {
            assert_eq!(given.covers(wanted), covers, "{given:?} {wanted:?}");
        }
    }

    #[test]
    fn a_review_asks_about_a_resource_or_a_path() {
        let attributes = json!({
            "verb": "get", "group": "flopwatch.dev", "resource": "profilingsessions", "subresource": "raw", "namespace": "team"
        });
        let raw = Right::resource("get", "flopwatch.dev", "profilingsessions/raw").in_namespace("team");
        assert_eq!(Right::asked(&json!({"resourceAttributes": attributes})), Some(raw));
        let path = json!({"verb": "get", "path": "/metrics"});
        assert_eq!(
            Right::asked(&json!({"nonResourceAttributes": path})),
            Some(Right::path("get", "/metrics"))
        );
        let both = json!({"resourceAttributes": attributes, "nonResourceAttributes": path});
        assert_eq!((Right::asked(&both), Right::asked(&json!({}))), (None, None));
    }
}
