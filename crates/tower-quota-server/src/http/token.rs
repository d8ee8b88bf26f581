use core::fmt;
use core::str::FromStr;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use subtle::ConstantTimeEq;

/// A secret that callers of the HTTP doors send. `Debug` hides the secret.
///
/// ```
/// use tower_quota_server::http::Token;
///
/// assert!("a-secret-of-24-characters".parse::<Token>().is_ok());
/// assert!("short".parse::<Token>().is_err());
/// ```
#[derive(Clone)]
pub struct Token(String);

/// The field for the token of gateways, because `Authorization` belongs to their clients.
pub(crate) const FIELD: HeaderName = HeaderName::from_static("tower-quota-token");

impl Token {
    const SHORTEST: usize = 16;

    /// Returns whether `Authorization: Bearer` has the token.
    pub(crate) fn is_bearer_of(&self, headers: &HeaderMap) -> bool {
        let value = only(headers, &header::AUTHORIZATION);
        let value = value.and_then(|value| value.as_bytes().split_at_checked(7));
        value.is_some_and(|(scheme, given)| {
            scheme.eq_ignore_ascii_case(b"bearer ") && self.is(given.trim_ascii())
        })
    }

    /// Returns whether the field of gateways has the token.
    pub(crate) fn is_of_gateway(&self, headers: &HeaderMap) -> bool {
        only(headers, &FIELD).is_some_and(|given| self.is(given.as_bytes()))
    }

    /// Compares in constant time, which reveals at most the length.
    fn is(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }
}

/// Returns the value of a field that occurs once.
pub(crate) fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

impl FromStr for Token {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = secret(text)?;
        match text.len() {
            bytes if bytes < Self::SHORTEST => Err(format!(
                "the secret has {bytes} bytes: take {} or more, such as from `openssl rand -base64 32`",
                Self::SHORTEST
            )),
            _ => Ok(Self(text)),
        }
    }
}

/// Returns a secret without the space around it, such as the line end of a file. No field can have such a space.
pub(crate) fn secret(text: &str) -> Result<String, String> {
    match text.trim() {
        text if text.contains(|c: char| c.is_control()) => {
            Err("the secret has a control character: write it on a single line".into())
        }
        text => Ok(text.to_owned()),
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").finish_non_exhaustive()
    }
}
