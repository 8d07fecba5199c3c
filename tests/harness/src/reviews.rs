//! Who calls and what they may do: tokens, rights, and the reviews that others ask about them with.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::fault::Verb;
use crate::path::ResourcePath;
use crate::rights::Right;
use crate::server::ApiServer;
use crate::state::{Answer, refusal};

/// Audience of tokens for the API server itself.
pub const API_SERVER_AUDIENCE: &str = "https://kubernetes.default.svc";
/// Token of the tests' own clients, which may do everything.
pub(crate) const ADMINISTRATOR: &str = "kubernetes-admin";
/// Group whose users may do everything.
const MASTERS: &str = "system:masters";
/// Who shows no token, where they are somebody, and their group.
const ANONYMOUS: (&str, &str) = ("system:anonymous", "system:unauthenticated");
/// Seconds for which a token is given out that asks for no other time.
const TOKEN_LIFETIME_SECONDS: i64 = 3600;

/// Whom a token belongs to, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    user: String,
    groups: Vec<String>,
    audiences: Vec<String>,
}

impl Identity {
    /// A user without groups, whose token is for the API server.
    pub fn new(user: &str) -> Self {
        Self {
            user: user.to_owned(),
            groups: Vec::new(),
            audiences: vec![API_SERVER_AUDIENCE.to_owned()],
        }
    }

    /// Puts the user into these groups alone.
    #[must_use]
    pub fn in_groups(self, groups: &[&str]) -> Self {
        Self {
            groups: groups.iter().copied().map(str::to_owned).collect(),
            ..self
        }
    }

    /// Makes the user's token good for these audiences alone.
    #[must_use]
    pub fn for_audiences(self, audiences: &[&str]) -> Self {
        Self {
            audiences: audiences.iter().copied().map(str::to_owned).collect(),
            ..self
        }
    }

    /// The name of the user.
    pub fn user(&self) -> &str {
        &self.user
    }

    fn info(&self) -> Value {
        json!({"username": self.user, "groups": self.groups})
    }
}

/// Tokens and rights.
pub(crate) struct Reviews {
    /// Identities by their token.
    identities: BTreeMap<String, Identity>,
    /// By user or group.
    rights: BTreeMap<String, Vec<Right>>,
    /// Whether who shows no token is somebody.
    anonymous: bool,
}

impl Default for Reviews {
    fn default() -> Self {
        let administrator = Identity::new(ADMINISTRATOR).in_groups(&[MASTERS]);
        Self {
            identities: BTreeMap::from([(ADMINISTRATOR.to_owned(), administrator)]),
            rights: BTreeMap::new(),
            anonymous: false,
        }
    }
}

