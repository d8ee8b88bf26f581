use core::fmt;
use std::sync::Arc;

use tower_quota::{Policy, key::ClientIp};

use crate::code_parts::CodeParts;
use crate::document::Document;
use crate::problem::{Problem, Problems};
use crate::{check, compile, read};

/// A valid document and its policy. Clones are cheap.
///
/// ```
/// use tower_quota_rules::Rules;
///
/// let rules = Rules::parse("limits:\n  - name: minute\n    quota: 100/minute\n")?;
/// let policy = rules.policy();
/// # let _ = policy;
/// # Ok::<(), tower_quota_rules::Problems>(())
/// ```
#[derive(Clone)]
pub struct Rules {
    inner: Arc<RulesInner>,
}

struct RulesInner {
    document: Document,
    compiled: compile::Compiled,
    warnings: Problems,
}

impl Rules {
    /// The default of the maximum bytes of a document.
    pub const DEFAULT_MAX_BYTES: usize = 16 << 20;

    /// Reads, checks and compiles a document of at most
    /// [`DEFAULT_MAX_BYTES`](Self::DEFAULT_MAX_BYTES).
    ///
    /// # Errors
    /// Returns [`Problems`] with all errors and warnings, if there is an error.
    pub fn parse(text: &str) -> Result<Self, Problems> {
        Self::parse_with(text, &CodeParts::new())
    }

    /// Parses like [`Rules::parse`], with parts from your code.
    ///
    /// # Errors
    /// Returns [`Problems`] with all errors and warnings, if there is an error.
    pub fn parse_with(text: &str, parts: &CodeParts) -> Result<Self, Problems> {
        Self::parse_up_to(text, parts, Self::DEFAULT_MAX_BYTES)
    }

    /// Parses like [`Rules::parse_with`], with another length limit in bytes.
    ///
    /// # Errors
    /// Returns [`Problems`] with all errors and warnings, if there is an error.
    pub fn parse_up_to(text: &str, parts: &CodeParts, max_bytes: usize) -> Result<Self, Problems> {
        let tree = read::tree(text, max_bytes)?;
        let mut reading = read::Reading::new(&tree);
        let document = reading.document();
        let mut found = check::check(&document, parts, &reading.known_names());
        if reading.problems.is_empty() && !found.has_errors() {
            return Self::compile(document, parts, found, &|problem| reading.locate(problem));
        }
        for problem in found.iter_mut() {
            if reading.locate(problem) {
                reading.problems.push(problem.clone());
            }
        }
        reading.repeated_limits();
        let mut problems = reading.problems;
        problems.count(found.more());
        problems.sort();
        Err(problems)
    }

    /// Checks and compiles a document built in your code.
    ///
    /// # Errors
    /// Returns [`Problems`] with all errors and warnings, if there is an error.
    pub fn new(document: Document) -> Result<Self, Problems> {
        Self::with(document, &CodeParts::new())
    }

    /// Compiles like [`Rules::new`], with parts from your code.
    ///
    /// # Errors
    /// Returns [`Problems`] with all errors and warnings, if there is an error.
    pub fn with(document: Document, parts: &CodeParts) -> Result<Self, Problems> {
        let found = check::check(&document, parts, &check::KnownNames::default());
        if found.has_errors() {
            return Err(found);
        }
        Self::compile(document, parts, found, &|_| true)
    }

    fn compile(
        document: Document,
        parts: &CodeParts,
        mut problems: Problems,
        locate: &dyn Fn(&mut Problem) -> bool,
    ) -> Result<Self, Problems> {
        let compiled = compile::compile(&document, parts, &mut problems);
        for problem in problems.iter_mut() {
            locate(problem);
        }
        problems.sort();
        match compiled {
            Some(compiled) if !problems.has_errors() => Ok(Self {
                inner: Arc::new(RulesInner {
                    document,
                    compiled,
                    warnings: problems,
                }),
            }),
            _ => Err(problems),
        }
    }

    /// Returns the document.
    #[must_use]
    pub fn document(&self) -> &Document {
        &self.inner.document
    }

    /// Returns the policy.
    pub fn policy(&self) -> Policy {
        self.inner.compiled.policy.clone()
    }

    /// Returns the document's reader of client addresses.
    #[must_use]
    pub fn client_ip(&self) -> ClientIp {
        compile::client_ip(&self.inner.document.client_ip)
    }

    pub(crate) fn compiled(&self) -> &compile::Compiled {
        &self.inner.compiled
    }

    /// Returns the parts of the document without an effect.
    #[must_use]
    pub fn warnings(&self) -> &Problems {
        &self.inner.warnings
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("document", self.document())
            .finish_non_exhaustive()
    }
}
