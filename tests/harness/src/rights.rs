//! Rights of users and groups at the API server of the tests, as RBAC has them: what a call needs,
//! what an access review asks about, and which right covers which.

use std::fmt;

use serde_json::Value;

use crate::fault::Verb;
use crate::path::ResourcePath;

/// The verb, API group or resource that stands for all of them.
const WILDCARD: &str = "*";

/// A right, as a rule of RBAC gives it. `*` as verb, API group or resource stands for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    verb: String,
    /// API group. Empty for the core group, and where the right is to a path.
    group: String,
    /// Resource with its subresource: `captures/status`. Empty where the right is to a path.
    resource: String,
    /// The only namespace of the right; none: it holds in all.
    namespace: Option<String>,
    /// Name of the only object of the right; none: it holds for all.
    name: Option<String>,
    /// The path that the right is to, in place of a resource.
    path: Option<String>,
}

impl Right {
    /// A right to a resource of an API group in every namespace. A subresource is written
    /// `captures/status`, and the core group as an empty text.
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

    /// A right to a URL path that is no resource's, such as `/metrics`.
    pub fn path(verb: &str, path: &str) -> Self {
        Self {
            path: Some(path.to_owned()),
            ..Self::resource(verb, "", "")
        }
    }

    /// The right in the namespace `namespace` alone.
    #[must_use]
    pub fn in_namespace(self, namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..self
        }
    }

    /// The right to the objects `name` alone.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self {
            name: Some(name.to_owned()),
            ..self
        }
    }

    /// The right that a call with `verb` to `path` needs.
    pub(crate) fn needed(verb: Verb, path: &ResourcePath) -> Self {
        let verb = match verb {
            Verb::Replace => "update".to_owned(),
            other => other.to_string(),
        };
        Self {
            namespace: path.namespace.clone(),
            name: path.name.clone(),
            ..Self::resource(&verb, path.group(), &path.named())
        }
    }

    /// The right that an access review with this `spec` asks about; none where the spec names
    /// neither a resource nor a path, or both.
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

    /// Whether a subject with this right may do all that `wanted` allows.
    pub(crate) fn covers(&self, wanted: &Self) -> bool {
        let matches = |given: &str, wanted: &str| given == WILDCARD || given == wanted;
        let is_within = |given: &Option<String>, wanted: &Option<String>| given.is_none() || given == wanted;
        self.path == wanted.path
            && matches(&self.verb, &wanted.verb)
            && matches(&self.group, &wanted.group)
            && matches(&self.resource, &wanted.resource)
            && is_within(&self.namespace, &wanted.namespace)
            && is_within(&self.name, &wanted.name)
    }
}

/// The right as the API server words it in a refusal:
/// `create resource "pods" in API group "" in the namespace "team"`.
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
        let everywhere = Right::resource("get", "", "pods");
        let in_team = everywhere.clone().in_namespace("team");
        let one_pod = in_team.clone().named("p");
        for (given, wanted, covers) in [
            (&everywhere, &one_pod, true),
            (&in_team, &one_pod, true),
            (&one_pod, &in_team, false),
            (&in_team, &everywhere, false),
            (&in_team, &everywhere.clone().in_namespace("other"), false),
            (&everywhere, &Right::resource("list", "", "pods"), false),
            (&everywhere, &Right::resource("get", "", "pods/log"), false),
            (&everywhere, &Right::resource("get", "apps", "pods"), false),
            (&Right::resource("*", "*", "*"), &one_pod, true),
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