impl Reviews {
    /// Whose token a request shows, if it is one for the API server.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Option<Identity> {
        let Some(shown) = headers.get(AUTHORIZATION) else {
            let (user, group) = ANONYMOUS;
            return self.anonymous.then(|| Identity::new(user).in_groups(&[group]));
        };
        let token = shown.to_str().ok()?.strip_prefix("Bearer ")?;
        let identity = self.identities.get(token)?;
        let ours = identity.audiences.iter().any(|one| one == API_SERVER_AUDIENCE);
        ours.then(|| identity.clone())
    }

    /// Who makes a call; the refusal where they are nobody or may not.
    pub(crate) fn let_through(
        &self,
        caller: Option<Identity>,
        verb: Verb,
        place: &ResourcePath,
    ) -> Result<Identity, Answer> {
        let caller = caller.ok_or_else(|| refusal(401, "Unauthorized", "Unauthorized"))?;
        // Whoever is known may ask about themselves.
        let about_self = verb == Verb::Create && place.resource.starts_with("selfsubject");
        let needed = Right::needed(verb, place);
        if about_self || self.may(&caller.user, &caller.groups, &needed) {
            return Ok(caller);
        }
        let message = format!(
            "{} is forbidden: User \"{}\" cannot {needed}",
            place.qualified(),
            caller.user
        );
        Err(refusal(403, "Forbidden", &message))
    }

    fn may(&self, user: &str, groups: &[String], wanted: &Right) -> bool {
        let mut subjects = std::iter::once(user).chain(groups.iter().map(String::as_str));
        subjects.any(|subject| {
            let given = self.rights.get(subject);
            subject == MASTERS || given.is_some_and(|given| given.iter().any(|right| right.covers(wanted)))
        })
    }

    /// Answers the creation of a review; none when it is something else that is created.
    pub(crate) fn review(&self, caller: &Identity, place: &ResourcePath, review: &Value) -> Option<Answer> {
        let spec = &review["spec"];
        let status = match place.named().as_str() {
            "tokenreviews" => Ok(self.token_status(spec)),
            "selfsubjectreviews" => Ok(json!({"userInfo": caller.info()})),
            "selfsubjectaccessreviews" => self.access_status(&caller.user, &caller.groups, spec),
            "subjectaccessreviews" => {
                let groups = serde_json::from_value::<Vec<String>>(spec["groups"].clone()).unwrap_or_default();
                self.access_status(spec["user"].as_str().unwrap_or_default(), &groups, spec)
            }
            _ => return None,
        };
        let answered = |status| {
            let mut answered = review.clone();
            answered["status"] = status;
            (201, answered)
        };
        Some(status.map_or_else(std::convert::identity, answered))
    }

    fn token_status(&self, spec: &Value) -> Value {
        let wanted = serde_json::from_value::<Vec<String>>(spec["audiences"].clone()).unwrap_or_default();
        let is_wanted = |audience: &&String| {
            let unasked = wanted.is_empty() && *audience == API_SERVER_AUDIENCE;
            unasked || wanted.contains(audience)
        };
        let identity = self.identities.get(spec["token"].as_str().unwrap_or_default());
        let good_for = |identity: &Identity| -> Vec<String> {
            let audiences = identity.audiences.iter().filter(is_wanted);
            audiences.cloned().collect()
        };
        match identity.map(|identity| (identity, good_for(identity))) {
            Some((identity, audiences)) if !audiences.is_empty() => {
                json!({"authenticated": true, "user": identity.info(), "audiences": audiences})
            }
            _ => json!({"authenticated": false, "user": {}, "error": "invalid bearer token"}),
        }
    }

    fn access_status(&self, user: &str, groups: &[String], spec: &Value) -> Result<Value, Answer> {
        let Some(wanted) = Right::asked(spec) else {
            let message = "spec: exactly one of nonResourceAttributes or resourceAttributes must be specified";
            return Err(refusal(422, "Invalid", message));
        };
        Ok(json!({"allowed": self.may(user, groups, &wanted)}))
    }

    /// A token that says in itself whose it is and for whom, as a service account's does.
    fn issue(&mut self, identity: Identity) -> String {
        let claims = json!({"sub": identity.user, "aud": identity.audiences}).to_string();
        let part = |json: &str| URL_SAFE_NO_PAD.encode(json);
        let token = format!("{}.{}.{}", part("{}"), part(&claims), part("signature"));
        self.identities.insert(token.clone(), identity);
        token
    }

    /// Answers a request for a token of a service account.
    pub(crate) fn token_request(&mut self, place: &ResourcePath, request: &Value, now: Timestamp) -> Answer {
        let namespace = place.namespace.as_deref().unwrap_or_default();
        let account = place.name.as_deref().unwrap_or_default();
        let user = format!("system:serviceaccount:{namespace}:{account}");
        let namespace = format!("system:serviceaccounts:{namespace}");
        let identity = Identity::new(&user).in_groups(&["system:serviceaccounts", &namespace]);
        let audiences = serde_json::from_value::<Vec<String>>(request["spec"]["audiences"].clone()).unwrap_or_default();
        let audiences: Vec<&str> = audiences.iter().map(String::as_str).collect();
        let identity = if audiences.is_empty() {
            identity
        } else {
            identity.for_audiences(&audiences)
        };
        let seconds = request["spec"]["expirationSeconds"]
            .as_i64()
            .unwrap_or(TOKEN_LIFETIME_SECONDS);
        let end = now.saturating_add(SignedDuration::from_secs(seconds)).unwrap();
        let mut answered = request.clone();
        answered["status"] = json!({"token": self.issue(identity), "expirationTimestamp": end.to_string()});
        (201, answered)
    }
}

/// Tokens and rights.
impl ApiServer {
    /// Makes a token known, or another's. Every other token is nobody's.
    pub fn add_token(&self, token: &str, identity: Identity) {
        self.state().reviews.identities.insert(token.to_owned(), identity);
    }

    /// Gives out a token that says in itself whose it is and for whom, as a service account's does.
    pub fn issue_token(&self, identity: Identity) -> String {
        self.state().reviews.issue(identity)
    }

    /// Makes a token unknown.
    pub fn revoke_token(&self, token: &str) {
        self.state().reviews.identities.remove(token);
    }

    /// Takes whoever shows no token for the user `system:anonymous`, who has the rights that a test
    /// gives them.
    pub fn admit_anonymous(&self) {
        self.state().reviews.anonymous = true;
    }

    /// Gives a user or a group a right, beside those that they have.
    pub fn allow(&self, subject: &str, right: Right) {
        let mut state = self.state();
        state.reviews.rights.entry(subject.to_owned()).or_default().push(right);
    }

    /// Takes a right from a user or a group that was given in the same words.
    pub fn disallow(&self, subject: &str, right: &Right) {
        if let Some(given) = self.state().reviews.rights.get_mut(subject) {
            given.retain(|one| one != right);
        }
    }
}
