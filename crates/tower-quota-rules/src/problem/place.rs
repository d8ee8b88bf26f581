//! Places in a document.

use core::fmt;

/// A place in a document: the fields and positions that lead to it from the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place(Vec<Step>);

/// One step of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Into the value of a field or a key.
    Field(Box<str>),
    /// Into an element of a list, counted from 0.
    Index(usize),
}

impl Place {
    /// Returns the place of a field of the root.
    pub(crate) fn of(field: &str) -> Self {
        Self::default().field(field)
    }

    /// Returns the place of a field in this one.
    pub(crate) fn field(&self, field: &str) -> Self {
        self.with(Step::Field(field.into()))
    }

    /// Returns the place of an element in this one.
    pub(crate) fn index(&self, position: usize) -> Self {
        self.with(Step::Index(position))
    }

    /// Returns the steps, from the root.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.0
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

impl FromIterator<Step> for Place {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        Self(steps.into_iter().collect())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Field(name) if is_plain(name) => {
                    let dot = if position == 0 { "" } else { "." };
                    write!(f, "{dot}{name}")?;
                }
                Step::Field(name) => write!(f, "[{name:?}]")?,
            }
        }
        Ok(())
    }
}

/// Returns whether a name needs no quotes in a place.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
