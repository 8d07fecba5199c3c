//! Schemas that the derive cannot express: standard conditions and label selectors, with the bounds
//! and list types that the API conventions ask for.
//!
//! The derived `Condition` schema allows any status, has no limits and makes the list atomic, so
//! that server-side apply would replace it as a whole; see
//! <https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md>.

/// The derive of custom resources' schemas, with their rules of validation.
#[cfg(feature = "resources")]
pub(crate) use kube::KubeSchema;
/// Without custom resources there are no such rules.
#[cfg(not(feature = "resources"))]
pub(crate) use schemars::JsonSchema as KubeSchema;
use schemars::{Schema, SchemaGenerator, json_schema};
#[cfg(feature = "resources")]
use serde_json::{Map, Value, json};

/// The field of a spec that may change once the object is created.
#[cfg(feature = "resources")]
const CHANGEABLE: &str = "stop";

/// Adds the rule that every field of a spec but `stop` is fixed once the object is created.
///
/// The rule names each property that the schema has, so that no field can be forgotten. It is the
/// first of the spec's rules.
#[cfg(feature = "resources")]
pub(crate) fn fixed_but_for_stop(message: &'static str) -> impl FnMut(&mut Schema) {
    move |schema: &mut Schema| {
        let properties = schema.get("properties").and_then(Value::as_object);
        let fields = properties.into_iter().flat_map(Map::keys);
        let rule = unchanged(fields.map(String::as_str).filter(|field| *field != CHANGEABLE));
        schema.insert(
            "x-kubernetes-validations".to_owned(),
            json!([{ "rule": rule, "message": message }]),
        );
    }
}

/// CEL: none of these fields may differ from the stored object. `has` guards each, since an
/// optional field may be absent.
///
/// The whole is compared first: the API server evaluates this for each write of a status too, and
/// each field that a rule names costs it a map of all the schema's properties (`Properties` of
/// `apiextensions-apiserver/pkg/apiserver/schema/cel/model`), a fifth of what it allocated in a
/// fleet.
#[cfg(feature = "resources")]
fn unchanged<'a>(fields: impl Iterator<Item = &'a str>) -> String {
    let same = |field: &str| {
        format!("has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})")
    };
    let all = fields.map(same).collect::<Vec<_>>().join(" && ");
    format!("self == oldSelf || ({all})")
}

/// `status.conditions`: at most one per type, merged by type under server-side apply.
#[cfg(feature = "resources")]
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "What is known about this object, one entry per aspect. Each reason comes from a documented, closed set.",
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": { "type": "string", "maxLength": 316, "description": "Aspect that this entry is about, in CamelCase." },
                "status": { "type": "string", "enum": ["True", "False", "Unknown"], "description": "Whether the aspect holds." },
                "reason": {
                    "type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                    "description": "Why, for programs: one word of a closed set."
                },
                "message": { "type": "string", "maxLength": 4096, "description": "Why, for people, and what to do about it." },
                "lastTransitionTime": { "type": "string", "format": "date-time", "description": "When the status last changed." },
                "observedGeneration": {
                    "type": "integer", "format": "int64", "minimum": 0,
                    "description": "Generation of the object that this entry was determined from."
                }
            }
        }
    })
}

/// `metav1.LabelSelector`, bounded.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "Selects pods of the session's own namespace by their labels.",
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "type": "object",
                "maxProperties": 32,
                "additionalProperties": { "type": "string", "maxLength": 63 },
                "description": "Labels that a pod must have, with these values."
            },
            "matchExpressions": {
                "type": "array",
                "maxItems": 32,
                "x-kubernetes-list-type": "atomic",
                "description": "Requirements that a pod's labels must all meet.",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": { "type": "string", "maxLength": 317, "description": "Label key." },
                        "operator": { "type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"], "description": "Relation of the label to the values." },
                        "values": {
                            "type": "array",
                            "maxItems": 64,
                            "x-kubernetes-list-type": "atomic",
                            "items": { "type": "string", "maxLength": 63 },
                            "description": "Values for In and NotIn."
                        }
                    }
                }
            }
        },
        "x-kubernetes-validations": [{
            "rule": "(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
            "message": "an empty podSelector would select every pod of the namespace: give matchLabels or matchExpressions"
        }]
    })
}

/// The `spec` of a Pod: what is not named here is kept as it is, and the API server judges it when the pod is made.
pub(crate) fn pod_spec(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "Specification of the pod, as in a Pod: kept as it is written, fields that this version does not know included.",
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "required": ["containers"],
        "properties": {
            "restartPolicy": { "type": "string", "maxLength": 16, "description": "Never, which is the default: the session runs its pod once." },
            "containers": {
                "type": "array",
                "minItems": 1,
                "maxItems": 64,
                "x-kubernetes-list-type": "atomic",
                "description": "Containers of the pod.",
                "items": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                    "required": ["name"],
                    "properties": {
                        "name": { "type": "string", "minLength": 1, "maxLength": 63, "description": "Name of the container." }
                    }
                }
            }
        },
        "x-kubernetes-validations": [{
            "rule": "!has(self.restartPolicy) || self.restartPolicy == 'Never'",
            "message": "a session runs its pod once: leave restartPolicy out of the template, or write Never"
        }]
    })
}

/// A timestamp in RFC 3339.
#[cfg(feature = "resources")]
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time", "nullable": true })
}
