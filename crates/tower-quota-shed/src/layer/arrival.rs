use std::hash::BuildHasher;
use std::sync::Arc;

use http::Response;
use tower_quota::response::RefusalBody;
use tower_quota::{Refused, RequestHead};

use crate::cause::Cause;
use crate::gate::{Entry, Gate};
use crate::priority::Priority;
use crate::shed::Shed;

impl Gate {
    pub(super) fn arrive(self: &Arc<Self>, head: &RequestHead<'_>) -> Entry {
        self.enter(self.clock.now(), || {
            let key = self.settings.key.as_ref().and_then(|key| key.extract(head));
            // An empty key stands for conflicting values.
            let key = key.filter(|key| !key.as_bytes().is_empty());
            let digest = key.map(|key| self.hasher.hash_one(&key));
            (self.settings.priority_of(head), digest)
        })
    }

    pub(super) fn respond(
        &self,
        priority: Priority,
        cause: Cause,
        head: &RequestHead<'_>,
    ) -> Response<RefusalBody> {
        let retry_after = self.refuse(self.clock.now(), priority, cause);
        (self.settings.on_shed)(&Shed {
            head: *head,
            priority,
            cause,
            retry_after,
        });
        let respond = |refused: &Refused<'_>| (self.settings.respond)(refused);
        Refused::overloaded(*head, retry_after).respond(self.settings.protocol, respond)
    }
}
