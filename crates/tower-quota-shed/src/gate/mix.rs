/// Two levels for each class, because keys over their share come after the other keys of the class.
pub(super) const LEVELS: usize = 10;

/// The arrivals between two looks at the mix.
const WINDOW: u32 = 64;

/// A request in the counts, which fade in small steps.
const REQUEST: u64 = 1 << 20;

/// The room of a level that better levels leave no place.
const SHUT: usize = usize::MAX;

/// More room than any limit.
const MOST_ROOM: usize = 1 << 24;

/// The recent mix of levels, which decides how many places each level leaves to better levels.
///
/// Better levels need free places only until the next request ends. If they send `b` requests while `a` requests are
/// admitted, the free places run out with a probability near `(b / a)^room`. The room makes this about one in 8,000. The
/// room begins below the places of the next better level, which otherwise has no free places of its own. If better levels
/// alone are too many, a level enters only below half of the limit, as without pressure.
#[derive(Default)]
pub(super) struct Mix {
    arrived: [u64; LEVELS],
    admitted: u64,
    unseen: u32,
    room: [usize; LEVELS],
    /// The levels that send fewer requests than are admitted, together with all better levels.
    fit: usize,
    #[cfg(test)]
    pub(super) looks: u32,
}

impl Mix {
    /// Counts an arrival. Returns whether the rooms are new.
    pub(super) fn arrived(&mut self, level: usize) -> bool {
        self.arrived[level] += REQUEST;
        self.unseen += 1;
        let is_over = self.unseen == WINDOW;
        if is_over {
            self.unseen = 0;
            self.look();
        }
        is_over
    }

    pub(super) fn admitted(&mut self) {
        self.admitted += REQUEST;
    }

    /// Returns the places that a level may fill. A better level never has a lower bound than a worse level.
    ///
    /// While the limit tries a lower number, levels with few requests still fill the `most` places.
    pub(super) fn bound(&self, level: usize, limit: usize, most: usize) -> usize {
        // Levels that fit leave less room, because they come before the levels that do not.
        let (places, most_room) = match level < self.fit {
            true => (most, most / 8),
            false => (limit, 3 * limit / 8),
        };
        match self.room[level] {
            SHUT => limit / 2,
            room => places - room.min(most_room),
        }
    }

    /// Returns how many of the best classes send fewer requests than are admitted.
    pub(super) fn fit_classes(&self) -> usize {
        self.fit / 2
    }

    fn look(&mut self) {
        // The room of the last better level that sends requests.
        let mut last = 0;
        let mut better = 0;
        self.fit = 0;
        for (room, arrived) in self.room.iter_mut().zip(&mut self.arrived) {
            *room = match room_for(better, self.admitted) {
                SHUT => SHUT,
                room => (last + room).min(MOST_ROOM),
            };
            if *arrived > 0 && *room < MOST_ROOM {
                last = *room;
            }
            better += *arrived;
            if better < self.admitted {
                self.fit += 1;
            }
            fade(arrived);
        }
        fade(&mut self.admitted);
        #[cfg(test)]
        {
            self.looks += 1;
        }
    }
}

/// Forgets a sixteenth, so that the last thousand arrivals count.
fn fade(count: &mut u64) {
    *count -= count.div_ceil(16);
}

/// Returns `9 / ln(admitted / better)`, with approximations of the logarithm that err to more room.
fn room_for(better: u64, admitted: u64) -> usize {
    if better == 0 {
        return 0;
    }
    // Without overload, every arrival is admitted, so the difference shows an overload by better levels. A few requests
    // do not, and without the slack a level that has been shut out admits nothing until their counts have faded.
    if better > admitted + admitted / 8 + 8 * REQUEST {
        return SHUT;
    }
    let room = match admitted.saturating_sub(better) {
        0 => return MOST_ROOM,
        _ if admitted >= 4 * better => 13_u64.div_ceil((admitted / better).ilog2().into()),
        rest => (9 * (admitted + better)).div_ceil(2 * rest),
    };
    usize::try_from(room).unwrap_or(MOST_ROOM)
}
