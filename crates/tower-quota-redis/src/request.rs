//! What is sent: decisions as fixed-width bytes, in the form that `script/numbers.lua` describes.

use std::collections::HashMap;

use tower_quota_core::{Algorithm, Operation, Quota, Timestamp};

use crate::definition::Definition;
use crate::keys::SubjectId;
use crate::template::{Part, Template};

/// Costs beyond this are sent as this: 2^53 - 1, more than any capacity and the most that Lua counts exactly.
const MOST_EXACT: u64 = (1 << 53) - 1;
/// Instants beyond this are sent as this: 2^52 microseconds, in the year 2112.
const LATEST: u64 = 1 << 52;

const PLAIN: u8 = 1;
const QUEUES: u8 = 1;
const COUNTS_REFUSALS: u8 = 2;
const SHADOW: u8 = 4;
const AT_MOST: u8 = 8;
const PENALTY: u8 = 16;

/// A call of the script in the making. What several decisions share is sent once.
pub(crate) struct Request<'a> {
    definitions: Table<Definition>,
    /// Decisions mostly look like the one before, so the last is tried first.
    templates: Vec<&'a Template>,
    subjects: HashMap<&'a SubjectId, u16>,
    template_bytes: Vec<u8>,
    subject_bytes: Vec<u8>,
    decision_bytes: Vec<u8>,
    decisions: u16,
    id_width: usize,
}

/// Distinct values in the order in which they were first seen.
struct Table<T>(Vec<T>);

impl<T: PartialEq> Table<T> {
    /// The position of a value, from 1.
    fn position(&mut self, value: T) -> u16 {
        let position = self.0.iter().rposition(|known| *known == value).unwrap_or_else(|| {
            self.0.push(value);
            self.0.len() - 1
        });
        count(position + 1)
    }
}

impl<'a> Request<'a> {
    /// A request about subjects whose ids have this many bytes, or 0 if they differ.
    pub(crate) fn new(id_width: usize) -> Self {
        Self {
            definitions: Table(Vec::new()),
            templates: Vec::new(),
            subjects: HashMap::new(),
            template_bytes: Vec::new(),
            subject_bytes: Vec::new(),
            decision_bytes: Vec::new(),
            decisions: 0,
            id_width,
        }
    }

    /// Adds a decision, to be decided after those before it.
    pub(crate) fn decide(&mut self, template: &'a Template, subjects: &'a [SubjectId]) {
        let template = self.template(template);
        self.decision_bytes.extend_from_slice(&template.to_le_bytes());
        for subject in subjects {
            let subject = self.subject(subject);
            self.decision_bytes.extend_from_slice(&subject.to_le_bytes());
        }
        self.decisions += 1;
    }

    /// The whole request, to be decided at an instant or at the server's own time.
    pub(crate) fn to_bytes(&self, instant: Option<Timestamp>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(
            32 + self.definitions.0.len() * Definition::BYTES
                + self.template_bytes.len()
                + self.subject_bytes.len()
                + self.decision_bytes.len(),
        );
        push_instant(&mut bytes, instant);
        for counted in [self.definitions.0.len(), self.templates.len(), self.subjects.len()] {
            bytes.extend_from_slice(&count(counted).to_le_bytes());
        }
        bytes.extend_from_slice(&self.decisions.to_le_bytes());
        bytes.push(u8::try_from(self.id_width).unwrap_or(0));
        for definition in &self.definitions.0 {
            bytes.extend_from_slice(definition.as_bytes());
        }
        for part in [&self.template_bytes, &self.subject_bytes, &self.decision_bytes] {
            bytes.extend_from_slice(part);
        }
        bytes
    }

    fn template(&mut self, template: &'a Template) -> u16 {
        if let Some(position) = self.templates.iter().rposition(|known| *known == template) {
            return count(position + 1);
        }
        let (operation, taken_at) = match template.operation {
            Operation::Check => (0, 0),
            Operation::Charge => (1, 0),
            Operation::Refund { taken_at } => (2, taken_at.as_micros()),
            Operation::Reset => (3, 0),
            Operation::Refuse => (4, 0),
            Operation::Peek => (5, 0),
        };
        self.template_bytes.extend_from_slice(&[flag(PLAIN, template.is_plain), operation]);
        push_number(&mut self.template_bytes, taken_at.min(MOST_EXACT));
        self.template_bytes.extend_from_slice(&count(template.subjects).to_le_bytes());
        let penalties = template.charges.iter().filter(|part| part.penalty.is_some()).count();
        self.template_bytes.extend_from_slice(&count(template.charges.len() + penalties).to_le_bytes());
        template.by_subject().for_each(|(_, part)| self.charge(part));
        self.templates.push(template);
        count(self.templates.len())
    }

    fn charge(&mut self, part: &Part) {
        let flags = flag(QUEUES, is_queue(&part.quota))
            | flag(COUNTS_REFUSALS, part.counts_refusals)
            | flag(SHADOW, part.is_shadow)
            | flag(AT_MOST, part.is_at_most);
        let definition = Definition::new(part.name.id(), &part.quota);
        self.counter(definition, part.subject, part.cost.min(MOST_EXACT), part.patience, flags);
        if let Some(penalty) = &part.penalty {
            let definition = Definition::new(part.name.strikes_id(), penalty.strikes());
            self.counter(definition, part.subject, penalty.most_debt(), 0, PENALTY);
        }
    }

    fn counter(&mut self, definition: Definition, subject: usize, cost: u64, patience: u64, flags: u8) {
        let definition = self.definitions.position(definition);
        let bytes = &mut self.template_bytes;
        bytes.extend_from_slice(&definition.to_le_bytes());
        bytes.extend_from_slice(&count(subject + 1).to_le_bytes());
        push_number(bytes, cost);
        push_number(bytes, patience);
        bytes.push(flags);
    }

    fn subject(&mut self, id: &'a SubjectId) -> u16 {
        let next = count(self.subjects.len() + 1);
        let position = *self.subjects.entry(id).or_insert(next);
        if position == next {
            if self.id_width == 0 {
                // At most 128 characters.
                self.subject_bytes.push(u8::try_from(id.as_bytes().len()).unwrap_or(u8::MAX));
            }
            self.subject_bytes.extend_from_slice(id.as_bytes());
        }
        position
    }
}

fn is_queue(quota: &Quota) -> bool {
    quota.algorithm() == Algorithm::LeakyBucket
}

const fn flag(bit: u8, is_set: bool) -> u8 {
    if is_set { bit } else { 0 }
}

/// Whether an instant is given, and which.
pub(crate) fn push_instant(bytes: &mut Vec<u8>, instant: Option<Timestamp>) {
    bytes.push(u8::from(instant.is_some()));
    push_number(bytes, instant.map_or(0, |instant| instant.as_micros().min(LATEST)));
}

/// The lower 56 bits.
pub(crate) fn push_number(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes()[..7]);
}

/// How many, or the position of one from 1. A batch is far smaller than this holds; a single decision that is not is
/// turned away before.
fn count(of: usize) -> u16 {
    u16::try_from(of).unwrap_or(u16::MAX)
}
