//! Requests: decisions as bytes.

use std::collections::HashMap;

use tower_quota_core::stored::{SlotHead, push_u56};
use tower_quota_core::{Algorithm, ChargeMode, Clock, MonotonicClock, Operation, Quota, Timestamp};

use super::{
    AT_MOST, CHARGE_ANYWAY, CHECK, COUNTS_REFUSALS, FORCED, PEEK, PENALTY, QUEUES, REFUND,
    REFUNDABLE, REFUSED_ALREADY, RENEW, REPORTED, REPORTED_UNTIL_DEBT, RESET, SHADOW, WINDOW,
};
use crate::keys::EntryKey;
use crate::template::{ChargeTemplate, Template};

/// Costs beyond this are sent as this: 2^53 - 1, more than any capacity and the most that Lua counts exactly.
const MOST_EXACT: u64 = (1 << 53) - 1;
/// Instants beyond this are sent as this: 2^52 microseconds, in the year 2112.
const LATEST: u64 = 1 << 52;

/// The content of one call of the script.
pub(crate) struct Call {
    /// The entries of the clients it counts, all of them in one partition.
    pub(crate) keys: Vec<EntryKey>,
    /// The decisions, as a [`Request`] makes them.
    pub(crate) request: Vec<u8>,
}

/// A call of the script in the making. What several decisions share is sent once.
#[derive(Default)]
pub(crate) struct Request<'a> {
    instant: Option<Timestamp>,
    templates: Vec<&'a Template>,
    positions: HashMap<&'a EntryKey, u16>,
    keys: Vec<&'a EntryKey>,
    template_bytes: Vec<u8>,
    decision_bytes: Vec<u8>,
    decisions: u16,
}

impl<'a> Request<'a> {
    /// Makes a call to be decided at an instant, or at the server's own time.
    pub(crate) fn at(instant: Option<Timestamp>) -> Self {
        Self {
            instant,
            ..Self::default()
        }
    }

    /// Adds a decision, to be decided after those before it.
    pub(crate) fn decide(&mut self, template: &'a Template, clients: &'a [EntryKey]) {
        let template = self.template(template);
        self.decision_bytes
            .extend_from_slice(&template.to_le_bytes());
        for client in clients {
            let key = self.key(client);
            self.decision_bytes.extend_from_slice(&key.to_le_bytes());
        }
        self.decisions += 1;
    }

    pub(crate) fn into_call(self) -> Call {
        let instant = self.instant;
        let mut bytes =
            Vec::with_capacity(12 + self.template_bytes.len() + self.decision_bytes.len());
        bytes.push(u8::from(instant.is_some()));
        push_u56(
            &mut bytes,
            instant.map_or(0, |instant| instant.as_micros().min(LATEST)),
        );
        bytes.extend_from_slice(&count(self.templates.len()).to_le_bytes());
        bytes.extend_from_slice(&self.decisions.to_le_bytes());
        bytes.extend_from_slice(&self.template_bytes);
        bytes.extend_from_slice(&self.decision_bytes);
        Call {
            keys: self.keys.into_iter().cloned().collect(),
            request: bytes,
        }
    }

    fn template(&mut self, template: &'a Template) -> u16 {
        // Decisions mostly look like the one before.
        if let Some(position) = self.templates.iter().rposition(|known| *known == template) {
            return count(position + 1);
        }
        let (operation, taken_at) = match template.operation {
            Operation::Check => (CHECK, 0),
            Operation::Charge => (CHARGE_ANYWAY, 0),
            Operation::Refund { taken_at } => (REFUND, taken_at.as_micros()),
            Operation::Reset => (RESET, 0),
            Operation::Refuse => (REFUSED_ALREADY, 0),
            Operation::Peek => (PEEK, 0),
            Operation::Renew { taken_at } => (RENEW, taken_at.as_micros()),
        };
        self.template_bytes
            .extend_from_slice(&[u8::from(template.is_plain), operation]);
        push_u56(&mut self.template_bytes, taken_at.min(MOST_EXACT));
        self.template_bytes
            .extend_from_slice(&count(template.clients).to_le_bytes());
        let charges = template.charges.iter().map(|part| {
            1 + usize::from(part.penalty.is_some()) + 3 * usize::from(part.quota.is_calendar())
        });
        self.template_bytes
            .extend_from_slice(&count(charges.sum()).to_le_bytes());
        let is_refund = matches!(template.operation, Operation::Refund { .. });
        for (_, part) in template.by_client() {
            self.charge(part, is_refund);
        }
        self.templates.push(template);
        count(self.templates.len())
    }

