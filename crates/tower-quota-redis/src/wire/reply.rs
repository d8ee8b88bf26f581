use core::time::Duration;

use smallvec::SmallVec;
use tower_quota_core::stored::read_u56;
use tower_quota_core::{Algorithm, Decision, Entry, Left, LimitStatus, Outcome, Timestamp};

use super::{
    ADMIT, BALANCE_OFFSET, CONVERTED, DECIDED, NEVER, NOT_WRITTEN, REFUSE, REFUSED, SLIDING_BEFORE,
    TAKEN, UNREADABLE,
};
use crate::template::{ChargeTemplate, Template};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The script cannot read the stored entry, and charged no limit.
    State,
    /// The server refused the write with this text, and no limit was charged.
    NotWritten(String),
    Reply,
}

pub(crate) struct Reply<'a>(&'a [u8]);

impl<'a> Reply<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn next(&mut self, template: &Template) -> Result<Decision, Unreadable> {
        let mut converted = 0;
        if let Some((&[CONVERTED, a, b, c, d], rest)) = self.0.split_first_chunk() {
            (converted, self.0) = (u32::from_le_bytes([a, b, c, d]), rest);
        }
        let decision = match self.0.split_off_first() {
            Some(&outcome @ (TAKEN | REFUSED)) if template.is_plain => {
                self.counts(template, outcome == TAKEN).map(Ok)
            }
            Some(&DECIDED) => self.statuses(template),
            Some(&UNREADABLE) => Some(Err(Unreadable::State)),
            Some(&NOT_WRITTEN) => self.words().map(Unreadable::NotWritten).map(Err),
            _ => None,
        };
        let Some(decision) = decision else {
            // The length of this decision is unknown, so the next one cannot be found.
            self.0 = &[];
            return Err(Unreadable::Reply);
        };
        let decision = decision?;
        if converted == 0 {
            return Ok(decision);
        }
        let charges = template.by_client().enumerate();
        let charges = charges.filter(|(number, _)| converted >> number & 1 == 1);
        Ok(decision.with_converted(charges.map(|(_, (position, _))| position)))
    }

    fn words(&mut self) -> Option<String> {
        let length = usize::from(*self.0.split_off_first()?);
        let words = self.0.split_off(..length)?;
        Some(String::from_utf8_lossy(words).into_owned())
    }

    /// Reads a plain decision. The count of a limit determines its status.
    fn counts(&mut self, template: &Template, is_taken: bool) -> Option<Decision> {
        let mut counts: SmallVec<[(usize, &ChargeTemplate, u64); 4]> = SmallVec::new();
        let decision = self.decision(template, |rest, at, position, part| {
            let mut count = read_u56(rest)?;
            if part.quota.algorithm() == Algorithm::SlidingWindow {
                count = ((count / SLIDING_BEFORE) << 32) + count % SLIDING_BEFORE;
            }
            counts.push((position, part, count));
            let asked = if is_taken { 0 } else { part.cost };
            Some(LimitStatus {
                taken: part.cost - asked,
                ..LimitStatus::of_count(part.name, &part.quota, count, at, asked)
            })
        })?;
        if is_taken {
            return Some(decision);
        }
        let at = decision.at();
        let clients = counts.chunk_by(|one, next| one.1.client == next.1.client);
        let entries = clients.map(|own| {
            let counted = own
                .iter()
                .map(|(_, part, count)| (part.name, &part.quota, *count));
            (own[0].0, Entry::of_counts(at, counted))
        });
        Some(decision.with_entries(entries))
    }

    /// Reads a decision of the model to its end, even if a status makes no sense.
    fn statuses(&mut self, template: &Template) -> Option<Result<Decision, Unreadable>> {
        let mut unreadable = None;
        let decision = self.decision(template, |rest, _, _, part| {
            let balance = read_u56(rest)?.cast_signed() - BALANCE_OFFSET.cast_signed();
            let reset = Duration::from_micros(read_u56(rest)?);
            let (verdict, micros) = (*rest.split_off_first()?, read_u56(rest)?);
            let status = LimitStatus {
                name: part.name,
                limit: part.quota.capacity(),
                left: Left::of_balance(balance, reset),
                outcome: outcome(verdict, micros).unwrap_or_else(|| {
                    unreadable = Some(Unreadable::Reply);
                    Outcome::Never
                }),
                taken: read_u56(rest)?,
                is_shadow: part.is_shadow,
            };
            if balance > status.limit.cast_signed() {
                unreadable = Some(Unreadable::State);
            }
            Some(status)
        })?;
        let mut entries = Vec::new();
        for client in 0..template.clients {
            let length = self.0.split_off(..2)?;
            let length = u16::from_le_bytes(length.try_into().ok()?);
            let bytes = self.0.split_off(..usize::from(length))?;
            // The script leaves out long entries. The refusal is valid without entries.
            if let (Ok(entry), Some(position)) = (Entry::decode(bytes), template.first_of(client)) {
                entries.push((position, entry));
            }
        }
        Some(match unreadable {
            Some(unreadable) => Err(unreadable),
            None => Ok(decision.with_entries(entries)),
        })
    }

    fn decision<'t>(
        &mut self,
        template: &'t Template,
        mut read: impl FnMut(&mut &[u8], Timestamp, usize, &'t ChargeTemplate) -> Option<LimitStatus>,
    ) -> Option<Decision> {
        let at = Timestamp::from_micros(read_u56(&mut self.0)?);
        let mut statuses: SmallVec<[Option<LimitStatus>; 4]> =
            SmallVec::from_elem(None, template.charges.len());
        for (position, part) in template.by_client() {
            statuses[position] = Some(read(&mut self.0, at, position, part)?);
        }
        let statuses = statuses.into_iter().flatten();
        Some(Decision::from_statuses(template.operation, at, statuses))
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

#[cfg(test)]
mod tests {
    use super::*;
    use tower_quota_core::stored::push_u56;
    use tower_quota_core::{Charge, Key, Name, Operation, Quota};

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
        bytes.extend([0, 0]);
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
    fn impossible_counts_of_windows_are_refusals() {
        let minute = Quota::per_minute(3);
        for quota in [minute.fixed_window(), minute.sliding_window()] {
            let key = Key::EVERYONE;
            let charges = [Charge::new("one", &quota, &key)];
            let template = Template::new(Operation::Check, &charges, |_| 0);
            for (count, left) in [(2, 1), ((1 << 56) - 1, 0)] {
                let mut bytes = vec![REFUSED];
                [7, count]
                    .into_iter()
                    .for_each(|number| push_u56(&mut bytes, number));
                let refused = Reply::new(&bytes).next(&template).unwrap();
                assert_eq!(refused.statuses()[0].remaining(), left);
                assert_eq!(refused.is_allowed(), left > 0);
            }
        }
    }

    #[test]
    fn conversions_precede_their_decision() {
        let bytes = [&[CONVERTED, 1, 0, 0, 0], &reply(2, ADMIT)[..]].concat();
        let decision = Reply::new(&bytes).next(&template()).unwrap();
        assert!(decision.converted().eq([0]) && decision.is_allowed());
        for shorter in 0..bytes.len() {
            let decision = Reply::new(&bytes[..shorter]).next(&template());
            assert_eq!(decision, Err(Unreadable::Reply), "{shorter} bytes");
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
            Err(Unreadable::State),
            "more than the capacity"
        );
        assert_eq!(
            Reply::new(&[9; 60]).next(&template()),
            Err(Unreadable::Reply),
            "no such answer"
        );
    }

    #[test]
    fn impossible_status_spoils_only_its_decision() {
        for (wrong, unreadable) in [
            (reply(4, ADMIT), Unreadable::State),
            (reply(2, 3), Unreadable::Reply),
        ] {
            let bytes = [&wrong[..], &reply(2, ADMIT)].concat();
            let mut reply = Reply::new(&bytes);
            assert_eq!(reply.next(&template()), Err(unreadable));
            assert!(reply.next(&template()).is_ok());
        }
    }

    #[test]
    fn refusal_has_entry_of_its_client() {
        let (at, template) = (Timestamp::from_micros(7), template());
        let quota = &template.charges[0].quota;
        let used = 3 * quota.grain();
        let entry = Entry::of_counts(at, [(Name::new("one"), quota, used)]);
        let mut plain = vec![REFUSED];
        push_u56(&mut plain, 7);
        push_u56(&mut plain, used);
        let plain = Reply::new(&plain).next(&template).unwrap();
        assert_eq!(plain.entries(), [(0, entry.clone())]);

        let stored = entry.encode();
        let mut bytes = reply(0, REFUSE);
        bytes.truncate(bytes.len() - 2);
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
