use core::fmt;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DocumentPlace(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A field or a key.
    Field(Box<str>),
    /// An element of a list, counted from 0.
    Index(usize),
}

impl DocumentPlace {
    pub(crate) fn of(field: &str) -> Self {
        Self::default().field(field)
    }

    pub(crate) fn field(&self, field: &str) -> Self {
        self.with(Step::Field(field.into()))
    }

    pub(crate) fn index(&self, position: usize) -> Self {
        self.with(Step::Index(position))
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.0
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

impl FromIterator<Step> for DocumentPlace {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        Self(steps.into_iter().collect())
    }
}

impl fmt::Display for DocumentPlace {
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

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
