use std::collections::HashMap;
use std::time::Instant;

use tower_quota_core::stored::{SlotHead, push_u56};
use tower_quota_core::{Algorithm, ChargeMode, Clock, MonotonicClock, Operation, Quota, Timestamp};

use super::{
    AT_MOST, CHARGE_ANYWAY, CHECK, COUNTS_REFUSALS, FORCED, PEEK, PENALTY, QUEUES, REFUND,
    REFUNDABLE, REFUSED_ALREADY, RENEW, REPORTED, REPORTED_UNTIL_DEBT, RESET, SHADOW, WINDOW,
};
use crate::clock::now;
use crate::keys::EntryKey;
use crate::template::{ChargeTemplate, Template};

/// The largest number that Lua counts exactly, above every capacity.
const MOST_EXACT: u64 = (1 << 53) - 1;
/// The latest instant, in the year 2112.
const LATEST: u64 = 1 << 52;

pub(crate) struct Call {
    pub(crate) keys: Vec<EntryKey>,
    pub(crate) request: Vec<u8>,
    /// The deadline, after which the call is not sent again.
    pub(crate) deadline: Option<Instant>,
}

impl Call {
    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| now() >= deadline)
    }
}

/// Builds a call. Similar decisions share a template.
#[derive(Default)]
pub(crate) struct BatchRequest<'a> {
    instant: Option<Timestamp>,
    templates: Vec<&'a Template>,
    positions: HashMap<&'a EntryKey, usize>,
    keys: Vec<&'a EntryKey>,
    template_bytes: Vec<u8>,
    decision_bytes: Vec<u8>,
    decisions: usize,
}

#[derive(Clone, Copy)]
struct WireCharge {
    client: usize,
    flags: u16,
    cost: u64,
    wait: u64,
    id: u32,
    other_id: u32,
    strikes_id: u32,
    quota: Quota,
}

impl<'a> BatchRequest<'a> {
    pub(crate) fn at(instant: Option<Timestamp>) -> Self {
        Self {
            instant,
            ..Self::default()
        }
    }

    pub(crate) fn decide(
        &mut self,
        template: &'a Template,
        clients: &'a [EntryKey],
        sets: &'a [EntryKey],
    ) {
        let template = self.template(template);
        push_count(&mut self.decision_bytes, template);
        for key in clients.iter().chain(sets) {
            let key = self.key(key);
            push_count(&mut self.decision_bytes, key);
        }
        self.decisions += 1;
    }

    pub(crate) fn into_call(self) -> Call {
        let instant = self.instant.map_or(0, Timestamp::as_micros);
        let mut request = vec![u8::from(self.instant.is_some())];
        push_u56(&mut request, instant.min(LATEST));
        push_count(&mut request, self.templates.len());
        push_count(&mut request, self.decisions);
        request.extend(self.template_bytes);
        request.extend(self.decision_bytes);
        Call {
            keys: self.keys.into_iter().cloned().collect(),
            request,
            deadline: None,
        }
    }

    fn template(&mut self, template: &'a Template) -> usize {
        // Search from the end, because most decisions look like the decision before.
        if let Some(position) = self.templates.iter().rposition(|known| *known == template) {
            return position + 1;
        }
        let (operation, taken_at) = match template.operation {
            Operation::Check => (CHECK, 0),
            Operation::Charge | Operation::Surcharge { .. } => (CHARGE_ANYWAY, 0),
            Operation::Refund { taken_at } => (REFUND, taken_at.as_micros()),
            Operation::Reset => (RESET, 0),
            Operation::Refuse => (REFUSED_ALREADY, 0),
            Operation::Peek => (PEEK, 0),
            Operation::Renew { taken_at } => (RENEW, taken_at.as_micros()),
        };
        let charges = template
            .by_client()
            .flat_map(|(_, part)| self.charges(part));
        let charges: Vec<_> = charges.collect();
        let mut charge_bytes = Vec::new();
        for charge in &charges {
            charge.push(&mut charge_bytes);
        }
        let sets = template.charges.iter().filter(|part| part.is_hold());
        let places = template.clients + sets.count();
        let bytes = &mut self.template_bytes;
        bytes.extend([u8::from(template.is_plain), operation]);
        push_u56(bytes, taken_at.min(MOST_EXACT));
        push_count(bytes, template.clients);
        push_count(bytes, places);
        push_count(bytes, charges.len());
        push_count(bytes, charge_bytes.len());
        bytes.extend(charge_bytes);
        self.templates.push(template);
        self.templates.len()
    }