    fn charge(&mut self, part: &ChargeTemplate, is_refund: bool) {
        let span = if is_refund {
            part.turn_micros.min(MOST_EXACT)
        } else {
            part.max_wait_micros
        };
        let flags = flag(QUEUES, part.quota.algorithm() == Algorithm::LeakyBucket)
            | flag(COUNTS_REFUSALS, part.counts_refusals)
            | flag(SHADOW, part.is_shadow)
            | flag(AT_MOST, part.is_at_most)
            | flag(REFUNDABLE, part.is_refundable)
            | match part.mode {
                ChargeMode::Checked => 0,
                ChargeMode::Reported => REPORTED,
                ChargeMode::ReportedUntilDebt => REPORTED_UNTIL_DEBT,
                ChargeMode::Forced => FORCED,
            };
        let (id, strikes_id) = (part.name.id(), part.name.strikes_id());
        let ids = [id, strikes_id];
        self.counter(part, flags, part.cost, span, ids);
        self.quota(id, &part.quota);
        // The server picks one of three windows by its own time.
        for (start, window) in self.windows(&part.quota) {
            self.counter(part, WINDOW, start, 0, ids);
            self.quota(id, &window);
        }
        if let Some(penalty) = &part.penalty {
            self.counter(
                part,
                PENALTY,
                penalty.most_debt(),
                0,
                [strikes_id, strikes_id],
            );
            self.quota(strikes_id, penalty.strikes());
        }
    }

    /// Returns the previous, the current and the next window of a calendar quota, each with its start.
    fn windows(&self, quota: &Quota) -> Vec<(u64, Quota)> {
        if !quota.is_calendar() {
            return Vec::new();
        }
        let now = self.instant.unwrap_or_else(|| MonotonicClock::new().now());
        let SlotHead { pace, offset, .. } = SlotHead::of(&quota.at(now));
        let now = now.as_micros();
        let elapsed = (now % pace + pace - offset) % pace;
        let start = now.saturating_sub(elapsed);
        let window_at = |instant| quota.at(Timestamp::from_micros(instant));
        vec![
            (0, window_at(start.saturating_sub(1))),
            (start, window_at(start)),
            (now + pace - elapsed, window_at(now + pace - elapsed)),
        ]
    }

    fn counter(&mut self, part: &ChargeTemplate, flags: u16, cost: u64, span: u64, ids: [u32; 2]) {
        let bytes = &mut self.template_bytes;
        bytes.extend_from_slice(&count(part.client + 1).to_le_bytes());
        bytes.extend_from_slice(&flags.to_le_bytes());
        push_u56(bytes, cost.min(MOST_EXACT));
        push_u56(bytes, span);
        ids.into_iter()
            .for_each(|id| bytes.extend_from_slice(&id.to_le_bytes()));
    }

    /// Appends the numbers of a quota at their full width, then the head of a stored slot after its length.
    fn quota(&mut self, id: u32, quota: &Quota) {
        let bytes = &mut self.template_bytes;
        let head = SlotHead::of(quota);
        bytes.push(head.kind);
        [head.capacity, head.grain, head.pace, head.offset]
            .into_iter()
            .for_each(|number| push_u56(bytes, number));
        let length = bytes.len();
        bytes.push(0);
        head.push(id, bytes);
        // At most five bytes and four numbers of eight.
        bytes[length] = u8::try_from(bytes.len() - length - 1).unwrap_or(u8::MAX);
    }

    fn key(&mut self, key: &'a EntryKey) -> u16 {
        let next = count(self.keys.len() + 1);
        let position = *self.positions.entry(key).or_insert(next);
        if position == next {
            self.keys.push(key);
        }
        position
    }
}

const fn flag(bit: u16, is_set: bool) -> u16 {
    if is_set { bit } else { 0 }
}

/// Returns a count, or a position from 1. A batch is far smaller than this holds; a single decision that is not is
/// refused before.
fn count(of: usize) -> u16 {
    u16::try_from(of).unwrap_or(u16::MAX)
}
