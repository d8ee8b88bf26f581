use core::fmt;
use core::hash::{Hash, Hasher};
use core::time::Duration;

use jsonwebtoken::crypto::verify;
use jsonwebtoken::{DecodingKey, DecodingKeyKind, Validation, decode};
use serde_json::{Map, Value};

/// A key that verifies JSON web tokens (RFC 7519) and claims.
///
/// A key accepts one family of algorithms, and rejects unsigned tokens. `exp` and `nbf` are checked if present. Call
/// [`issuer`](Self::issuer) and [`audience`](Self::audience) to check `iss` and `aud`.
///
/// # Panics
/// Verifying panics unless exactly one crypto backend is enabled, either `jwt-rust-crypto` here, or
/// `rust_crypto` or `aws_lc_rs` in `jsonwebtoken` 11.
#[derive(Clone)]
pub struct JwtKey {
    key: DecodingKey,
    validation: Validation,
}

impl JwtKey {
    /// Verifies HS256, HS384 and HS512 by a shared secret.
    ///
    /// # Errors
    /// Returns an error if the secret is empty.
    pub fn hmac(secret: &[u8]) -> Result<Self, InvalidJwtKey> {
        if secret.is_empty() {
            return Err(InvalidJwtKey(String::from("the secret is empty")));
        }
        Self::new(DecodingKey::from_secret(secret))
    }

    /// Verifies RS256 to RS512 and PS256 to PS512 by a public key in PEM.
    ///
    /// # Errors
    /// Returns an error if the key is of another kind.
    pub fn rsa_pem(pem: &[u8]) -> Result<Self, InvalidJwtKey> {
        Self::new(DecodingKey::from_rsa_pem(pem).map_err(InvalidJwtKey::unreadable)?)
    }

    /// Verifies ES256 and ES384 by a P-256 or P-384 public key in PEM.
    ///
    /// # Errors
    /// Returns an error if the key is of another kind.
    pub fn ec_pem(pem: &[u8]) -> Result<Self, InvalidJwtKey> {
        Self::new(DecodingKey::from_ec_pem(pem).map_err(InvalidJwtKey::unreadable)?)
    }

    /// Verifies EdDSA by an Ed25519 public key in PEM.
    ///
    /// # Errors
    /// Returns an error if the key is of another kind.
    pub fn ed_pem(pem: &[u8]) -> Result<Self, InvalidJwtKey> {
        Self::new(DecodingKey::from_ed_pem(pem).map_err(InvalidJwtKey::unreadable)?)
    }

    /// Requires this `iss`.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        self.validation
            .required_spec_claims
            .insert(String::from("iss"));
        self.validation.set_issuer(&[issuer]);
        self
    }

    /// Requires this `aud`.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        let audience = audience.into();
        self.validation
            .required_spec_claims
            .insert(String::from("aud"));
        self.validation.validate_aud = true;
        self.validation.set_audience(&[audience]);
        self
    }

    /// Sets the tolerated clock difference in whole seconds (default 60).
    #[must_use]
    pub const fn leeway(mut self, leeway: Duration) -> Self {
        self.validation.leeway = leeway.as_secs();
        self
    }

    /// Verifies an empty message, so that an unusable key fails at start.
    fn new(key: DecodingKey) -> Result<Self, InvalidJwtKey> {
        let family = key.family();
        if family
            .algorithms()
            .iter()
            .all(|algorithm| verify("", b"", &key, *algorithm).is_err())
        {
            return Err(InvalidJwtKey(format!(
                "no algorithm of the family {family:?} can take it"
            )));
        }
        let mut validation = Validation::new_for_family(family);
        validation.required_spec_claims.clear();
        validation.validate_aud = false;
        validation.validate_nbf = true;
        Ok(Self { key, validation })
    }

    pub(super) fn claims(&self, token: &[u8]) -> Option<Map<String, Value>> {
        decode(token, &self.key, &self.validation)
            .ok()
            .map(|token| token.claims)
    }
}

impl Hash for JwtKey {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match self.key.kind() {
            DecodingKeyKind::SecretOrDer(bytes) => bytes.hash(hasher),
            DecodingKeyKind::RsaModulusExponent { n, e } => (n, e).hash(hasher),
        }
        let validation = &self.validation;
        (&validation.algorithms, validation.leeway).hash(hasher);
        // At most one issuer and one audience are set.
        for names in [&validation.iss, &validation.aud] {
            names.iter().flatten().collect::<Vec<_>>().hash(hasher);
        }
    }
}

impl fmt::Debug for JwtKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JwtKey({:?})", self.key.family())
    }
}

/// An unusable key. The message gives the reason, not the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidJwtKey(String);

impl InvalidJwtKey {
    fn unreadable(error: jsonwebtoken::errors::Error) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for InvalidJwtKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this key cannot verify tokens: {}", self.0)
    }
}

impl core::error::Error for InvalidJwtKey {}