    fn charges(&self, part: &ChargeTemplate) -> Vec<WireCharge> {
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
        let mut ids = (part.name.id(), part.name.holds_id());
        if part.is_hold() {
            ids = (ids.1, ids.0);
        }
        let charge = WireCharge {
            client: part.client + 1,
            flags,
            cost: part.cost,
            wait: part.wait_micros,
            id: ids.0,
            other_id: ids.1,
            strikes_id: part.name.strikes_id(),
            quota: part.quota,
        };
        let mut charges = vec![charge];
        for (cost, quota) in self.windows(&part.quota) {
            charges.push(WireCharge {
                flags: WINDOW,
                cost,
                quota,
                ..charge
            });
        }
        if let Some(penalty) = &part.penalty {
            charges.push(WireCharge {
                flags: PENALTY,
                cost: penalty.most_debt(),
                id: charge.strikes_id,
                quota: *penalty.strikes(),
                ..charge
            });
        }
        charges
    }

    /// Returns the previous, the current and the next window, because the server selects the window
    /// by its own time.
    fn windows(&self, quota: &Quota) -> Vec<(u64, Quota)> {
        if quota.time_zone().is_none() {
            return Vec::new();
        }
        let now = self.instant.unwrap_or_else(|| MonotonicClock::new().now());
        let SlotHead { pace, offset, .. } = SlotHead::of(&quota.at(now));
        let now = now.as_micros();
        let elapsed = (now % pace + pace - offset) % pace;
        let (start, end) = (now.saturating_sub(elapsed), now + pace - elapsed);
        let window_at = |instant| quota.at(Timestamp::from_micros(instant));
        vec![
            (0, window_at(start.saturating_sub(1))),
            (start, window_at(start)),
            (end, window_at(end)),
        ]
    }

    fn key(&mut self, key: &'a EntryKey) -> usize {
        let next = self.keys.len() + 1;
        let position = *self.positions.entry(key).or_insert(next);
        if position == next {
            self.keys.push(key);
        }
        position
    }
}

impl WireCharge {
    fn push(&self, bytes: &mut Vec<u8>) {
        let (mut slot, head) = (Vec::new(), SlotHead::of(&self.quota));
        head.push(self.id, &mut slot);
        push_count(bytes, self.client);
        bytes.extend(self.flags.to_le_bytes());
        push_u56(bytes, self.cost.min(MOST_EXACT));
        push_u56(bytes, self.wait.min(MOST_EXACT));
        bytes.extend(self.id.to_le_bytes());
        bytes.extend(self.other_id.to_le_bytes());
        bytes.extend(self.strikes_id.to_le_bytes());
        bytes.push(head.kind);
        for number in [head.capacity, head.grain, head.pace, head.offset] {
            push_u56(bytes, number);
        }
        // The conversion cannot fail, because a slot has at most five bytes and four numbers of
        // eight.
        bytes.push(u8::try_from(slot.len()).unwrap_or(u8::MAX));
        bytes.extend(slot);
    }
}

const fn flag(bit: u16, is_set: bool) -> u16 {
    if is_set { bit } else { 0 }
}

/// Appends a count, or a position from 1, as two bytes. The store has already refused larger requests.
fn push_count(bytes: &mut Vec<u8>, count: usize) {
    bytes.extend(u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes());
}
