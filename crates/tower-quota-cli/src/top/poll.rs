//! Asks the admin API once a second.

use core::time::Duration;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;

use serde_json::Value;

use crate::failure::Failure;
use crate::remote::status::{RankBy, TopArguments, instances};
use crate::remote::{Call, HttpApi};

/// The state of an instance at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) health: Value,
    pub(super) limited: Vec<Value>,
    pub(super) busy: Vec<Value>,
    /// The number of instances that the lists add up and the age of their figures; absent for one instance.
    pub(super) of_all: Option<String>,
}

/// A thread that asks. It ends when this is dropped.
pub(super) struct Poller {
    snapshots: Receiver<Result<Snapshot, String>>,
    _alive: Sender<()>,
}

const EVERY: Duration = Duration::from_secs(1);

impl Poller {
    pub(super) fn start(api: HttpApi, arguments: TopArguments) -> Self {
        let (send, snapshots) = mpsc::channel();
        let (alive, ended) = mpsc::channel::<()>();
        thread::spawn(move || {
            // Nothing is sent: the end of the wait is the time, or that the screen has gone.
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let snapshot = snapshot(&api, &arguments).map_err(|failure| failure.to_string());
                if send.send(snapshot).is_err() {
                    return;
                }
            }
        });
        Self {
            snapshots,
            _alive: alive,
        }
    }

    /// Returns the next snapshot, if there is one.
    pub(super) fn next(&self) -> Option<Result<Snapshot, String>> {
        self.snapshots.try_recv().ok()
    }
}

/// Asks for the state of an instance.
pub(super) fn snapshot(api: &HttpApi, arguments: &TopArguments) -> Result<Snapshot, Failure> {
    let list = |by| -> Result<(Vec<Value>, Option<String>), Failure> {
        let answer = api.send(&arguments.call(by))?.json()?;
        Ok((
            answer["clients"].as_array().cloned().unwrap_or_default(),
            instances(&answer),
        ))
    };
    let health = api.send(&Call::new(Call::GET, &["health"]))?.json()?;
    let ((limited, of_all), (busy, _)) = (list(RankBy::Limited)?, list(RankBy::Busy)?);
    Ok(Snapshot {
        health,
        limited,
        busy,
        of_all,
    })
}
