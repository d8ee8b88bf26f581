use core::time::Duration;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use redis::{ErrorKind, RedisError, Value};
use tokio::sync::Semaphore;
use tower_quota_core::{Clock, Decision, Overloaded, Timestamp};

use super::call_span::CallEnd;
use super::queue::NotSent;
use crate::clock::now;
use crate::config_error::RedisConfigError;
use crate::error::{self, RedisStoreError};
use crate::keys::EntryKey;
use crate::link::{CallError, LateAnswer, Link, LinkRequest, LinkSettings, Several};
use crate::lock::locked;
use crate::store_request::StoreRequest;
use crate::wire::{BatchRequest, Call, Reply, Unreadable};

/// Commands for holds that find nothing, to check the rights of the user.
const OF_HOLDS: [&[&str]; 9] = [
    &["ZADD", "XX", "0", "none"],
    &["ZCARD"],
    &["ZCOUNT", "0", "0"],
    &["ZRANGE", "0", "0"],
    &["ZREM", "none"],
    &["ZREMRANGEBYSCORE", "0", "0"],
    &["ZSCORE", "none"],
    &["PEXPIRE", "1"],
    &["DEL"],
];
/// The number of keys that the probe writes, so that every node of a cluster owns some of the slots.
const PROBES: usize = 16;

pub(crate) struct Caller {
    pub(crate) links: Arc<[Link]>,
    /// A key whose hash tag leads to the partition.
    pub(crate) partition_key: Arc<str>,
    pub(crate) deadline: Duration,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) server: Arc<str>,
    pub(crate) shared_slots: Option<Arc<Semaphore>>,
    pub(crate) settings: LinkSettings,
    /// The failure that opened the breaker.
    pub(crate) last_failure: Mutex<Option<RedisError>>,
}

