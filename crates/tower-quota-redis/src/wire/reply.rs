//! Replies: the status of each limit, or what is used of it.

use core::time::Duration;

use smallvec::SmallVec;
use tower_quota_core::stored::read_u56;
use tower_quota_core::{
    Decision, Entry, Left, LimitStatus, Name, Operation, Outcome, Quota, Timestamp,
};

use super::{
    ADMIT, BALANCE_OFFSET, DECIDED, NEVER, NOT_WRITTEN, REFUSE, REFUSED, TAKEN, UNREADABLE,
    WITH_ENTRIES,
};
use crate::template::{ChargeTemplate, Template};

/// The reason for which a reply has no decision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The stored value makes no sense to the script; nothing was done.
    State,
    /// The server refused to write what the decision changes, in these words. Nothing was done.
    NotWritten(String),
    /// The reply makes no sense, from here to its end.
    Reply,
}

/// The answers to one call, to be read in the order in which the decisions were sent.
pub(crate) struct Reply<'a>(&'a [u8]);

impl<'a> Reply<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Reads the answer to the next decision. The bytes are not trusted.
    pub(crate) fn next(&mut self, template: &Template) -> Result<Decision, Unreadable> {
        let decision = match byte(&mut self.0) {
            Some(outcome @ (TAKEN | REFUSED)) if template.is_plain => {
                self.buckets(template, outcome == TAKEN)
            }
            Some(DECIDED) => self.statuses(template),
            Some(WITH_ENTRIES) => self.statuses_with_entries(template),
            Some(UNREADABLE) => return Err(Unreadable::State),
            Some(NOT_WRITTEN) => match self.words() {
                Some(words) => return Err(Unreadable::NotWritten(words)),
                None => None,
            },
            _ => None,
        };
        if decision.is_none() {
            self.0 = &[];
        }
        decision.ok_or(Unreadable::Reply)
    }

    fn words(&mut self) -> Option<String> {
        let length = byte(&mut self.0)?;
        let (words, rest) = self.0.split_at_checked(length.into())?;
        self.0 = rest;
        Some(String::from_utf8_lossy(words).into_owned())
    }

    /// Reads a plain decision: each limit's status follows from what is used of its bucket.
    fn buckets(&mut self, template: &Template, is_taken: bool) -> Option<Decision> {
        let mut buckets: SmallVec<[(usize, Name, &Quota, u64); 4]> = SmallVec::new();
        let decision = self.decision(template, Operation::Check, |rest, part| {
            let (asked, taken) = if is_taken {
                (0, part.cost)
            } else {
                (part.cost, 0)
            };
            let used = read_u56(rest)?;
            buckets.push((part.client, part.name, &part.quota, used));
            Some(LimitStatus {
                taken,
                ..LimitStatus::of_bucket(part.name, &part.quota, used, asked)
            })
        })?;
        if is_taken {
            return Some(decision);
        }
        let (at, buckets) = (decision.at(), &buckets);
        let entries = (0..template.clients).filter_map(|client| {
            let own = buckets.iter().filter(|bucket| bucket.0 == client);
            let own = own.map(|&(_, name, quota, used)| (name, quota, used));
            Some((template.first_of(client)?, Entry::of_buckets(at, own)))
        });
        Some(decision.with_entries(entries))
    }

    fn statuses(&mut self, template: &Template) -> Option<Decision> {
        self.decision(template, template.operation, |rest, part| {
            let balance = read_u56(rest)?.cast_signed() - BALANCE_OFFSET.cast_signed();
            if balance > part.quota.capacity().cast_signed() {
                return None;
            }
            let (reset, verdict, micros) = (read_u56(rest)?, byte(rest)?, read_u56(rest)?);
            Some(LimitStatus {
                name: part.name,
                limit: part.quota.capacity(),
                left: Left::of_balance(balance, Duration::from_micros(reset)),
                outcome: outcome(verdict, micros)?,
                taken: read_u56(rest)?,
                is_shadow: part.is_shadow,
            })
        })
    }

    /// Reads a refusal with the entries of its clients.
    fn statuses_with_entries(&mut self, template: &Template) -> Option<Decision> {
        let decision = self.statuses(template)?;
        let mut entries = Vec::with_capacity(template.clients);
        for client in 0..template.clients {
            let (length, rest) = self.0.split_first_chunk()?;
            let (bytes, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
            self.0 = rest;
            // The refusal holds without an entry that was too long.
            if let (Ok(entry), Some(position)) = (Entry::decode(bytes), template.first_of(client)) {
                entries.push((position, entry));
            }
        }
        Some(decision.with_entries(entries))
    }

    /// Reads an instant and a status for each charge, client after client.
    fn decision<'t>(
        &mut self,
        template: &'t Template,
        operation: Operation,
        mut read: impl FnMut(&mut &[u8], &'t ChargeTemplate) -> Option<LimitStatus>,
    ) -> Option<Decision> {
        let rest = &mut self.0;
        let at = Timestamp::from_micros(read_u56(rest)?);
        let mut statuses: SmallVec<[Option<LimitStatus>; 4]> =
            SmallVec::from_elem(None, template.charges.len());
        for (position, part) in template.by_client() {
            statuses[position] = Some(read(rest, part)?);
        }
        Some(Decision::from_statuses(
            operation,
            at,
            statuses.into_iter().flatten(),
        ))
    }
}

