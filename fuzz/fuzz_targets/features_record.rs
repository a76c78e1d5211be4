#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tfseek_fuzz::features_record(data));
