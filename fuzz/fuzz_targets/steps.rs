#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tfseek_fuzz::steps(data));
