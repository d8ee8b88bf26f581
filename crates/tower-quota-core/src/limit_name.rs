//! Checks of limits' names: header fields must be able to carry them.

use crate::error::ConfigError;
use crate::name::Name;

impl Name {
    /// Checks that this can name a limit: header fields carry 1 to 64 printable ASCII characters.
    ///
    /// # Errors
    /// [`ConfigError::LimitName`] when it cannot.
    pub fn check_limit(self) -> Result<(), ConfigError> {
        let text = self.as_str().as_bytes();
        let is_valid =
            (1..=64).contains(&text.len()) && text.iter().all(|byte| matches!(byte, b' '..=b'~'));
        if is_valid {
            Ok(())
        } else {
            Err(ConfigError::LimitName(self))
        }
    }
}
