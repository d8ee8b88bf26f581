//! The options of the router.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use tower_quota::key::ClientIp;

use crate::AdminError;
use crate::auth::{Role, Token};
use crate::figures::{NamedFigures, StoreFigures};

/// Options of the admin [`router`](crate::router). Authentication has no default.
///
/// ```
/// use tower_quota_admin::AdminOptions;
///
/// # let token = String::from("an example of 32 bytes in length");
/// let options = AdminOptions::new().bearer_token("on-call", token);
/// ```
#[derive(Default)]
#[must_use]
pub struct AdminOptions {
    pub(crate) tokens: Vec<Token>,
    pub(crate) own_layer: bool,
    pub(crate) client_ip: Option<ClientIp>,
    pub(crate) show_keys: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) figures: Vec<NamedFigures>,
    pub(crate) title: Option<String>,
    pub(crate) instance: Option<String>,
}

impl AdminOptions {
    /// The shortest token, in bytes.
    pub const SHORTEST_TOKEN: usize = 16;

    /// The longest body of a request, in bytes.
    pub const LONGEST_BODY: usize = 16 << 20;

    /// The most event streams at once.
    pub const MOST_STREAMS: usize = 32;

    /// The most event streams at once of one token, or of one [`Author`](crate::Author).
    pub const MOST_STREAMS_EACH: usize = 8;

    /// Makes options without authentication, of which no router is built.
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts requests with `Authorization: Bearer` and this token, with all rights. The name is the author in audit records.
    ///
    /// Call it again for each further person or program. Tokens of under [`SHORTEST_TOKEN`](Self::SHORTEST_TOKEN) bytes
    /// are an error of [`router`](crate::router).
    pub fn bearer_token(self, name: impl Into<String>, token: impl Into<String>) -> Self {
        self.bearer_token_of_role(Role::Rules, name, token)
    }

    /// Works like [`bearer_token`](Self::bearer_token), with the rights of a role.
    ///
    /// ```
    /// use tower_quota_admin::{AdminOptions, Role};
    ///
    /// # let token = String::from("an example of 32 bytes in length");
    /// let options = AdminOptions::new().bearer_token_of_role(Role::Read, "dashboard", token);
    /// ```
    pub fn bearer_token_of_role(
        mut self,
        role: Role,
        name: impl Into<String>,
        token: impl Into<String>,
    ) -> Self {
        let token = Token::new(name.into(), token.into(), role);
        self.tokens.push(token);
        self
    }

    /// Accepts every request: a layer of the application around the router authenticates.
    ///
    /// The layer may put an [`Author`](crate::Author) into the extensions of a request, for audit records,
    /// and a [`Role`] to restrict it.
    pub fn authenticated_by_own_layer(mut self) -> Self {
        self.own_layer = true;
        self
    }

    /// Sets how to read the address by which failed authentications are limited: behind a proxy it names the proxy.
    ///
    /// The default is the peer's address. Without [`ConnectInfo`](axum::extract::ConnectInfo) all share one counter.
    pub fn client_ip(mut self, client_ip: ClientIp) -> Self {
        self.client_ip = Some(client_ip);
        self
    }

    /// Lets requests ask for readable keys with `show_keys=true`. Otherwise they are shown hashed.
    pub const fn allow_showing_keys(mut self) -> Self {
        self.show_keys = true;
        self
    }

    /// Adds a store's figures to the health report: those of a memory store, a Redis store, leases, or your own.
    ///
    /// ```
    /// use tower_quota::MemoryStore;
    /// use tower_quota_admin::AdminOptions;
    ///
    /// let store = MemoryStore::new();
    /// let options = AdminOptions::new().store_figures("memory", move || store.stats());
    /// ```
    pub fn store_figures<F, T>(mut self, name: impl Into<String>, figures: F) -> Self
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Into<StoreFigures>,
    {
        self.figures
            .push((name.into(), Arc::new(move || figures().into())));
        self
    }

    /// Sets the title of the live page, such as the service and its environment.
    ///
    /// ```
    /// use tower_quota_admin::AdminOptions;
    ///
    /// let options = AdminOptions::new().title("orders, production").instance("eu-1");
    /// ```
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the name of this instance, on the live page and in the health report.
    ///
    /// The default is the name of the host and the number of the process.
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Sets the longest time to answer a request, 10 s by default.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Returns the error of these options, if they have one.
    pub(crate) fn check(&self) -> Result<(), AdminError> {
        match (self.tokens.is_empty(), self.own_layer) {
            (true, false) => Err(AdminError::NoAuthentication),
            (false, true) => Err(AdminError::TwoAuthentications),
            _ => self.tokens.iter().try_for_each(Token::check),
        }
    }
}

impl fmt::Debug for AdminOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminOptions")
            .field("tokens", &self.tokens)
            .field("own_layer", &self.own_layer)
            .field("show_keys", &self.show_keys)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
