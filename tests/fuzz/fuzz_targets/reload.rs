//! Edits of a rules directory while its rules serve: NUL ends a file, and its first byte says which it is. What is refused
//! changes nothing, and what is loaded again and again is what is loaded anew.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use paybridge::clock::SystemClock;
use paybridge::domain::UnixMillis;
use paybridge::rules::{LiveRules, Loader, ReloadOutcome};
use paybridge_fuzz::{PLACES, Rules, chosen, options};

fuzz_target!(|bytes: &[u8]| {
    let rules = Rules::good();
    let mut loader = Loader::new(&rules.path(), options());
    let first = loader.load(UnixMillis(0), None).expect("good rules");
    let live = LiveRules::new(loader, first, Arc::new(SystemClock));
    for edit in bytes.split(|byte| *byte == 0).take(8) {
        let Some((place, content)) = chosen(&PLACES, edit) else { continue };
        rules.put(place, content);
        let before = live.current();
        match (live.reload(), rules.load(Some(&before))) {
            (ReloadOutcome::Loaded { version, .. }, Ok(anew)) => assert_eq!(version, anew.version),
            (ReloadOutcome::Refused(problems), Err(anew)) => {
                assert!(Arc::ptr_eq(&before, &live.current()));
                assert_eq!(problems.to_string(), anew.to_string());
            }
            (reload, anew) => panic!("{reload:?}, and anew {:?}", anew.map(|rules| rules.version)),
        }
    }
});
