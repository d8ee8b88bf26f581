use smallvec::SmallVec;
use tower_quota_core::{Algorithm, Charge, ChargeMode, Name, Operation, Penalty, Quota};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) operation: Operation,
    pub(crate) charges: SmallVec<[ChargeTemplate; 4]>,
    pub(crate) clients: usize,
    /// Whether the fast path may decide. The path takes plain and refundable charges of buckets and windows, with
    /// each limit of a client once.
    pub(crate) is_plain: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChargeTemplate {
    pub(crate) name: Name,
    pub(crate) quota: Quota,
    pub(crate) client: usize,
    pub(crate) cost: u64,
    /// The longest accepted wait, or the time that refills the largest debt. For a refund, the time from the charge to
    /// the end of its turn.
    pub(crate) wait_micros: u64,
    pub(crate) counts_refusals: bool,
    pub(crate) is_shadow: bool,
    pub(crate) is_at_most: bool,
    pub(crate) is_refundable: bool,
    pub(crate) mode: ChargeMode,
    /// The penalty, boxed because few limits have one.
    pub(crate) penalty: Option<Box<Penalty>>,
}

impl Template {
    /// Makes a template. `client_of` maps the position of a charge to the position of its client.
    pub(crate) fn new(
        operation: Operation,
        charges: &[Charge<'_>],
        client_of: impl Fn(usize) -> usize,
    ) -> Self {
        let may_be_plain = operation == Operation::Check
            && !charges.is_empty()
            && charges.iter().all(Charge::has_count);
        let charges: SmallVec<[ChargeTemplate; 4]> = charges
            .iter()
            .enumerate()
            .map(|(i, charge)| ChargeTemplate {
                name: charge.name(),
                quota: *charge.quota(),
                client: client_of(i),
                cost: charge.units(),
                wait_micros: match operation {
                    Operation::Refund { .. } => charge.turn_micros(),
                    _ if charge.mode() == ChargeMode::Forced => charge.most_debt(),
                    _ => charge.max_wait_micros(),
                },
                counts_refusals: charge.counts_refusals(),
                is_shadow: charge.is_shadow(),
                is_at_most: charge.is_at_most(),
                is_refundable: charge.is_refundable(),
                mode: charge.mode(),
                penalty: charge.penalised_by().map(|penalty| Box::new(*penalty)),
            })
            .collect();
        let clients = charges.iter().map(|part| part.client + 1).max();
        let is_repeated = |(i, part): (usize, &ChargeTemplate)| {
            let mut before = charges[..i].iter();
            before.any(|other| other.client == part.client && other.name.id() == part.name.id())
        };
        let is_plain = may_be_plain && !charges.iter().enumerate().any(is_repeated);
        Self {
            operation,
            clients: clients.unwrap_or(0),
            is_plain,
            charges,
        }
    }

    pub(crate) fn first_of(&self, client: usize) -> Option<usize> {
        self.charges.iter().position(|part| part.client == client)
    }

    pub(crate) fn by_client(&self) -> impl Iterator<Item = (usize, &ChargeTemplate)> {
        (0..self.clients).flat_map(|client| {
            self.charges
                .iter()
                .enumerate()
                .filter(move |(_, part)| part.client == client)
        })
    }
}

impl ChargeTemplate {
    pub(crate) fn is_hold(&self) -> bool {
        self.quota.algorithm() == Algorithm::Concurrent
    }

    pub(crate) fn is_forced(&self) -> bool {
        self.mode == ChargeMode::Forced
    }
}
