//! What is sent: charges as fixed-width bytes, in the form that `script/numbers.lua` describes.

use smallvec::SmallVec;
use tollgate_core::{Algorithm, Charge, Operation, Timestamp};

/// Costs beyond this are sent as this: 2^53 - 1, more than any capacity and the most that Lua counts exactly.
const MOST_EXACT: u64 = (1 << 53) - 1;
/// Instants beyond this are sent as this: 2^52 microseconds, in the year 2112.
const LATEST: u64 = 1 << 52;

const QUEUES: u8 = 1;
const COUNTS_REFUSALS: u8 = 2;
const FROM_FIRST_REQUEST: u8 = 4;

/// Bytes of a decision over a few charges.
type Bytes = SmallVec<[u8; 256]>;

/// A call of the script in the making.
pub(crate) struct Request(Bytes);

impl Request {
    /// A request to decide at an instant, or at the server's own time.
    pub(crate) fn new(instant: Option<Timestamp>) -> Self {
        let mut bytes = Bytes::new();
        bytes.push(u8::from(instant.is_some()));
        let instant = instant.map_or(0, |instant| instant.as_micros().min(LATEST));
        bytes.extend_from_slice(&instant.to_le_bytes());
        Self(bytes)
    }

    /// Adds a decision. The charge at position `i` counts the subject whose key is at `key_of(i)` among the call's keys.
    pub(crate) fn decide(&mut self, operation: Operation, charges: &[Charge<'_>], key_of: impl Fn(usize) -> usize) {
        let (code, taken_at) = match operation {
            Operation::Check => (0, 0),
            Operation::Charge => (1, 0),
            Operation::Refund { taken_at } => (2, taken_at.as_micros()),
            Operation::Reset => (3, 0),
        };
        self.0.push(code);
        self.0.extend_from_slice(&taken_at.min(MOST_EXACT).to_le_bytes());
        self.0.extend_from_slice(&count(charges.len()).to_le_bytes());
        for (i, charge) in charges.iter().enumerate() {
            self.charge(charge, key_of(i));
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn charge(&mut self, charge: &Charge<'_>, key: usize) {
        let quota = charge.quota();
        let flags = flag(QUEUES, quota.algorithm() == Algorithm::LeakyBucket)
            | flag(COUNTS_REFUSALS, charge.counts_refusals())
            | flag(FROM_FIRST_REQUEST, quota.window_offset().is_none());
        let pace = if quota.algorithm().is_bucket() { quota.refill() } else { period(charge) };
        // Lua counts from 1.
        self.0.extend_from_slice(&count(key + 1).to_le_bytes());
        self.0.extend_from_slice(&charge.name().id().to_le_bytes());
        self.0.extend_from_slice(&[quota.algorithm().state_code(), flags]);
        for number in [
            charge.units().min(MOST_EXACT),
            charge.patience_micros(),
            quota.capacity(),
            quota.grain(),
            pace,
            quota.window_offset().unwrap_or(0),
        ] {
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }
}

const fn flag(bit: u8, is_set: bool) -> u8 {
    if is_set { bit } else { 0 }
}

/// A count of charges or keys. Four billion of them would not fit into memory.
fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

/// At most 366 days.
fn period(charge: &Charge<'_>) -> u64 {
    u64::try_from(charge.quota().period().as_micros()).unwrap_or(u64::MAX)
}
