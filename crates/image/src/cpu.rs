//! Work compiled for AVX2, where the processor has it.
#![allow(unsafe_code)]

/// Work on vectors.
pub(crate) trait Work {
    type Output;

    /// Does the work. It is `#[inline(always)]`, and so is all in it that gains from vectors, because what is
    /// not inlined is compiled for any processor.
    fn run(self) -> Self::Output;
}

/// Does work, compiled for AVX2 if the processor has it. The results are the same.
pub(crate) fn with_vectors<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("bmi2") {
        // SAFETY: the processor has both features.
        return unsafe { wide(work) };
    }
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn wide<W: Work>(work: W) -> W::Output {
    work.run()
}
