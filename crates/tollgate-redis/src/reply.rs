//! What comes back: standings as fixed-width bytes, in the form that `script/numbers.lua` describes.

use core::time::Duration;

use redis::Value;
use smallvec::SmallVec;
use tollgate_core::{Charge, Decision, Name, Operation, Outcome, Standing, Timestamp};

/// What a reply needs to become a decision: the limits asked about, in order, and what each admits at once.
pub(crate) struct Asked {
    operation: Operation,
    limits: SmallVec<[(Name, u64); 4]>,
}

impl Asked {
    pub(crate) fn about(operation: Operation, charges: &[Charge<'_>]) -> Self {
        let limits = charges.iter().map(|charge| (charge.name(), charge.quota().capacity())).collect();
        Self { operation, limits }
    }

    /// Reads the reply to a call with one decision; `None` when it is not one.
    pub(crate) fn read(&self, reply: &Value) -> Option<Decision> {
        let Value::BulkString(bytes) = reply else { return None };
        let mut rest = bytes.as_slice();
        let decision = self.read_decision(&mut rest)?;
        rest.is_empty().then_some(decision)
    }

    fn read_decision(&self, rest: &mut &[u8]) -> Option<Decision> {
        let at = Timestamp::from_micros(number(rest)?);
        let mut standings = SmallVec::<[Standing; 4]>::new();
        for &(name, limit) in &self.limits {
            let remaining = number(rest)?;
            let reset_after = Duration::from_micros(number(rest)?);
            let verdict = byte(rest)?;
            let outcome = outcome(verdict, number(rest)?)?;
            standings.push(Standing { name, limit, remaining, reset_after, outcome });
        }
        Some(Decision::from_standings(self.operation, at, standings))
    }
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

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::{Key, Quota};

    fn asked() -> Asked {
        let quota = Quota::per_second(3);
        Asked::about(Operation::Check, &[Charge::new("one", &quota, &Key::EVERYONE)])
    }

    fn reply(verdict: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&7_u64.to_le_bytes());
        bytes.extend_from_slice(&2_u64.to_le_bytes());
        bytes.extend_from_slice(&5_u64.to_le_bytes());
        bytes.push(verdict);
        bytes.extend_from_slice(&0_u64.to_le_bytes());
        bytes
    }

    #[test]
    fn a_whole_reply_is_a_decision() {
        let decision = asked().read(&Value::BulkString(reply(0))).unwrap();
        assert_eq!(decision.at(), Timestamp::from_micros(7));
        let standing = decision.standings()[0];
        assert_eq!((standing.limit, standing.remaining), (3, 2));
        assert_eq!((standing.reset_after, standing.outcome), (Duration::from_micros(5), Outcome::Allow));
    }

    #[test]
    fn anything_else_is_not() {
        let whole = reply(0);
        for shorter in 0..whole.len() {
            assert_eq!(asked().read(&Value::BulkString(whole[..shorter].to_vec())), None, "{shorter} bytes");
        }
        let mut longer = whole;
        longer.push(0);
        for garbled in [Value::BulkString(longer), Value::BulkString(reply(3)), Value::Nil, Value::Okay, Value::Int(1)]
        {
            assert_eq!(asked().read(&garbled), None, "{garbled:?}");
        }
    }
}
