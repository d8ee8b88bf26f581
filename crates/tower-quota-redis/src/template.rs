//! What decisions that look alike have in common: all but the subjects they count.

use smallvec::SmallVec;
use tower_quota_core::{Algorithm, Charge, Name, Operation, Penalty, Quota};

/// The most charges of one subject that the script's short way takes.
const MOST_PLAIN: usize = 4;

/// A decision without its subjects: what to do, and each limit's part in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) operation: Operation,
    pub(crate) charges: SmallVec<[Part; 4]>,
    /// How many subjects it counts.
    pub(crate) subjects: usize,
    /// Whether the script's short way takes it; see `script/fast.lua`.
    pub(crate) is_plain: bool,
}

/// A charge that holds a position where it had a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: Name,
    pub(crate) quota: Quota,
    /// Which of the decision's subjects, from 0.
    pub(crate) subject: usize,
    pub(crate) cost: u64,
    pub(crate) patience: u64,
    pub(crate) counts_refusals: bool,
    pub(crate) is_shadow: bool,
    pub(crate) is_at_most: bool,
    /// Boxed: few limits have one.
    pub(crate) penalty: Option<Box<Penalty>>,
}

impl Template {
    /// What is asked by these charges; the one at position `i` counts the subject at `subject_of(i)`.
    pub(crate) fn new(operation: Operation, charges: &[Charge<'_>], subject_of: impl Fn(usize) -> usize) -> Self {
        let charges: SmallVec<[Part; 4]> = charges
            .iter()
            .enumerate()
            .map(|(i, charge)| Part {
                name: charge.name(),
                quota: *charge.quota(),
                subject: subject_of(i),
                cost: charge.units(),
                patience: charge.patience_micros(),
                counts_refusals: charge.counts_refusals(),
                is_shadow: charge.is_shadow(),
                is_at_most: charge.is_at_most(),
                penalty: charge.penalised_by().map(|penalty| Box::new(*penalty)),
            })
            .collect();
        let subjects = charges.iter().map(|part| part.subject + 1).max().unwrap_or(0);
        let is_plain = operation == Operation::Check
            && !charges.is_empty()
            && charges.iter().all(Part::is_plain)
            && (0..subjects).all(|subject| charges.iter().filter(|part| part.subject == subject).count() <= MOST_PLAIN);
        Self { operation, charges, subjects, is_plain }
    }

    /// The charges subject after subject, each with its position: the order in which they are sent and answered. It
    /// makes no difference to what is decided.
    pub(crate) fn by_subject(&self) -> impl Iterator<Item = (usize, &Part)> {
        (0..self.subjects)
            .flat_map(|subject| self.charges.iter().enumerate().filter(move |(_, part)| part.subject == subject))
    }
}

impl Part {
    fn is_plain(&self) -> bool {
        self.quota.algorithm().is_bucket()
            && self.quota.algorithm() != Algorithm::LeakyBucket
            && (1..=self.quota.capacity()).contains(&self.cost)
            && self.patience == 0
            && !self.counts_refusals
            && !self.is_shadow
            && !self.is_at_most
            && self.penalty.is_none()
    }
}
