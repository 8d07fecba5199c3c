//! The objects, what happened to them, and what was asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::apply::apply;
use crate::fault::{Fault, Rule, Verb};
use crate::path::{ResourcePath, plural};
use crate::reviews::{Identity, Reviews};
use crate::schema::out_of_bounds;
use crate::server::ApiServer;

/// An answer: the code and the body.
pub(crate) type Answer = (u16, Value);

/// A call that a client made.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The user who made it; none when no token was shown, or one that is nobody's.
    pub user: Option<String>,
    /// Action that the client asked for.
    pub verb: Verb,
    /// The path, without what follows a `?`.
    pub path: String,
    /// What it sent; null when that was nothing or no JSON.
    pub body: Value,
    /// The status of its answer; none while there is none.
    pub code: Option<u16>,
}

/// Something that happened to an object.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    pub(crate) revision: u64,
    pub(crate) key: Key,
    /// As in a watch.
    pub(crate) what: &'static str,
    pub(crate) object: Value,
}

/// Resource, namespace, name.
pub(crate) type Key = (String, Option<String>, String);

/// How long the answer to a call is on its way.
pub(crate) type Delay = Arc<dyn Fn(&Call) -> BoxFuture<'static, ()> + Send + Sync>;

/// What others do about a call once it was answered.
pub(crate) type Reaction = Arc<dyn Fn(&ApiServer, &Call) + Send + Sync>;

#[derive(Default)]
pub(crate) struct State {
    objects: BTreeMap<Key, Value>,
    /// What each manager applied last, by object, subresource and manager.
    applied: BTreeMap<(Key, Option<String>, String), Value>,
    pub(crate) history: Vec<Happened>,
    revision: u64,
    named: u64,
    pub(crate) calls: Vec<Call>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) reviews: Reviews,
    /// By API and resource.
    pub(crate) schemas: BTreeMap<(String, String), Value>,
    /// Most objects in an answer to a list, whatever was asked for.
    pub(crate) page: Option<usize>,
    pub(crate) reactions: Vec<Reaction>,
    pub(crate) delays: Vec<Delay>,
    /// API groups that are not served.
    pub(crate) removed_groups: BTreeSet<String>,
    /// Port of this machine that port-forwards lead to.
    pub(crate) forwards_to: Option<u16>,
    /// How far its clock is ahead.
    pub(crate) ahead: SignedDuration,
    /// Grows when all watches are to end.
    pub(crate) epoch: u64,
}

pub(crate) fn refusal(code: u16, reason: &str, message: &str) -> Answer {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason, "message": message, "code": code
    });
    (code, status)
}

/// An answer in which a refusal says what it is about. One of a caller whom nobody knows does not.
pub(crate) fn about(place: &ResourcePath, (code, mut answer): Answer) -> Answer {
    if code >= 400 && code != 401 {
        let name = place.name.as_deref().unwrap_or_default();
        answer["details"] = json!({"name": name, "group": place.group(), "kind": place.resource});
    }
    (code, answer)
}

/// The refusal that a fault makes.
pub(crate) fn refused(code: u16, message: &str) -> Answer {
    let reason = match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        _ => "InternalError",
    };
    refusal(code, reason, message)
}

fn not_found(place: &ResourcePath) -> Answer {
    let name = place.name.as_deref().unwrap_or_default();
    refusal(404, "NotFound", &format!("{} \"{name}\" not found", place.qualified()))
}

fn key(place: &ResourcePath, name: &str) -> Key {
    (place.resource.clone(), place.namespace.clone(), name.to_owned())
}

/// What of an object's metadata the server alone says.
const OWN: [&str; 4] = ["uid", "resourceVersion", "creationTimestamp", "generation"];

/// Takes out what a client has no say in.
fn without_own(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !OWN.contains(&field.as_str()));
    }
}

/// The value that a dotted path leads to.
fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(object, |value, part| &value[part])
}

