//! What comes back: standings, or the states they follow from, in the form that `script/numbers.lua` describes.

use core::time::Duration;

use smallvec::SmallVec;
use tower_quota_core::{Decision, Left, LimitStatus, Operation, Outcome, Timestamp};

use crate::template::Template;

/// What is in place of a decision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// What is stored makes no sense to the script; nothing was done.
    State,
    /// The reply makes no sense, from here to its end.
    Reply,
}

/// The answers to one call, to be read in the order in which the decisions were sent.
pub(crate) struct Reply<'a>(&'a [u8]);

impl<'a> Reply<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn next(&mut self, template: &Template) -> Result<Decision, Unreadable> {
        let decision = match byte(&mut self.0) {
            Some(taken @ (0 | 1)) if template.is_plain => states(&mut self.0, template, taken == 1),
            Some(2) => statuses(&mut self.0, template),
            Some(3) => return Err(Unreadable::State),
            _ => None,
        };
        if decision.is_none() {
            self.0 = &[];
        }
        decision.ok_or(Unreadable::Reply)
    }
}

/// Statuses in the order of the charges, as they come in.
type Statuses = SmallVec<[Option<LimitStatus>; 4]>;

/// A plain decision: its limits stand as the states of its buckets say, and so does what each said of its cost.
fn states(rest: &mut &[u8], template: &Template, refused: bool) -> Option<Decision> {
    let mut standings: Statuses = SmallVec::from_elem(None, template.charges.len());
    let (mut at, mut last) = (0, None);
    for (position, part) in template.by_subject() {
        if last != Some(part.subject) {
            at = number(rest)?;
            last = Some(part.subject);
        }
        // The number of the quota.
        *rest = rest.get(5..)?;
        let used = number(rest)?;
        let asked = if refused { part.cost } else { 0 };
        let taken = part.cost - asked;
        standings[position] =
            Some(LimitStatus { taken, ..LimitStatus::of_bucket(part.name, &part.quota, used, asked) });
    }
    Some(Decision::from_statuses(Operation::Check, Timestamp::from_micros(at), standings.into_iter().flatten()))
}

fn statuses(rest: &mut &[u8], template: &Template) -> Option<Decision> {
    let mut standings: Statuses = SmallVec::from_elem(None, template.charges.len());
    let at = Timestamp::from_micros(number(rest)?);
    for (position, part) in template.by_subject() {
        let remaining = number(rest)?;
        let reset_after = Duration::from_micros(number(rest)?);
        let verdict = byte(rest)?;
        let outcome = outcome(verdict, number(rest)?)?;
        standings[position] = Some(LimitStatus {
            name: part.name,
            limit: part.quota.capacity(),
            left: Left::new(remaining, reset_after),
            outcome,
            taken: number(rest)?,
            is_shadow: part.is_shadow,
        });
    }
    Some(Decision::from_statuses(template.operation, at, standings.into_iter().flatten()))
}

fn outcome(verdict: u8, micros: u64) -> Option<Outcome> {
    match (verdict, micros) {
        (0, 0) => Some(Outcome::Allow),
        (0, wait) => Some(Outcome::Wait(Duration::from_micros(wait))),
        (1, retry) => Some(Outcome::Refuse(Duration::from_micros(retry))),
        (2, _) => Some(Outcome::Never),
        _ => None,
    }
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (byte, after) = rest.split_first()?;
    *rest = after;
    Some(*byte)
}

/// 56 bits.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, after) = rest.split_first_chunk::<7>()?;
    *rest = after;
    let mut whole = [0; 8];
    whole[..7].copy_from_slice(bytes);
    Some(u64::from_le_bytes(whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tower_quota_core::{Charge, Key, Quota};

    fn template() -> Template {
        let quota = Quota::per_second(3);
        Template::new(Operation::Check, &[Charge::new("one", &quota, &Key::EVERYONE)], |_| 0)
    }

    fn reply(verdict: u8) -> Vec<u8> {
        let mut bytes = vec![2];
        for number in [7_u64, 2, 5] {
            bytes.extend_from_slice(&number.to_le_bytes()[..7]);
        }
        bytes.push(verdict);
        for number in [0_u64, 1] {
            bytes.extend_from_slice(&number.to_le_bytes()[..7]);
        }
        bytes
    }

    #[test]
    fn a_whole_reply_is_a_decision() {
        let decision = Reply::new(&reply(0)).next(&template()).unwrap();
        assert_eq!(decision.at(), Timestamp::from_micros(7));
        let standing = decision.statuses()[0];
        assert_eq!((standing.limit, standing.remaining()), (3, 2));
        assert_eq!((standing.reset_after(), standing.outcome), (Duration::from_micros(5), Outcome::Allow));
        assert_eq!((standing.taken, standing.is_shadow), (1, false));
    }

    #[test]
    fn anything_else_is_not() {
        let whole = reply(0);
        for shorter in 0..whole.len() {
            let decision = Reply::new(&whole[..shorter]).next(&template());
            assert_eq!(decision, Err(Unreadable::Reply), "{shorter} bytes");
        }
        assert_eq!(Reply::new(&reply(3)).next(&template()), Err(Unreadable::Reply));
        for shorter in 1..20 {
            assert_eq!(Reply::new(&vec![0; shorter]).next(&template()), Err(Unreadable::Reply), "{shorter} bytes");
        }
        assert!(Reply::new(&[0; 20]).next(&template()).is_ok());
    }

    #[test]
    fn a_state_that_makes_no_sense_spoils_no_other_decision() {
        let bytes = [&[3][..], &reply(0)].concat();
        let mut reply = Reply::new(&bytes);
        assert_eq!(reply.next(&template()), Err(Unreadable::State));
        assert!(reply.next(&template()).is_ok());
    }
}
