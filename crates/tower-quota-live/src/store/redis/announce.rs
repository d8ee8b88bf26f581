//! Announces changes by Pub/Sub, on a separate connection.
//!
//! Pings detect a dead connection. A new connection counts as a change, since announcements may
//! have been lost.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt;
use redis::RedisResult;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{RedisConnection, RedisRules};
use crate::wait::{Backoff, pause};

const PING_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Announcements {
    changed: Arc<watch::Sender<()>>,
    was_lost: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Announcements {
    pub(super) fn listen(connection: RedisConnection, channel: String) -> Self {
        let changed = Arc::new(watch::Sender::new(()));
        let was_lost = Arc::new(AtomicBool::new(false));
        let following = follow(
            connection,
            channel,
            Arc::clone(&changed),
            Arc::clone(&was_lost),
        );
        Self {
            changed,
            was_lost,
            task: tokio::spawn(following),
        }
    }

    pub(super) fn was_lost(&self) -> bool {
        self.was_lost.swap(false, Ordering::Relaxed)
    }

    /// Marks the subscription as lost again, because the store could not be read.
    pub(super) fn lose(&self) {
        self.was_lost.store(true, Ordering::Relaxed);
    }

    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}

impl Drop for Announcements {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(
    connection: RedisConnection,
    channel: String,
    changed: Arc<watch::Sender<()>>,
    was_lost: Arc<AtomicBool>,
) {
    let mut backoff = Backoff::default();
    loop {
        let lost = subscribe(&connection, &channel, &changed, &mut backoff).await;
        let reason = lost.map_or_else(
            |error| error.to_string(),
            |()| "the connection was closed or silent".to_owned(),
        );
        // Read the store at once, because it may have lost data.
        was_lost.store(true, Ordering::Relaxed);
        changed.send_replace(());
        tracing::debug!(
            server = connection.server(),
            reason,
            "lost the announcements of rules"
        );
        pause(backoff.next()).await;
    }
}

/// Forwards announcements until the connection ends or does not answer.
async fn subscribe(
    connection: &RedisConnection,
    channel: &str,
    changed: &watch::Sender<()>,
    backoff: &mut Backoff,
) -> RedisResult<()> {
    let (mut pings, mut messages) = connection.subscribe(channel).await?.split();
    backoff.reset();
    changed.send_replace(());
    loop {
        match timeout(PING_EVERY, messages.next()).await {
            Ok(Some(_)) => {
                changed.send_replace(());
            }
            Ok(None) => return Ok(()),
            Err(_) => match timeout(RedisRules::DEADLINE, pings.ping::<()>()).await {
                Ok(pong) => pong?,
                Err(_) => return Ok(()),
            },
        }
    }
}
