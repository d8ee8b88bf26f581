//! Lists the steps of a run.

use super::world::Fault;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Check {
        instance: usize,
        client: usize,
    },
    /// Charges a unit after the latest admission.
    Settle,
    /// Refunds the latest admission.
    Refund,
    /// Releases the holds of the oldest admission, and keeps its other units.
    Release,
    /// Renews the holds of the oldest admission, and takes holds again that the store has lost.
    Renew,
    /// Resets client 0 in instance 1.
    Reset,
    /// Peeks at client 0 in instance 1.
    Peek,
    /// Changes the quota, or changes it back.
    Change,
    /// Lets half a window pass.
    Pass,
    /// Lets a window pass.
    Expire,
    /// Makes a fault happen. A second cut joins the network again.
    Fault(Fault),
}

impl Step {
    /// Returns whether such a step at the end changes nothing, because each run ends all cuts and then waits.
    pub(super) const fn is_idle_at_end(self) -> bool {
        matches!(
            self,
            Self::Pass | Self::Expire | Self::Fault(Fault::Cut(_) | Fault::CutOwn(_))
        )
    }

    /// Returns whether another order, with or without this step, has the same effect as this step after `before`.
    pub(super) fn is_redundant_after(self, before: Self) -> bool {
        match (before, self) {
            // Two halves are a window, and the half comes first.
            (Self::Pass | Self::Expire, Self::Pass) => true,
            // Only these steps have the present quota, so a change comes directly before one of them.
            (Self::Change, Self::Check { .. } | Self::Reset | Self::Peek) => false,
            (Self::Change, _) => true,
            (before, Self::Reset | Self::Peek | Self::Fault(_)) => before == self,
            _ => false,
        }
    }
}

/// Returns the next word of letters, or `false` after the last. The first letter stays.
///
/// The next word differs at or before `position`.
pub(super) fn advance(word: &mut [usize], position: usize, letters: usize) -> bool {
    for place in (1..=position).rev() {
        word[place] += 1;
        word[place + 1..].fill(0);
        if word[place] < letters {
            return true;
        }
    }
    false
}
