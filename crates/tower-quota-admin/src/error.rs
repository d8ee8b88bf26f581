use core::error::Error;
use core::fmt;

use crate::AdminOptions;

/// The error of invalid options of [`router`](crate::router).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdminError {
    /// The options have no authentication.
    NoAuthentication,
    /// The options have tokens, and your own layer too.
    TwoAuthentications,
    /// A token is shorter than [`AdminOptions::SHORTEST_TOKEN`].
    ShortToken {
        /// The name of the token.
        name: String,
        /// The length in bytes.
        bytes: usize,
    },
    /// The name of a token is empty.
    NamelessToken,
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAuthentication => f.write_str(
                "the admin API has no authentication: set `bearer_token`, or `authenticated_by_own_layer` where a layer of \
                 the application authenticates every request",
            ),
            Self::TwoAuthentications => {
                f.write_str("the admin API has tokens and `authenticated_by_own_layer`: choose one of them")
            }
            Self::ShortToken { name, bytes } => write!(
                f,
                "the token of {name:?} has {bytes} bytes: take {} or more, such as those of `openssl rand -base64 32`",
                AdminOptions::SHORTEST_TOKEN
            ),
            Self::NamelessToken => f.write_str("a token has no name: audit records need one for the author"),
        }
    }
}

impl Error for AdminError {}
