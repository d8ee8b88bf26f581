//! Rules documents: policies in YAML or JSON, checked before they are used.
//!
//! ```
//! use tower_quota::{MemoryStore, RateLimitLayer};
//! use tower_quota_rules::{Format, Rules};
//!
//! let rules = Rules::parse("limits:\n  - name: minute\n    quota: 100/minute\n", Format::Yaml)?;
//! let layer = RateLimitLayer::new(MemoryStore::new(), rules.policy());
//! # let _ = layer;
//! # Ok::<(), tower_quota_rules::Problems>(())
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | `text` | small grammars: quotas, keys, time spans, patterns |
//! | `document` | plain data with serde, in the shape of the text |
//! | `read` | text to a tree with positions, and the tree to a document; collects every error |
//! | `check` | what a document may say and cannot mean |
//! | `problem` | problems with their places, and how they are shown |
//! | `compile` | a document to a policy |
//! | `explain` | what rules do with a request, and the document's own tests |
//! | `yaml` | a document to YAML |
//! | `difference` | what changes from one document to another |
//!
//! The crate `tower-quota-live` replaces documents while requests run.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod check;
mod code_parts;
mod compile;
mod difference;
mod document;
mod document_text;
mod explain;
mod format;
mod problem;
mod read;
mod rules;
mod schema;
mod text;
mod yaml;

pub use self::code_parts::CodeParts;
pub use self::compile::{Networks, Tier};
pub use self::difference::{ChangeKind, Difference};
pub use self::document::{
    AssignRule, ClientIpRule, Defaults, Document, Expected, Grant, Grants, HeaderMatches, KeyRule,
    LimitRule, Many, Match, MissingRule, OutcomeText, OverrideRule, PathMatch, PenaltyBlock,
    PenaltyRule, RouteRule, Sample, SampleRequest, StoreFailureRule, TierRule,
};
pub use self::explain::{Explanation, LimitExplanation, TestFailure, TestReport, readable_key};
pub use self::format::Format;
pub use self::problem::{Problem, Problems, Severity};
pub use self::rules::Rules;
pub use self::schema::schema;
pub use self::text::{
    AbandonedText, CostText, DurationText, GrpcMethod, GrpcService, HeaderText, HostPattern,
    KeyPattern, KeyText, MethodText, NameText, Network, PathPattern, PathRegex, QuotaText,
    SettleText, TextError,
};