/// Whether an object is one of those that the selectors of a query name.
pub(crate) fn is_selected(object: &Value, query: &BTreeMap<String, String>) -> bool {
    let holds = |selector: Option<&String>, value: &dyn Fn(&str) -> Option<String>| {
        let mut terms = selector.into_iter().flat_map(|selector| selector.split(','));
        terms.all(|term| match term.split_once("!=") {
            Some((name, unwanted)) => value(name).as_deref() != Some(unwanted),
            None => match term.split_once('=') {
                Some((name, wanted)) => value(name).as_deref() == Some(wanted.trim_start_matches('=')),
                None => term.is_empty() || value(term).is_some(),
            },
        })
    };
    let label = |name: &str| object["metadata"]["labels"][name].as_str().map(str::to_owned);
    let field = |name: &str| match at(object, name) {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    };
    holds(query.get("labelSelector"), &label) && holds(query.get("fieldSelector"), &field)
}

impl State {
    /// The fault that this call is to have, if any.
    pub(crate) fn fault(&mut self, verb: Verb, place: &ResourcePath) -> Option<Fault> {
        let named = place.named();
        let rule = self.rules.iter_mut().find(|rule| {
            let one = rule.name.is_none() || rule.name == place.name;
            rule.times > 0 && rule.verb == verb && rule.resource == named && one
        })?;
        rule.times = rule.times.saturating_sub(1);
        Some(rule.fault)
    }

    pub(crate) fn serves(&self, place: &ResourcePath) -> bool {
        !self.removed_groups.contains(place.group())
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::now().saturating_add(self.ahead).unwrap()
    }