fn outcome(verdict: u8, micros: u64) -> Option<Outcome> {
    match (verdict, micros) {
        (ADMIT, 0) => Some(Outcome::Allow),
        (ADMIT, wait) => Some(Outcome::Wait(Duration::from_micros(wait))),
        (REFUSE, retry) => Some(Outcome::Refuse(Duration::from_micros(retry))),
        (NEVER, _) => Some(Outcome::Never),
        _ => None,
    }
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (byte, after) = rest.split_first()?;
    *rest = after;
    Some(*byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tower_quota_core::stored::push_u56;
    use tower_quota_core::{Charge, Key, Quota};

    fn template() -> Template {
        let quota = Quota::per_second(3);
        Template::new(
            Operation::Check,
            &[Charge::new("one", &quota, &Key::EVERYONE)],
            |_| 0,
        )
    }

    fn reply(remaining: u64, verdict: u8) -> Vec<u8> {
        let mut bytes = vec![DECIDED];
        [7, remaining + BALANCE_OFFSET, 5]
            .into_iter()
            .for_each(|number| push_u56(&mut bytes, number));
        bytes.push(verdict);
        [0, 1]
            .into_iter()
            .for_each(|number| push_u56(&mut bytes, number));
        bytes
    }

    #[test]
    fn complete_reply_is_a_decision() {
        let decision = Reply::new(&reply(2, ADMIT)).next(&template()).unwrap();
        assert_eq!(decision.at(), Timestamp::from_micros(7));
        let status = decision.statuses()[0];
        assert_eq!((status.limit, status.remaining()), (3, 2));
        assert_eq!(
            (status.reset_after(), status.outcome),
            (Duration::from_micros(5), Outcome::Allow)
        );
        assert_eq!((status.taken, status.is_shadow), (1, false));
    }

    #[test]
    fn bucket_reply_reports_used_units() {
        let quota = Quota::per_second(3);
        let used = 2 * quota.grain();
        let mut bytes = vec![TAKEN];
        [7, used]
            .into_iter()
            .for_each(|number| push_u56(&mut bytes, number));
        let taken = Reply::new(&bytes).next(&template()).unwrap();
        assert_eq!(
            (taken.statuses()[0].remaining(), taken.statuses()[0].taken),
            (1, 1)
        );
        assert!(taken.is_allowed());
        for shorter in 0..bytes.len() {
            assert_eq!(
                Reply::new(&bytes[..shorter]).next(&template()),
                Err(Unreadable::Reply),
                "{shorter} bytes"
            );
        }
    }

    #[test]
    fn impossible_reply_is_an_error() {
        let complete = reply(2, ADMIT);
        for shorter in 0..complete.len() {
            let decision = Reply::new(&complete[..shorter]).next(&template());
            assert_eq!(decision, Err(Unreadable::Reply), "{shorter} bytes");
        }
        assert_eq!(
            Reply::new(&reply(2, 3)).next(&template()),
            Err(Unreadable::Reply),
            "no such verdict"
        );
        assert_eq!(
            Reply::new(&reply(4, ADMIT)).next(&template()),
            Err(Unreadable::Reply),
            "more than the capacity"
        );
        assert_eq!(
            Reply::new(&[9; 60]).next(&template()),
            Err(Unreadable::Reply),
            "no such answer"
        );
    }

    #[test]
    fn refusal_has_entry_of_its_client() {
        let (at, template) = (Timestamp::from_micros(7), template());
        let quota = &template.charges[0].quota;
        let used = 3 * quota.grain();
        let entry = Entry::of_buckets(at, [(Name::new("one"), quota, used)]);
        let mut plain = vec![REFUSED];
        push_u56(&mut plain, 7);
        push_u56(&mut plain, used);
        let plain = Reply::new(&plain).next(&template).unwrap();
        assert_eq!(plain.entries(), [(0, entry.clone())]);

        let stored = entry.encode();
        let mut bytes = reply(0, REFUSE);
        bytes[0] = WITH_ENTRIES;
        bytes.extend(u16::try_from(stored.len()).unwrap().to_le_bytes());
        bytes.extend(stored);
        let full = Reply::new(&bytes).next(&template).unwrap();
        assert_eq!(full.entries(), [(0, entry)]);
        let cut = Reply::new(&bytes[..bytes.len() - 1]).next(&template);
        assert_eq!(cut, Err(Unreadable::Reply));
    }

    #[test]
    fn unreadable_state_concerns_one_decision() {
        let bytes = [&[UNREADABLE][..], &reply(2, ADMIT)].concat();
        let mut reply = Reply::new(&bytes);
        assert_eq!(reply.next(&template()), Err(Unreadable::State));
        assert!(reply.next(&template()).is_ok());
    }
}
