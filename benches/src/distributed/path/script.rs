//! The script that most services write: a counter for each second, with redis-rs.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;

use super::{Answer, Path};
use crate::redis::connect;

const SCRIPT: &str = "
    local used = redis.call('INCR', KEYS[1])
    if used == 1 then redis.call('EXPIRE', KEYS[1], 1) end
    return used <= tonumber(ARGV[1]) and 1 or 0";

/// A fixed window of a second that begins with its first request.
#[derive(Clone)]
pub(in super::super) struct WindowScript {
    connection: MultiplexedConnection,
    sha: Arc<str>,
    units: u32,
}

impl WindowScript {
    pub(in super::super) async fn connect(
        url: &str,
        units: u32,
        deadline: Duration,
    ) -> Result<Self, Box<dyn Error>> {
        let (connection, sha) = connect(url, deadline, SCRIPT).await?;
        Ok(Self {
            connection,
            sha: sha.into(),
            units,
        })
    }
}

impl Path for WindowScript {
    fn decide(&self, client: u32) -> impl Future<Output = Answer> + Send + 'static {
        let Self {
            mut connection,
            sha,
            units,
        } = self.clone();
        async move {
            let mut call = redis::cmd("EVALSHA");
            call.arg(&*sha)
                .arg(1)
                .arg(format!("client:{client}"))
                .arg(units);
            call.query_async(&mut connection)
                .await
                .map_or(Answer::Failed, Answer::of)
        }
    }
}
