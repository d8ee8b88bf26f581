//! The two sources of time: the processor's counter and the system's monotonic clock.

use std::time::Instant;

/// The counter and the system's clock. Tests replace both.
pub(super) trait TimeSource {
    /// Returns whether the counter promises a constant rate.
    fn has_counter(&self) -> bool;

    /// Returns the counter's steps, from any start.
    fn counter(&self) -> u64;

    /// Returns the nanoseconds by the system's monotonic clock since this source was made.
    fn system_nanos(&self) -> u64;
}

/// The processor's counter and the system's clock.
#[derive(Debug)]
pub(super) struct Processor {
    has_counter: bool,
    started: Instant,
}

impl Processor {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the system's clock"
    )]
    pub(super) fn start() -> Self {
        Self {
            has_counter: instructions::has_invariant_counter(),
            started: Instant::now(),
        }
    }
}

impl TimeSource for Processor {
    fn has_counter(&self) -> bool {
        self.has_counter
    }

    #[inline]
    fn counter(&self) -> u64 {
        instructions::counter()
    }

    fn system_nanos(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod instructions {
    use core::arch::x86_64::{__cpuid, _rdtsc};

    /// Reads the time-stamp counter.
    #[inline]
    #[expect(unsafe_code, reason = "this instruction has no safe name")]
    pub(super) fn counter() -> u64 {
        // SAFETY: this reads a register and touches no memory. Every x86-64 processor has it. A system may forbid it to
        // processes (CR4.TSD); then the process is ended by a signal.
        unsafe { _rdtsc() }
    }

    /// Returns whether the counter runs at one rate in every state of the processor ("invariant TSC").
    #[allow(
        unsafe_code,
        unused_unsafe,
        reason = "older compilers have no safe name for this instruction"
    )]
    pub(super) fn has_invariant_counter() -> bool {
        const HIGHEST_EXTENDED: u32 = 0x8000_0000;
        const POWER_MANAGEMENT: u32 = 0x8000_0007;
        const INVARIANT: u32 = 1 << 8;
        // SAFETY: every x86-64 processor has this instruction, and it touches no memory.
        unsafe {
            __cpuid(HIGHEST_EXTENDED).eax >= POWER_MANAGEMENT
                && __cpuid(POWER_MANAGEMENT).edx & INVARIANT != 0
        }
    }
}

#[cfg(all(target_arch = "aarch64", not(target_os = "ios"), not(miri)))]
mod instructions {
    /// Reads the virtual count of the generic timer.
    #[inline]
    #[expect(unsafe_code, reason = "this instruction has no safe name")]
    pub(super) fn counter() -> u64 {
        let count: u64;
        // SAFETY: this reads a register that every 64-bit ARM processor has, and touches no memory.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nostack, preserves_flags))
        };
        count
    }

    /// Returns true: the architecture demands a counter of constant rate.
    pub(super) const fn has_invariant_counter() -> bool {
        true
    }
}

/// The replacement on other processors, where only the system's clock is read.
#[cfg(not(all(
    any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", not(target_os = "ios"))
    ),
    not(miri)
)))]
mod instructions {
    #[inline]
    pub(super) const fn counter() -> u64 {
        0
    }

    pub(super) const fn has_invariant_counter() -> bool {
        false
    }
}
