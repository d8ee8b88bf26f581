use core::fmt;

use subtle::ConstantTimeEq;

use super::Role;
use crate::{AdminError, AdminOptions};

/// A bearer token and its name. `Debug` hides the token.
#[derive(Clone)]
pub(crate) struct Token {
    pub(super) name: String,
    token: String,
    pub(super) role: Role,
}

impl Token {
    pub(crate) const fn new(name: String, token: String, role: Role) -> Self {
        Self { name, token, role }
    }

    pub(crate) fn check(&self) -> Result<(), AdminError> {
        let Self { name, token, .. } = self;
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

    /// Returns the token equal to these bytes.
    ///
    /// The comparison of all tokens takes constant time, which reveals at most their lengths.
    pub(crate) fn holder<'t>(tokens: &'t [Self], given: &[u8]) -> Option<&'t Self> {
        let mut holder = None;
        for known in tokens {
            if bool::from(known.token.as_bytes().ct_eq(given)) {
                holder = Some(known);
            }
        }
        holder
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("name", &self.name)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}
