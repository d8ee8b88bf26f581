/// Finds the ends of messages in a gRPC body.
///
/// A message has a byte of flags, a length of four bytes, and the payload.
#[derive(Debug)]
pub(super) struct GrpcMessages {
    /// The missing bytes of the current message, or `None` if frames split a header.
    left: Option<u64>,
}

impl GrpcMessages {
    pub(super) const fn new() -> Self {
        Self { left: Some(0) }
    }

    pub(super) fn pass(&mut self, data: &[u8]) {
        self.left = self.left.and_then(|left| walk(left, data, |_| {}));
    }

    /// Returns the length of the complete messages at the beginning of the data, up to `most`.
    pub(super) fn complete_messages(&self, data: &[u8], most: u64) -> u64 {
        let mut fitting = 0;
        if let Some(left) = self.left {
            walk(left, data, |end| {
                if end <= most {
                    fitting = end;
                }
            });
        }
        fitting
    }
}

/// Visits the ends of messages. Returns the missing bytes, unless the last header is incomplete.
fn walk(left: u64, data: &[u8], mut visit: impl FnMut(u64)) -> Option<u64> {
    let length = data.len() as u64;
    let mut end = left;
    while end < length {
        visit(end);
        let rest = data.get(usize::try_from(end).ok()?..)?;
        let [_, size @ ..] = rest.first_chunk::<5>()?;
        end += 5 + u64::from(u32::from_be_bytes(*size));
    }
    if end == length {
        visit(end);
    }
    Some(end - length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[u8] = &[0, 0, 0, 0, 2, 8, 1, 0, 0, 0, 0, 2, 8, 1];

    #[test]
    fn complete_messages_fit() {
        let messages = GrpcMessages::new();
        for (most, fitting) in [(0, 0), (6, 0), (7, 7), (13, 7), (14, 14), (99, 14)] {
            assert_eq!(messages.complete_messages(TWO, most), fitting, "{most}");
        }
    }

    #[test]
    fn message_across_frames_is_followed() {
        let mut messages = GrpcMessages::new();
        messages.pass(&TWO[..6]);
        assert_eq!(messages.complete_messages(&TWO[6..], 7), 1);
        assert_eq!(messages.complete_messages(&TWO[6..], 8), 8);
        messages.pass(&TWO[6..]);
        assert_eq!(messages.complete_messages(TWO, 9), 7);
    }

    #[test]
    fn split_header_ends_the_count() {
        let mut messages = GrpcMessages::new();
        messages.pass(&TWO[..9]);
        assert_eq!(messages.complete_messages(&TWO[9..], 99), 0);
    }
}
