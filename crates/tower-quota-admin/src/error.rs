use crate::AdminOptions;

/// The error of invalid options of [`router`](crate::router).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The options have no authentication.
    #[error(
        "the admin API has no authentication: set `bearer_token`, or `authenticated_by_own_layer` where a layer of \
         the application authenticates every request"
    )]
    NoAuthentication,
    /// The options have tokens, and your own layer too.
    #[error("the admin API has tokens and `authenticated_by_own_layer`: choose one of them")]
    TwoAuthentications,
    /// A token is shorter than [`AdminOptions::SHORTEST_TOKEN`].
    #[error(
        "the token of {name:?} has {bytes} bytes: take {} or more, such as those of `openssl rand -base64 32`",
        AdminOptions::SHORTEST_TOKEN
    )]
    ShortToken {
        /// The name of the token.
        name: String,
        /// The length in bytes.
        bytes: usize,
    },
    /// The file of tokens is unusable.
    #[error("the tokens in {path} are unusable: {reason}")]
    TokenFile {
        /// The path.
        path: String,
        /// The place and the fix, without tokens.
        reason: String,
    },
    /// The name of a token is empty.
    #[error("a token has no name: audit records need one for the author")]
    NamelessToken,
}
