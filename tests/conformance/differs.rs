//! Lists the cases that tower-quota answers differently, with the reasons. All other cases must agree.

use super::{Column, Difference};
use Difference::{NotAStore, OnPurpose};

/// The differences, by the id of the case.
pub(crate) const DIFFERS: &[(&str, Difference)] = &[
    (
        "tb-03-clock-back",
        OnPurpose(
            &[],
            "time that goes back changes nothing: the jump is not earned twice",
        ),
    ),
    (
        "tb-09-cancel-0-back",
        OnPurpose(
            &[],
            "a refund gives back all that was taken, also when others have reserved behind it",
        ),
    ),
    (
        "tb-11-cancel-multi",
        OnPurpose(
            &[],
            "a refund gives back all that was taken, also when others have reserved behind it",
        ),
    ),
    (
        "b4j-29-bonus-over-capacity",
        OnPurpose(&[], "nothing is ever given back beyond the capacity"),
    ),
    (
        "b4j-33-aligned-adaptive",
        OnPurpose(
            &[],
            "refills in steps are fixed windows here: each fills up to the capacity",
        ),
    ),
    (
        "b4j-35-aligned-run",
        OnPurpose(
            &[],
            "refills in steps are fixed windows here: each fills up to the capacity",
        ),
    ),
    (
        "b4j-41-reconf-additive-frac",
        OnPurpose(
            &[],
            "a new quota keeps what is left: the client earned no more",
        ),
    ),
    (
        "b4j-43-reconf-prop-debt",
        OnPurpose(
            &[],
            "a new quota keeps what is left, whatever share of the old it was",
        ),
    ),
    (
        "fw-07-batch-crosses-both",
        OnPurpose(
            &[Column::Remaining],
            "a refusal charges nothing, so 5 are really left",
        ),
    ),
    (
        "cr-03-refund",
        OnPurpose(&[], "nothing is ever given back beyond the capacity"),
    ),
    (
        "cr-07-leaky",
        OnPurpose(
            &[Column::ResetAfter],
            "the time until it is full is exact, not rounded to units",
        ),
    ),
    (
        "tb-33-dotnet-zero-cost",
        OnPurpose(&[], "a cost of 0 is a peek, which is always answered"),
    ),
    (
        "cr-12-refund-seq",
        OnPurpose(&[], "nothing is ever given back beyond the capacity"),
    ),
    (
        "multi-02-day-hour",
        OnPurpose(
            &[],
            "what remains on a refusal is what is really left: 2 of the day",
        ),
    ),
    (
        "tb-17-interval-to-rate",
        OnPurpose(&[], "an interval of 0 is an error, not an endless rate"),
    ),
    (
        "log-06",
        OnPurpose(
            &[],
            "a log of a million stamps for one client is an error: at most 10000",
        ),
    ),
    (
        "gcra-15-cas-exhaustion",
        NotAStore("no store commits by compare-and-swap"),
    ),
    (
        "b4j-48-skip-on-zero",
        NotAStore("refusals are not remembered outside the store"),
    ),
    (
        "fw-13-no-replay",
        NotAStore("a fault of the network: the Redis store's own tests"),
    ),
    (
        "multi-07-shadow-not-short-circuit",
        NotAStore("there are no limits that only watch"),
    ),
    ("http-02-fail2ban", NotAStore("there are no bans")),
    (
        "http-06-block",
        NotAStore("there are no blocks beyond the quota"),
    ),
    ("lease-02-fair-share", NotAStore("there are no leases")),
    ("lease-04-late-joiner", NotAStore("there are no leases")),
    ("adapt-01-aimd", NotAStore("there are no limits that adapt")),
];
