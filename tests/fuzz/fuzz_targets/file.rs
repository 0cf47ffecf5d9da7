//! One file of a good rules directory is the fuzzer's; its first byte says which.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paybridge_fuzz::{PLACES, Rules, chosen};

fuzz_target!(|bytes: &[u8]| {
    let Some((place, content)) = chosen(&PLACES, bytes) else { return };
    let rules = Rules::good();
    rules.put(place, content);
    let _ = rules.load(None);
});
