//! Bearer tokens.

use core::fmt;

use subtle::ConstantTimeEq;

use crate::{AdminError, AdminOptions};

/// A bearer token and the name of who holds it. `Debug` shows the name only.
#[derive(Clone)]
pub(crate) struct Token {
    name: String,
    token: String,
}

impl Token {
    pub(crate) const fn new(name: String, token: String) -> Self {
        Self { name, token }
    }

    pub(crate) fn check(&self) -> Result<(), AdminError> {
        let Self { name, token } = self;
        if name.is_empty() {
            Err(AdminError::NamelessToken)
        } else if token.len() < AdminOptions::SHORTEST_TOKEN {
            Err(AdminError::ShortToken {
                name: name.clone(),
                bytes: token.len(),
            })
        } else {
            Ok(())
        }
    }

    /// Returns the name of the token that equals these bytes.
    ///
    /// It compares with every token, so that the time says at most how long they are.
    pub(crate) fn holder<'t>(tokens: &'t [Self], given: &[u8]) -> Option<&'t str> {
        let mut holder = None;
        for Self { name, token } in tokens {
            if bool::from(token.as_bytes().ct_eq(given)) {
                holder = Some(name.as_str());
            }
        }
        holder
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
