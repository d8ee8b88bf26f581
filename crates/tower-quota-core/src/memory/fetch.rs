//! The hint to the processor that a line will be read.

/// Fetches a cache line.
#[inline]
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[expect(unsafe_code, reason = "this instruction has no safe name")]
pub(super) fn prefetch<T>(address: *const T) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: this is a hint. It reads nothing that the program sees, writes nothing, and is ignored by the processor
    // where the address is not mapped ("Intel 64 and IA-32 Architectures Software Developer's Manual", PREFETCHh;
    // "AMD64 Architecture Programmer's Manual", volume 3, PREFETCHlevel). Every x86-64 processor has it.
    unsafe { _mm_prefetch(address.cast(), _MM_HINT_T0) }
}

/// Does nothing: other processors have no such instruction.
#[inline]
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) const fn prefetch<T>(_: *const T) {}
