use core::fmt;
use core::time::Duration;
use std::path::PathBuf;
use std::sync::Arc;

use tower_quota::key::ClientIp;

use crate::AdminError;
use crate::auth::{Role, Token};
use crate::figures::{NamedFigures, StoreFigures};
use crate::shedding::Shedding;

/// Options of the admin [`router`](crate::router). You must choose an authentication.
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
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) own_layer: bool,
    pub(crate) client_ip: Option<ClientIp>,
    pub(crate) show_keys: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) figures: Vec<NamedFigures>,
    pub(crate) shedding: Vec<Arc<dyn Shedding>>,
    pub(crate) title: Option<String>,
    pub(crate) instance: Option<String>,
}

impl AdminOptions {
    /// The shortest token, in bytes.
    pub const SHORTEST_TOKEN: usize = 16;

    /// The longest document in a request, in bytes.
    pub const LONGEST_BODY: usize = 16 << 20;

    /// The longest other body of a request, in bytes.
    pub const LONGEST_JSON: usize = 64 << 10;

    /// The maximum number of simultaneous event streams.
    pub const MOST_STREAMS: usize = 32;

    /// The maximum number of simultaneous event streams of a token, or of an
    /// [`Author`](crate::Author).
    pub const MOST_STREAMS_EACH: usize = 8;

    /// The maximum number of simultaneous checks and comparisons of documents. A token, or an
    /// [`Author`](crate::Author), has one of them.
    pub const MOST_CHECKS: usize = 4;

    /// The maximum number of simultaneous changes of the document. A token, or an [`Author`](crate::Author), has two of
    /// them. A change and a check count until they end, which may be later than their answer.
    pub const MOST_CHANGES: usize = 4;

    /// Creates options without authentication.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a bearer token with all rights. The name is the author in audit records.
    ///
    /// Use a token per person or program, with at least [`SHORTEST_TOKEN`](Self::SHORTEST_TOKEN)
    /// bytes.
    pub fn bearer_token(self, name: impl Into<String>, token: impl Into<String>) -> Self {
        self.bearer_token_of_role(Role::Rules, name, token)
    }

    /// Adds a token like [`bearer_token`](Self::bearer_token), with the rights of a role.
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

    /// Adds the tokens in a file, which has a token per line, as `name:role:token`. The roles are
    /// `read`, `operate` and `rules`. Lines that begin with `#` are comments.
    ///
    /// The file is read again for each request, so you add, replace and remove tokens without a
    /// restart. A file with a mistake, or that cannot be read within a second, changes no token,
    /// and is logged.
    ///
    /// ```no_run
    /// use tower_quota_admin::AdminOptions;
    ///
    /// let options = AdminOptions::new().token_file("/run/secrets/admin-tokens");
    /// ```
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token_file = Some(path.into());
        self
    }

    /// Accepts every request, for a router behind your own authentication layer.
    ///
    /// Your layer may put an [`Author`](crate::Author) and a [`Role`] into the extensions.
    pub fn authenticated_by_own_layer(mut self) -> Self {
        self.own_layer = true;
        self
    }

    /// Sets how to read the client's address, for the limit of failed authentications behind a
    /// proxy.
    ///
    /// The default is the peer's address. Without [`ConnectInfo`](axum::extract::ConnectInfo), all
    /// clients share a counter.
    pub fn client_ip(mut self, client_ip: ClientIp) -> Self {
        self.client_ip = Some(client_ip);
        self
    }

    /// Allows readable keys by `show_keys=true`. By default, requests get hashed keys.
    pub const fn allow_showing_keys(mut self) -> Self {
        self.show_keys = true;
        self
    }

    /// Adds the figures of a store to the health report. The store may be a memory store, a Redis
    /// store (feature `redis`), or your own.
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

    /// Adds a layer that sheds load to the health report and the live page. Give each layer a name of its own.
    ///
    /// ```
    /// use tower_quota_admin::AdminOptions;
    /// use tower_quota_shed::ShedLayer;
    ///
    /// let layer = ShedLayer::new();
    /// let options = AdminOptions::new().shed_layer("api", layer.handle());
    /// ```
    #[cfg(feature = "shed")]
    pub fn shed_layer(
        mut self,
        name: impl Into<String>,
        handle: tower_quota_shed::ShedHandle,
    ) -> Self {
        let layer = crate::shed_layer::NamedShedLayer::new(name.into(), handle);
        self.shedding.push(Arc::new(layer));
        self
    }

    /// Sets the title of the live page, such as your service and its environment.
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

    /// Sets the name of this instance on the live page and in the health report.
    ///
    /// The default is the host and the process number.
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Sets the longest time to answer a request. The default is 10 s.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    pub(crate) fn check(&self) -> Result<(), AdminError> {
        let has_tokens = !self.tokens.is_empty() || self.token_file.is_some();
        match (has_tokens, self.own_layer) {
            (false, false) => Err(AdminError::NoAuthentication),
            (true, true) => Err(AdminError::TwoAuthentications),
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
