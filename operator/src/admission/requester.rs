//! Writes down who asked for a session, and lets nobody change it.

use flopwatch_api::REQUESTED_BY_ANNOTATION;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation};
use kube::ResourceExt as _;
use kube::core::DynamicObject;
use serde_json::{Value, json};

/// The patch by which `object` says that `requester` asked; None takes the annotation off.
pub(super) fn record(object: &DynamicObject, requester: Option<&str>) -> Vec<PatchOperation> {
    let path = || PointerBuf::from_tokens(["metadata", "annotations", REQUESTED_BY_ANNOTATION]);
    let now = object.annotations().get(REQUESTED_BY_ANNOTATION).map(String::as_str);
    match (now, requester) {
        (now, requester) if now == requester => Vec::new(),
        (_, None) => vec![PatchOperation::Remove(RemoveOperation { path: path() })],
        (_, Some(requester)) => {
            let mut operations = Vec::new();
            if object.metadata.annotations.is_none() {
                let path = PointerBuf::from_tokens(["metadata", "annotations"]);
                operations.push(PatchOperation::Add(AddOperation { path, value: json!({}) }));
            }
            let value = Value::String(requester.to_owned());
            operations.push(PatchOperation::Add(AddOperation { path: path(), value }));
            operations
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_annotation_says_the_requester_and_nothing_else() {
        let cases = [
            (json!({"metadata": {"name": "s"}}), Some("ada"), Some("ada")),
            (
                json!({"metadata": {"name": "s", "annotations": {"a": "b"}}}),
                Some("ada"),
                Some("ada"),
            ),
            (
                json!({"metadata": {"name": "s", "annotations": {REQUESTED_BY_ANNOTATION: "root"}}}),
                Some("ada"),
                Some("ada"),
            ),
            (
                json!({"metadata": {"name": "s", "annotations": {REQUESTED_BY_ANNOTATION: "root"}}}),
                None,
                None,
            ),
            (json!({"metadata": {"name": "s"}}), None, None),
        ];
        for (mut document, requester, expected) in cases {
            let object: DynamicObject = serde_json::from_value(document.clone()).unwrap();
            json_patch::patch(&mut document, &record(&object, requester)).unwrap();
            let patched: DynamicObject = serde_json::from_value(document).unwrap();
            assert_eq!(
                patched.annotations().get(REQUESTED_BY_ANNOTATION).map(String::as_str),
                expected
            );
            assert_eq!(record(&patched, requester), [], "a second time changes nothing");
        }
    }
}