    pub(crate) const fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn find(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<&Value> {
        self.objects
            .get(&(resource.to_owned(), namespace.map(str::to_owned), name.to_owned()))
    }

    pub(crate) fn all(&self, resource: &str) -> Vec<Value> {
        let of = self.objects.iter().filter(|((of, ..), _)| of == resource);
        of.map(|(_, object)| object.clone()).collect()
    }

    fn happened(&mut self, key: &Key, what: &'static str, object: &Value) {
        self.history.push(Happened {
            revision: self.revision,
            key: key.clone(),
            what,
            object: object.clone(),
        });
    }

    fn next(&mut self) -> String {
        self.revision += 1;
        self.revision.to_string()
    }

    /// Puts an object there as it is, with what every object has.
    pub(crate) fn put(&mut self, mut object: Value) -> Value {
        let resource = plural(object["kind"].as_str().unwrap_or_default());
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let namespace = text(&object["metadata"]["namespace"]);
        if object["metadata"]["name"].is_null() {
            let prefix = text(&object["metadata"]["generateName"]).unwrap_or_default();
            object["metadata"]["name"] = json!(format!("{prefix}{}", self.named));
            self.named += 1;
        }
        let name = text(&object["metadata"]["name"]).unwrap_or_default();
        let key = (resource, namespace, name);
        let known = self.objects.contains_key(&key);
        let revision = self.next();
        let metadata = &mut object["metadata"];
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!("uid-{revision}"));
        }
        if metadata["creationTimestamp"].is_null() {
            let now = Timestamp::from_second(self.now().as_second()).unwrap();
            metadata["creationTimestamp"] = json!(now.to_string());
        }
        if metadata["generation"].is_null() {
            metadata["generation"] = json!(1);
        }
        metadata["resourceVersion"] = json!(revision);
        self.objects.insert(key.clone(), object.clone());
        self.happened(&key, if known { "MODIFIED" } else { "ADDED" }, &object);
        object
    }

    /// Stores a changed object; one that is being deleted and has no finalizer left is gone.
    fn store(&mut self, key: &Key, mut changed: Value) -> Value {
        let Some(before) = self.objects.get(key) else {
            return changed;
        };
        if *before == changed {
            return changed;
        }
        if before["spec"] != changed["spec"] {
            let generation = before["metadata"]["generation"].as_u64().unwrap_or_default();
            changed["metadata"]["generation"] = json!(generation + 1);
        }
        changed["metadata"]["resourceVersion"] = json!(self.next());
        let held = changed["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|finalizers| !finalizers.is_empty());
        if !held && !changed["metadata"]["deletionTimestamp"].is_null() {
            self.remove(key, &changed);
        } else {
            self.objects.insert(key.clone(), changed.clone());
            self.happened(key, "MODIFIED", &changed);
        }
        changed
    }

    fn remove(&mut self, key: &Key, last: &Value) {
        self.objects.remove(key);
        self.applied.retain(|(of, ..), _| of != key);
        self.happened(key, "DELETED", last);
    }

    /// Changes an object as somebody else would. Whether there is one.
    pub(crate) fn edit(&mut self, key: &Key, change: impl FnOnce(&mut Value)) -> bool {
        let Some(mut object) = self.objects.get(key).cloned() else {
            return false;
        };
        change(&mut object);
        self.store(key, object);
        true
    }

    /// Deletes an object, or marks it where it has finalizers. Whether there is one.
    pub(crate) fn end(&mut self, key: &Key) -> Option<Value> {
        let object = self.objects.get(key).cloned()?;
        let held = object["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|finalizers| !finalizers.is_empty());
        let mut last = object;
        if held && last["metadata"]["deletionTimestamp"].is_null() {
            last["metadata"]["deletionTimestamp"] = json!(self.now().to_string());
            return Some(self.store(key, last));
        }
        if !held {
            last["metadata"]["resourceVersion"] = json!(self.next());
            self.remove(key, &last);
        }
        Some(last)
    }

    /// Answers a call that is no watch.
    pub(crate) fn answer(
        &mut self,
        caller: &Identity,
        verb: Verb,
        place: &ResourcePath,
        query: &BTreeMap<String, String>,
        kind_of_patch: &str,
        body: &Value,
    ) -> Answer {
        let name = place.name.clone().unwrap_or_default();
        let key = key(place, &name);
        match verb {
            Verb::List | Verb::Watch => self.list(place, query),
            Verb::Create => self.create(caller, place, query, body),
            Verb::Get => match self.objects.get(&key) {
                Some(object) => (200, object.clone()),
                None => not_found(place),
            },
            Verb::Replace | Verb::Patch | Verb::Delete => {
                let Some(object) = self.objects.get(&key).cloned() else {
                    return not_found(place);
                };
                let wanted = if verb == Verb::Delete {
                    &body["preconditions"]
                } else {
                    &body["metadata"]
                };
                for precondition in ["uid", "resourceVersion"] {
                    let (wanted, has) = (&wanted[precondition], &object["metadata"][precondition]);
                    if !wanted.is_null() && wanted != has {
                        let message = format!(
                            "Operation cannot be fulfilled on {} \"{name}\": Precondition failed: {precondition} is {has}, not {wanted}",
                            place.qualified()
                        );
                        return refusal(409, "Conflict", &message);
                    }
                }
                // The options of a deletion come in its body.
                let for_trial = query.contains_key("dryRun") || !body["dryRun"].is_null();
                if verb == Verb::Delete {
                    let last = if for_trial { None } else { self.end(&key) };
                    return (200, last.unwrap_or(object));
                }
                if kind_of_patch.contains("apply-patch") {
                    let manager = query.get("fieldManager").cloned().unwrap_or_default();
                    let by = (key.clone(), place.subresource.clone(), manager);
                    let before = self.applied.get(&by).unwrap_or(&Value::Null);
                    let part = applied_part(place, body);
                    let mut changed = object;
                    apply(&mut changed, before, &part);
                    if for_trial {
                        return (200, changed);
                    }
                    self.applied.insert(by, part);
                    return (200, self.store(&key, changed));
                }
                let changed = changed(place, &object, kind_of_patch, body);
                (200, if for_trial { changed } else { self.store(&key, changed) })
            }
        }
    }

    fn list(&self, place: &ResourcePath, query: &BTreeMap<String, String>) -> Answer {
        let of = self.objects.iter().filter(|((resource, namespace, _), object)| {
            let there = place.namespace.is_none() || *namespace == place.namespace;
            *resource == place.resource && there && is_selected(object, query)
        });
        let all: Vec<Value> = of.map(|(_, object)| object.clone()).collect();
        let from: usize = query.get("continue").map_or(0, |token| token.parse().unwrap_or(0));
        let asked = query.get("limit").and_then(|limit| limit.parse().ok());
        let limit = asked.into_iter().chain(self.page).min().unwrap_or(usize::MAX);
        let until = from.saturating_add(limit).min(all.len());
        let more = if until < all.len() {
            until.to_string()
        } else {
            String::new()
        };
        let page = json!({
            "apiVersion": place.api, "kind": "List",
            "metadata": {"resourceVersion": self.revision.to_string(), "continue": more},
            "items": all.get(from..until).unwrap_or_default()
        });
        (200, page)
    }

    fn create(
        &mut self,
        caller: &Identity,
        place: &ResourcePath,
        query: &BTreeMap<String, String>,
        body: &Value,
    ) -> Answer {
        if let Some(answer) = self.reviews.review(caller, place, body) {
            return answer;
        }
        if place.named() == "serviceaccounts/token" {
            let account = place.name.clone().unwrap_or_default();
            if !self.objects.contains_key(&key(place, &account)) {
                return not_found(place);
            }
            let now = self.now();
            return self.reviews.token_request(place, body, now);
        }
        let mut object = body.clone();
        if let Some(namespace) = &place.namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        if let Some(name) = object["metadata"]["name"].as_str()
            && self.objects.contains_key(&key(place, name))
        {
            return refusal(
                409,
                "AlreadyExists",
                &format!("{} \"{name}\" already exists", place.qualified()),
            );
        }
        let schema = self.schemas.get(&(place.api.clone(), place.resource.clone()));
        if let Some(words) = schema.and_then(|schema| out_of_bounds(schema, &object, "")) {
            return refusal(422, "Invalid", &format!("{} is invalid: {words}", place.resource));
        }
        // Some send it: it is the server's to say.
        without_own(&mut object);
        let for_trial = query.contains_key("dryRun");
        (201, if for_trial { object } else { self.put(object) })
    }
}

/// Whether a call is about the status: who is not asked about it cannot change it, and who is
/// changes nothing else.
fn is_about_status(place: &ResourcePath) -> bool {
    place.subresource.as_deref() == Some("status")
}

/// What of an apply is applied.
fn applied_part(place: &ResourcePath, body: &Value) -> Value {
    let mut wanted = body.clone();
    without_own(&mut wanted);
    if is_about_status(place) {
        json!({"status": wanted["status"]})
    } else {
        wanted
    }
}

/// The object as a replacement or a patch that is no apply makes it.
fn changed(place: &ResourcePath, object: &Value, how: &str, body: &Value) -> Value {
    let mut changed = object.clone();
    let mut wanted = body.clone();
    without_own(&mut wanted);
    if how.contains("json-patch+json") {
        let patch: json_patch::Patch = serde_json::from_value(body.clone()).unwrap();
        json_patch::patch(&mut changed, &patch).unwrap();
    } else if how.contains("merge-patch") {
        json_patch::merge(&mut changed, &wanted);
    } else {
        let metadata = changed["metadata"].clone();
        changed = wanted;
        for own in OWN.into_iter().chain(["namespace", "name"]) {
            changed["metadata"][own] = metadata[own].clone();
        }
    }
    if is_about_status(place) {
        let mut kept = object.clone();
        kept["status"] = changed["status"].clone();
        return kept;
    }
    changed["status"] = object["status"].clone();
    if changed["status"].is_null()
        && let Some(fields) = changed.as_object_mut()
    {
        fields.remove("status");
    }
    changed
}