impl Caller {
    pub(super) fn call<'a>(&self, requests: impl Iterator<Item = &'a StoreRequest>) -> Call {
        let mut batch = BatchRequest::at(self.instant());
        for request in requests {
            batch.decide(&request.template, &request.clients, &request.sets);
        }
        batch.into_call()
    }

    /// Sends a call, unless there is no connection by an instant. If the call is late, also returns the answer that it
    /// may still get.
    pub(super) async fn send(
        &self,
        number: u64,
        call: Call,
        connect_by: Option<Instant>,
    ) -> (Result<Value, RedisStoreError>, Option<LateAnswer>) {
        let number = usize::try_from(number).unwrap_or(0);
        let link = &self.links[number % self.links.len()];
        let deadline = now() + self.deadline;
        let connect_by = connect_by.unwrap_or(deadline);
        let key = Arc::clone(&self.partition_key);
        match link.run_until(connect_by, deadline, key, call).await {
            Ok(answer) => (answer.map_err(|error| self.error_of(link, error)), None),
            Err(late) => (Err(self.too_late()), Some(late)),
        }
    }

    /// Runs the script with an empty batch, writes and deletes keys that live for a millisecond, and looks for holds that
    /// are not there.
    pub(super) async fn probe(&self) -> Result<(), RedisStoreError> {
        let link = &self.links[0];
        let empty = self.call(core::iter::empty());
        self.run(link, &self.partition_key, &empty).await?;
        let prefix = self.partition_key.split('{').next().unwrap_or_default();
        let name = |number: usize| format!("{prefix}probe:{number}");
        let of_holds = OF_HOLDS.map(|command| {
            let mut look = redis::cmd(command[0]);
            look.arg(format!("{prefix}probe:holds")).arg(&command[1..]);
            look
        });
        if link.is_cluster() {
            for look in of_holds {
                self.run(link, "", &look).await?;
            }
            let write = redis::Cmd::pset_ex(name(0), "", 1);
            self.run(link, "", &write).await?;
            let delete = redis::Cmd::del(name(0));
            return self.run(link, "", &delete).await.map(drop);
        }
        let mut writes = redis::pipe();
        for number in 0..PROBES {
            writes.pset_ex(name(number), "", 1);
        }
        writes.del(name(0));
        for look in of_holds {
            writes.add_command(look);
        }
        let writes = Several {
            commands: &writes,
            offset: 0,
            count: PROBES + 1 + OF_HOLDS.len(),
        };
        self.run(link, "", &writes).await.map(drop)
    }

    async fn run(
        &self,
        link: &Link,
        key: &str,
        request: &impl LinkRequest,
    ) -> Result<Value, RedisStoreError> {
        let reply = link.run(key, request).await;
        reply.map_err(|error| self.error_of(link, error))
    }

    fn error_of(&self, link: &Link, error: CallError) -> RedisStoreError {
        let is_moved = |error: &redis::RedisError| {
            error.kind() == redis::ErrorKind::Server(redis::ServerErrorKind::Moved)
        };
        match error {
            CallError::NotSent(error) if is_moved(&error) && !link.is_cluster() => {
                let server = self.server.as_ref().to_owned();
                RedisConfigError::ClusterNode { server }.into()
            }
            CallError::NotSent(source) => RedisStoreError::Connect {
                server: self.server(),
                source,
            },
            CallError::Failed(error) => RedisStoreError::of_call(&self.server(), error),
        }
    }

    pub(super) fn read(
        &self,
        reply: &mut Reply<'_>,
        request: &StoreRequest,
    ) -> Result<Decision, RedisStoreError> {
        reply
            .next(&request.template)
            .map_err(|unreadable| match unreadable {
                Unreadable::State => RedisStoreError::State {
                    server: self.server(),
                    keys: request.clients.iter().map(EntryKey::to_text).collect(),
                },
                Unreadable::NotWritten(words) => {
                    let error = RedisStoreError::not_written(&self.server(), &words);
                    if error.is_read_only() {
                        // The server has become a replica. A new connection to the same name may
                        // reach the new primary.
                        self.links.iter().for_each(Link::replace);
                    }
                    error
                }
                Unreadable::Reply => RedisStoreError::Garbled {
                    server: self.server(),
                    source: None,
                },
            })
    }

    pub(super) fn not_sent(&self, reason: NotSent) -> RedisStoreError {
        let server = self.server();
        match reason {
            NotSent::BreakerOpen => {
                let failure = locked(&self.last_failure).clone();
                let source = failure.unwrap_or_else(|| error::unanswered(self.deadline));
                RedisStoreError::BreakerOpen { server, source }
            }
            NotSent::Overloaded => RedisStoreError::Overloaded {
                server,
                deadline: self.deadline,
                source: Overloaded,
            },
            NotSent::NoRuntime => {
                let ended = "the runtime that makes its calls has ended";
                let source = RedisError::from((ErrorKind::Client, ended));
                RedisStoreError::Connect { server, source }
            }
        }
    }

    pub(super) fn too_late(&self) -> RedisStoreError {
        RedisStoreError::Deadline {
            server: self.server(),
            after: self.deadline,
        }
    }

    pub(super) fn cut_short(&self) -> RedisStoreError {
        let shut_down = "the runtime was shut down during the call";
        RedisStoreError::Lost {
            server: self.server(),
            source: RedisError::from((ErrorKind::Client, shut_down)),
        }
    }

    /// Returns the name of the server in errors, in a cluster with the node of the partition.
    fn server(&self) -> Arc<str> {
        match self.links[0].node_of(&self.partition_key) {
            Some(node) => format!("{node} in {}", self.server).into(),
            None => Arc::clone(&self.server),
        }
    }

    fn instant(&self) -> Option<Timestamp> {
        self.clock.as_ref().map(|clock| clock.now())
    }
}

/// A server that refuses a call is available, unless busy or loading.
pub(super) fn end_of(reply: &Result<Value, RedisStoreError>) -> CallEnd {
    match reply {
        Err(RedisStoreError::Deadline { .. }) => CallEnd::Late,
        Err(RedisStoreError::Connect { .. } | RedisStoreError::Lost { .. }) => CallEnd::Broken,
        Err(error) if error.is_unavailable() => CallEnd::Broken,
        _ => CallEnd::Answered,
    }
}
