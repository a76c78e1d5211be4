//! Work compiled for the vector instructions that the processor has.

#![allow(unsafe_code)]

/// Work on vectors. Its result is the same with all instructions.
pub trait VectorWork: Sized {
    /// The result.
    type Output;

    /// True for work that gains from AVX-512.
    const AVX512: bool = false;

    /// Does the work. It is `#[inline(always)]`, and so is all in it that gains from vectors, because what is
    /// not inlined is compiled for any processor.
    fn run(self) -> Self::Output;

    /// Does the work, compiled for AVX-512 or AVX2 if the processor has it.
    #[inline]
    fn run_vectors(self) -> Self::Output {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
            let longer = Self::AVX512
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl");
            // SAFETY: both functions require only that the processor has their target features, which were
            // detected.
            return unsafe { if longer { avx512(self) } else { avx2(self) } };
        }
        self.run()
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn avx2<W: VectorWork>(work: W) -> W::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2,avx512f,avx512bw,avx512vl")]
fn avx512<W: VectorWork>(work: W) -> W::Output {
    work.run()
}
