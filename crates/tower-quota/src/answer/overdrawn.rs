//! The problem details of requests over quota, made ahead.

use core::time::Duration;

use bytes::Bytes;
use http::Request;
use tower_quota_core::{Decision, Left, LimitStatus, Name, Operation, Outcome, Timestamp};

use super::problem;
use super::refusal::{Reason, Refused, write_seconds};
use super::text::Text;
use crate::head::RequestHead;
use crate::limit::Limit;

/// The problem details where one limit refuses, and where all do; but for the time to retry.
#[derive(Debug)]
pub(super) struct Overdrawn {
    /// For each limit.
    by_one: Vec<Form>,
    by_all: Form,
}

/// What stands before and behind the time to retry.
#[derive(Debug)]
struct Form {
    begin: Bytes,
    end: Bytes,
}

/// Which limits refuse, by their positions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refusing {
    count: usize,
    last: usize,
}

impl Overdrawn {
    pub(super) fn new(limits: &[Limit]) -> Self {
        let names: Vec<Name> = limits.iter().map(|limit| limit.name).collect();
        Self { by_one: names.iter().map(|name| Form::of(&[*name])).collect(), by_all: Form::of(&names) }
    }

    /// Appends the details of a refusal by these limits, after which so many seconds are to be waited.
    #[inline]
    pub(super) fn write(&self, refused: &Refused<'_>, seconds: u64, refusing: Refusing, json: &mut Text) {
        let form = match refusing.count {
            1 => self.by_one.get(refusing.last),
            count if count == self.by_one.len() => Some(&self.by_all),
            _ => None,
        };
        match form {
            Some(Form { begin, end }) => {
                json.extend(begin);
                write_seconds(seconds, json);
                json.extend(end);
            }
            None => problem::write(refused, json),
        }
    }
}

impl Form {
    /// That of a refusal by limits of these names, at whatever time.
    fn of(names: &[Name]) -> Self {
        let outcome = Outcome::Refuse(Duration::ZERO);
        let left = Left::new(0, Duration::ZERO);
        let standing = |name: &Name| LimitStatus { name: *name, limit: 0, left, taken: 0, outcome, is_shadow: false };
        let decision = Decision::from_statuses(Operation::Check, Timestamp::EPOCH, names.iter().map(standing));
        let request = Request::new(());
        let refused = Refused::new(Reason::OverQuota(&decision), RequestHead::of(&request), Duration::ZERO);
        let written = |write: fn(&Refused<'_>, &mut Text)| {
            let mut text = Text::new();
            write(&refused, &mut text);
            Bytes::copy_from_slice(&text.into_bytes())
        };
        Self { begin: written(problem::write_begin), end: written(problem::write_end) }
    }
}

impl Refusing {
    /// The limit at this position refuses too.
    #[inline]
    pub(super) const fn add(&mut self, position: usize) {
        *self = Self { count: self.count + 1, last: position };
    }
}
