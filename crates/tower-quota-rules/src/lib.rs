//! Rules documents are policies in YAML, which you check before use. JSON is YAML too.
//!
//! ```
//! use tower_quota::{MemoryStore, RateLimitLayer};
//! use tower_quota_rules::Rules;
//!
//! let rules = Rules::parse("limits:\n  - name: minute\n    quota: 100/minute\n")?;
//! let layer = RateLimitLayer::new(MemoryStore::new(), rules.policy());
//! # let _ = layer;
//! # Ok::<(), tower_quota_rules::Problems>(())
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `text` | the grammars of quotas, keys, durations and patterns |
//! | `document` | the document as plain data |
//! | `read` | parses a text, and collects every error |
//! | `check` | checks the meaning of a document |
//! | `problem` | problems with their places |
//! | `compile` | compiles a document to a policy |
//! | `include` | merges a document with the document that it includes |
//! | `explain` | explains requests, and runs a document's tests |
//! | `difference`, `change` | compares documents, finds the problems of a change |
//!
//! Use the crate `tower-quota-live` to change documents while requests run.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod change;
mod check;
mod code_parts;
mod compile;
mod difference;
mod document;
mod document_text;
mod explain;
mod include;
mod problem;
mod read;
mod rules;
mod schema;
mod text;
mod tier;

pub use self::code_parts::CodeParts;
pub use self::difference::{ChangeKind, Difference};
pub use self::document::{
    AssignRule, ClientIpRule, Defaults, Document, Expected, Grant, Grants, KeyRule, LimitRule,
    Many, Match, MissingRule, OutcomeText, OverrideRule, PathMatch, PenaltyBlock, PenaltyRule,
    RouteRule, Sample, SampleRequest, StoreFailureRule, TierRule,
};
pub use self::explain::{
    Explanation, LimitExplanation, ListName, QuotaSource, TestFailure, TestReport, readable_key,
};
pub use self::problem::{Problem, Problems, Severity};
pub use self::rules::Rules;
pub use self::schema::schema;
pub use self::text::{
    AbandonedText, CostText, DegradedText, DurationText, GrpcMethod, GrpcService, HeaderText,
    HostPattern, KeyPattern, KeyText, MethodText, NameText, Network, OverText, PathPattern,
    PathRegex, QuotaText, SettleText, TextError, TierText, WordsText,
};
pub use self::tier::Tier;
