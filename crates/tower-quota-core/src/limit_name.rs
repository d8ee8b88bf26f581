//! The check of a limit's name.

use crate::error::ConfigError;
use crate::name::Name;

impl Name {
    /// Checks that header fields can carry the name of a limit, with 1 to 64 printable ASCII characters.
    ///
    /// # Errors
    /// Returns [`ConfigError::LimitName`] for other names.
    #[doc(hidden)]
    pub fn check_limit(self) -> Result<(), ConfigError> {
        let text = self.as_str();
        let is_printable = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if is_printable && (1..=64).contains(&text.len()) {
            Ok(())
        } else {
            Err(ConfigError::LimitName(self))
        }
    }
}
