use crate::audit::AuditRecord;
use crate::blocks::Block;
use crate::time::Time;

/// A change of a block that the store does not have yet.
#[derive(Clone, Debug)]
pub(super) struct HeldChange {
    /// The new block, or `None` for a removal.
    pub(super) block: Option<Block>,
    /// The block on this instance before the change.
    pub(super) before: Option<Block>,
    pub(super) since: Time,
    /// The record while the caller waits for the store. Afterwards the record is announced.
    pub(super) record: Option<AuditRecord>,
    /// Whether the store has space for the block.
    pub(super) has_space: bool,
    /// Tells a change from a later change of the same block.
    pub(super) number: u64,
}
