//! Server-side apply without managed fields: what a manager applied last is taken back where it
//! leaves it out now.

use serde_json::{Map, Value};

/// The list whose entries belong to several managers, and the key that tells them apart.
const SHARED_LIST: (&str, &str) = ("conditions", "type");

/// Applies `wanted` to an object of which the same manager applied `before` last.
pub(crate) fn apply(object: &mut Value, before: &Value, wanted: &Value) {
    let (Value::Object(object), Value::Object(wanted)) = (&mut *object, wanted) else {
        object.clone_from(wanted);
        return;
    };
    let nothing = Map::new();
    let before = before.as_object().unwrap_or(&nothing);
    object.retain(|key, _| !before.contains_key(key) || wanted.contains_key(key));
    for (key, value) in wanted {
        let earlier = before.get(key).unwrap_or(&Value::Null);
        match value {
            // As absent.
            Value::Null => {
                object.remove(key);
            }
            Value::Array(entries) if key == SHARED_LIST.0 => {
                let list = object.entry(key.clone()).or_insert_with(|| Value::Array(Vec::new()));
                share(list, earlier, entries);
            }
            Value::Object(_) => apply(object.entry(key.clone()).or_insert(Value::Null), earlier, value),
            _ => {
                object.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Entries of a list by their key.
fn share(list: &mut Value, before: &Value, wanted: &[Value]) {
    let key = |entry: &Value| entry[SHARED_LIST.1].clone();
    let empty = Vec::new();
    let before = before.as_array().unwrap_or(&empty);
    let Value::Array(entries) = list else { return };
    let dropped = |entry: &Value| {
        before.iter().any(|one| key(one) == key(entry)) && !wanted.iter().any(|one| key(one) == key(entry))
    };
    entries.retain(|entry| !dropped(entry));
    for one in wanted {
        match entries.iter_mut().find(|entry| key(entry) == key(one)) {
            Some(entry) => entry.clone_from(one),
            None => entries.push(one.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_manager_takes_back_what_it_leaves_out_and_leaves_what_others_wrote() {
        let mut object = json!({
            "url": "x", "foreign": 1, "conditions": [{"type": "Lost"}, {"type": "Accepted"}, {"type": "Captured"}],
            "progress": {"stage": "Queued", "percent": 1}
        });
        let before = json!({
            "url": "x", "conditions": [{"type": "Accepted"}, {"type": "Captured"}], "progress": {"stage": "Queued", "percent": 1}
        });
        let wanted = json!({"conditions": [{"type": "Accepted", "status": "True"}], "progress": {"stage": "Done"}});
        apply(&mut object, &before, &wanted);
        assert_eq!(
            object,
            json!({
                "foreign": 1, "conditions": [{"type": "Lost"}, {"type": "Accepted", "status": "True"}],
                "progress": {"stage": "Done"}
            })
        );
    }
}
