mod key;

use core::hash::{Hash, Hasher};
use std::sync::Arc;

use jsonwebtoken::dangerous::insecure_decode_claims;
use serde_json::{Map, Value};
use tower_quota_core::{Key, Name};

pub use self::key::{InvalidJwtKey, JwtKey};

use super::extractor::KeyExtractor;
use super::values::bearer;
use crate::head::RequestHead;

const MAX_VERIFIED: usize = 4;

/// Counts by a verified claim of a JSON web token (RFC 7519), for example `sub`.
///
/// The extractor reads `Authorization: Bearer`, or [another place](JwtClaim::token_from). The claim may be a string, a
/// number or a boolean. Invalid tokens are missing keys, and different tokens [conflict](super).
///
/// # What it costs
///
/// Verifying takes a few microseconds (HMAC) to a few hundred (elliptic curves), even if a limit then refuses the
/// request. Let an outer layer refuse floods first:
///
/// ```
/// use axum::{Router, routing::get};
/// use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};
///
/// let issuer = key::JwtKey::hmac(b"a secret of thirty-two bytes ...")?.issuer("https://accounts.example.com");
/// let users = Policy::new().limit(Limit::new("user", Quota::per_minute(100)).by(key::jwt_claim("sub", issuer)));
/// let addresses = Policy::new().limit(Limit::new("address", Quota::per_second(50)).by(key::client_ip()));
/// let app: Router = Router::new()
///     .route("/", get(|| async {}))
///     .layer(RateLimitLayer::new(MemoryStore::new(), users))
///     // Added last, runs first: requests that it refuses are not verified.
///     .layer(RateLimitLayer::new(MemoryStore::new(), addresses));
/// # let _ = app;
/// # Ok::<(), key::InvalidJwtKey>(())
/// ```
///
/// If another layer verifies your tokens, use [`extension`](super::extension()) or [`unverified_jwt_claim`].
#[must_use]
pub fn jwt_claim(claim: impl Into<Name>, key: JwtKey) -> JwtClaim {
    JwtClaim::new(claim.into(), vec![key])
}

/// Works like [`jwt_claim`], but does not verify the token.
///
/// Use only **behind a layer that verifies** the same token from the same header.
#[must_use]
pub fn unverified_jwt_claim(claim: impl Into<Name>) -> JwtClaim {
    JwtClaim::new(claim.into(), Vec::new())
}

/// The extractor of [`jwt_claim`] and [`unverified_jwt_claim`].
#[derive(Clone, Debug)]
pub struct JwtClaim {
    scope: Name,
    claim: Name,
    /// The keys, of which any may verify a token. Without keys, the extractor accepts every token.
    keys: Vec<JwtKey>,
    pub(super) token: Arc<dyn KeyExtractor>,
}

impl JwtClaim {
    fn new(claim: Name, keys: Vec<JwtKey>) -> Self {
        Self {
            scope: Name::new(""),
            claim,
            keys,
            token: Arc::new(bearer()),
        }
        .renamed()
    }

    /// Accepts tokens of a further key, for rotation or several issuers.
    ///
    /// Makes an [unverified](unverified_jwt_claim) claim verified.
    #[must_use]
    pub fn or_key(mut self, key: JwtKey) -> Self {
        self.keys.push(key);
        self.renamed()
    }

    /// Reads the token elsewhere, for example with `key::cookie("session")`.
    #[must_use]
    pub fn token_from(mut self, extractor: impl KeyExtractor) -> Self {
        self.token = Arc::new(extractor);
        self.renamed()
    }

    fn renamed(mut self) -> Self {
        let kind = if self.keys.is_empty() {
            "unverified jwt claim"
        } else {
            "jwt claim"
        };
        self.scope = Name::from(format!("{kind} {} of {}", self.claim, self.token.scope()));
        self
    }

    /// Returns the key of this claim, given as text.
    pub fn key_of(&self, claim: impl AsRef<[u8]> + Into<Vec<u8>>) -> Key<'static> {
        Key::owned(self.scope, claim)
    }

    pub(super) fn hash_keys(&self, hasher: &mut impl Hasher) {
        self.keys.hash(hasher);
    }

    fn text(&self, token: &[u8], keys: &[JwtKey]) -> Option<String> {
        let text = match claims(token, keys)?.remove(self.claim.as_str())? {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Bool(truth) => truth.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        Some(text).filter(|text| !text.is_empty())
    }
}

fn claims(token: &[u8], keys: &[JwtKey]) -> Option<Map<String, Value>> {
    if keys.is_empty() {
        return insecure_decode_claims(token).ok();
    }
    keys.iter().find_map(|key| key.claims(token))
}

impl KeyExtractor for JwtClaim {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        let token = self.token.extract(head)?;
        if token.as_bytes().is_empty() {
            // An empty key stands for conflicting tokens.
            return Some(Key::new(self.scope, &[]));
        }
        self.text(token.as_bytes(), &self.keys)
            .map(|text| Key::owned(self.scope, text))
    }

    /// An unverified token proves nothing, so a challenge would not help.
    fn has_credentials(&self) -> bool {
        !self.keys.is_empty()
    }

    fn each_key(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&Key<'_>)) {
        let mut sent = 0;
        self.token.each_key(head, &mut |token| {
            sent += 1;
            // Verifying is slow, so read further tokens unverified. They can only block their own
            // request.
            let keys = if sent > MAX_VERIFIED {
                &[]
            } else {
                &*self.keys
            };
            if let Some(text) = self.text(token.as_bytes(), keys) {
                visit(&Key::owned(self.scope, text));
            }
        });
    }
}
