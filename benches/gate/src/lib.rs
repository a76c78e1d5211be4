//! Instruction counts of the hottest functions, measured by valgrind: `benches/counts.rs`, compared by
//! `gate.py`.
