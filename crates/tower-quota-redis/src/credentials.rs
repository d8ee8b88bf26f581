use core::fmt;
use core::future::Future;
use core::time::Duration;
use std::error::Error;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt, unfold};
use redis::auth::{BasicAuth, StreamingCredentialsProvider};
use redis::{ErrorKind, RedisResult};

/// The pause after a failure of the provider, and the shortest pause between renewals.
const RETRY: Duration = Duration::from_secs(1);

/// A user and a password, for example a token of a cloud provider.
///
/// ```
/// use std::time::Duration;
/// use tower_quota_redis::Credentials;
///
/// let token = Credentials::new("limiter", "token", Duration::from_secs(15 * 60));
/// assert!(!format!("{token:?}").contains("token\""));
/// ```
#[derive(Clone)]
pub struct Credentials {
    user: String,
    password: String,
    lifetime: Duration,
}

impl Credentials {
    /// Creates credentials with a lifetime. The store renews credentials after three quarters of
    /// the lifetime, and after a second at the earliest.
    #[must_use]
    pub fn new(user: impl Into<String>, password: impl Into<String>, lifetime: Duration) -> Self {
        Self {
            user: user.into(),
            password: password.into(),
            lifetime,
        }
    }
}

impl fmt::Debug for Credentials {
    /// Hides the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}

#[derive(Clone)]
pub(crate) struct Provider(
    Arc<dyn Fn() -> BoxFuture<'static, RedisResult<Credentials>> + Send + Sync>,
);

impl Provider {
    pub(crate) fn new<F, E>(fetch: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Error,
    {
        Self(Arc::new(move || {
            let fetched = fetch();
            Box::pin(async move {
                fetched.await.map_err(|error| {
                    let description = "the credentials provider failed";
                    (
                        ErrorKind::AuthenticationFailed,
                        description,
                        error.to_string(),
                    )
                        .into()
                })
            })
        }))
    }

    pub(crate) async fn fetch(&self) -> RedisResult<(String, String)> {
        let Credentials { user, password, .. } = (self.0)().await?;
        Ok((user, password))
    }
}

impl StreamingCredentialsProvider for Provider {
    #[expect(
        clippy::disallowed_methods,
        reason = "credentials are renewed by a timer"
    )]
    fn subscribe(&self) -> BoxStream<'static, RedisResult<BasicAuth>> {
        let provider = self.clone();
        let renewed = unfold(Duration::ZERO, move |wait| {
            let provider = provider.clone();
            async move {
                tokio::time::sleep(wait).await;
                Some(match (provider.0)().await {
                    Ok(Credentials {
                        user,
                        password,
                        lifetime,
                    }) => (
                        Ok(BasicAuth::new(user, password)),
                        (lifetime / 4 * 3).max(RETRY),
                    ),
                    Err(error) => (Err(error), RETRY),
                })
            }
        });
        renewed.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn renewals_pause_for_any_lifetime() {
        for lifetime in [Duration::ZERO, Duration::MAX] {
            let provider = Provider::new(move || {
                core::future::ready(Ok::<_, std::io::Error>(Credentials::new("", "", lifetime)))
            });
            let mut renewed = provider.subscribe();
            assert!(renewed.next().await.is_some());
            let second = tokio::time::timeout(RETRY / 10, renewed.next()).await;
            assert!(second.is_err(), "{lifetime:?}");
        }
    }
}
