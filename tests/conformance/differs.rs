//! Every case that tower-quota answers differently, and why. All others must agree.

use super::{Column, Verdict};
use Verdict::{Elsewhere, OnPurpose};

/// By the case's id: which columns differ on purpose (none named: the case as a whole), or that it speaks of something
/// a store does not do.
pub(crate) const DIFFERS: &[(&str, Verdict)] = &[
    ("tb-03-clock-back", OnPurpose(&[], "time that goes back changes nothing: the jump is not earned twice")),
    (
        "tb-09-cancel-0-back",
        OnPurpose(&[], "a refund gives back all that was taken, also when others have reserved behind it"),
    ),
    (
        "tb-11-cancel-multi",
        OnPurpose(&[], "a refund gives back all that was taken, also when others have reserved behind it"),
    ),
    ("b4j-29-bonus-over-capacity", OnPurpose(&[], "nothing is ever given back beyond the capacity")),
    (
        "b4j-33-aligned-adaptive",
        OnPurpose(&[], "refills in whole steps are fixed windows here: they refill to the brim"),
    ),
    ("b4j-35-aligned-run", OnPurpose(&[], "refills in whole steps are fixed windows here: they refill to the brim")),
    ("b4j-41-reconf-additive-frac", OnPurpose(&[], "a new quota keeps what is left: the client earned no more")),
    ("b4j-43-reconf-prop-debt", OnPurpose(&[], "a new quota keeps what is left, whatever share of the old it was")),
    ("fw-07-batch-crosses-both", OnPurpose(&[Column::Remaining], "a refusal charges nothing, so 5 are really left")),
    ("cr-03-refund", OnPurpose(&[], "nothing is ever given back beyond the capacity")),
    ("cr-07-leaky", OnPurpose(&[Column::ResetAfter], "the time until all is back is exact, not in whole units")),
    ("tb-33-dotnet-zero-cost", OnPurpose(&[], "a cost of 0 is a peek, which is always answered")),
    ("cr-12-refund-seq", OnPurpose(&[], "nothing is ever given back beyond the capacity")),
    ("multi-02-day-hour", OnPurpose(&[], "what remains on a refusal is what is really left: 2 of the day")),
    ("tb-17-interval-to-rate", OnPurpose(&[], "an interval of 0 is an error, not an endless rate")),
    ("log-06", OnPurpose(&[], "a log of a million stamps for one client is an error: at most 10000")),
    ("gcra-15-cas-exhaustion", Elsewhere("no store commits by compare-and-swap")),
    ("b4j-48-skip-on-zero", Elsewhere("refusals are not remembered outside the store")),
    ("fw-13-no-replay", Elsewhere("a fault of the network: the Redis store's own tests")),
    ("multi-07-shadow-not-short-circuit", Elsewhere("there are no limits that only watch")),
    ("http-02-fail2ban", Elsewhere("there are no bans")),
    ("http-06-block", Elsewhere("there are no blocks beyond the quota")),
    ("lease-02-fair-share", Elsewhere("there are no leases")),
    ("lease-04-late-joiner", Elsewhere("there are no leases")),
    ("adapt-01-aimd", Elsewhere("there are no limits that adapt")),
];
