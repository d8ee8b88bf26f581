//! Authentication and authorization.
//!
//! `identify` puts the [`Author`] of a token into the extensions. `failures` counts requests
//! without an author by address, against guessing, and never counts a valid token. `require`
//! answers the rest with 401, `authorize` answers too low a [`Role`] with 403.

mod file;
mod role;
mod token;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};
use tower_quota::key::{ClientIp, client_ip};
use tower_quota::{Limit, MemoryStore, MissingKey, Policy, Quota, RateLimitLayer, metrics};

pub(crate) use self::file::TokenFile;
pub use self::role::Role;
pub(crate) use self::token::Token;
use crate::problem::{Problem, ProblemKind, Result};

/// The author of a change, in the extensions of a request. Set it in your own layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author(pub String);

pub(crate) fn failures(address: Option<ClientIp>) -> RateLimitLayer<MemoryStore> {
    let limit = Limit::new("failed-authentications", Quota::per_minute(10))
        .by(address.unwrap_or_else(client_ip))
        .when_missing(MissingKey::ShareOneCounter)
        .when(|head| head.extensions().get::<Author>().is_none());
    RateLimitLayer::new(MemoryStore::new(), Policy::new().limit(limit))
}

/// The tokens of the options, and the file of tokens.
pub(crate) struct Tokens {
    pub(crate) fixed: Vec<Token>,
    pub(crate) file: Option<Arc<TokenFile>>,
}

impl Tokens {
    async fn of_file(&self) -> Arc<[Token]> {
        match &self.file {
            Some(file) => file.tokens().await,
            None => Arc::new([]),
        }
    }
}

pub(crate) async fn identify(
    State(tokens): State<Arc<Tokens>>,
    mut request: Request,
    next: Next,
) -> Response {
    // Remove an author that came with the request, because only a token may name the author.
    request.extensions_mut().remove::<Author>();
    let of_file = tokens.of_file().await;
    let holder = bearer(request.headers()).and_then(|given| {
        let fixed = Token::holder(&tokens.fixed, given);
        fixed.or_else(|| Token::holder(&of_file, given)).cloned()
    });
    if let Some(token) = holder {
        let author = Author(token.name.clone());
        request.extensions_mut().insert(author);
        request.extensions_mut().insert(token.role);
    }
    next.run(request).await
}

pub(crate) async fn require(request: Request, next: Next) -> Result<Response> {
    if request.extensions().get::<Author>().is_none() {
        let detail = "send `Authorization: Bearer` with one of the tokens of this admin API";
        return Err(Problem::new(ProblemKind::Unauthenticated, detail));
    }
    Ok(next.run(request).await)
}

/// Counts requests by role and status, refused ones too.
pub(crate) async fn count(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let role = response.extensions().get::<Role>().copied();
    let status = response.status().as_u16();
    metrics::record_admin_request(role.map_or("none", Role::as_str), status);
    response
}

/// Answers too low a role with 403. A request without a role has all rights.
pub(crate) async fn authorize(request: Request, next: Next) -> Response {
    let role = request.extensions().get::<Role>().copied();
    let role = role.unwrap_or(Role::Rules);
    let needed = Role::needed(request.method(), request.uri().path());
    let mut response = if role >= needed {
        next.run(request).await
    } else {
        let detail = format_args!("this needs the role `{needed}`, and you have `{role}`");
        Problem::new(ProblemKind::RoleRequired, detail).into_response()
    };
    response.extensions_mut().insert(role);
    let role = HeaderValue::from_static(role.as_str());
    response.headers_mut().insert("tower-quota-role", role);
    response
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (value, None) = (values.next()?.as_bytes(), values.next()) else {
        return None;
    };
    let (scheme, token) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then_some(token.trim_ascii())
}
