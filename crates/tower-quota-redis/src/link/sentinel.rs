use core::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{ConnectionInfo, ErrorKind, RedisResult, Value};
use tokio::task::JoinSet;

use super::backend::Backend;
use super::election::{self, Address, Report};
use super::server::Server;
use super::{Provider, with_credentials, within};

/// Connects to a primary under sentinels. Each attempt asks all sentinels.
pub(crate) struct Sentinels {
    sentinels: Vec<ConnectionInfo>,
    name: String,
    primary: ConnectionInfo,
    connect_timeout: Duration,
    credentials: Option<Provider>,
}

impl Sentinels {
    pub(super) fn new(
        sentinels: Vec<ConnectionInfo>,
        primary: ConnectionInfo,
        connect_timeout: Duration,
        credentials: Option<Provider>,
    ) -> RedisResult<Self> {
        let name = super::host_of(&primary).ok_or((
            ErrorKind::InvalidClientConfig,
            "a primary under sentinels has no path",
        ))?;
        if sentinels.is_empty() {
            return Err((
                ErrorKind::EmptySentinelList,
                "there must be at least one sentinel",
            )
                .into());
        }
        Ok(Self {
            sentinels,
            name,
            primary,
            connect_timeout,
            credentials,
        })
    }

    async fn find(&self) -> RedisResult<Found> {
        // Keep the other half of the timeout for the primary.
        let timeout = self.connect_timeout / 2;
        let mut reports = JoinSet::new();
        for sentinel in &self.sentinels {
            let asking = ask(sentinel.clone(), self.name.clone(), timeout);
            reports.spawn(async move {
                Report::Named(within(timeout, "no answer in time", asking).await)
            });
        }
        election::elect(reports, |address| {
            let primary = super::at_address(self.primary.clone(), address.clone());
            let server = Server::new(primary, timeout, self.credentials.clone());
            let connecting = connect(server, address.clone());
            async move {
                Report::Connected(
                    address,
                    within(timeout, "no answer in time", connecting).await,
                )
            }
        })
        .await
    }
}

type Found = (MultiplexedConnection, Address);

async fn ask(sentinel: ConnectionInfo, name: String, timeout: Duration) -> RedisResult<Address> {
    let mut connection = Server::new(sentinel, timeout, None)?.dial().await?;
    let mut command = redis::cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let address: Option<Address> = command.query_async(&mut connection).await?;
    address.ok_or_else(|| {
        (
            ErrorKind::MasterNameNotFoundBySentinel,
            "the sentinel knows no such primary",
        )
            .into()
    })
}

/// Connects to the server at this address, and fails if the server is a replica.
async fn connect(server: RedisResult<Server>, address: Address) -> RedisResult<Found> {
    let mut connection = server?.dial().await?;
    match redis::cmd("ROLE").query_async(&mut connection).await {
        Ok(Value::Array(role)) if role.first() == Some(&Value::BulkString(b"slave".to_vec())) => {
            Err((
                ErrorKind::MasterNameNotFoundBySentinel,
                "what the sentinels name as primary is a replica",
            )
                .into())
        }
        // If the user may not call `ROLE`, the store trusts the sentinels.
        Err(error) if error.code() != Some("NOPERM") => Err(error),
        _ => Ok((connection, address)),
    }
}

impl Backend for Sentinels {
    type Connection = MultiplexedConnection;

    async fn dial(&self) -> RedisResult<MultiplexedConnection> {
        Ok(self.find().await?.0)
    }

    async fn locate(&self, _key: &str) -> RedisResult<ConnectionInfo> {
        let (_, address) = self.find().await?;
        let primary = super::at_address(self.primary.clone(), address);
        with_credentials(primary, self.credentials.as_ref(), self.connect_timeout).await
    }
}
