//! Timelines and mapping tests: they are read or refused; what is read is what is written again.

use conductor_timeline::{Timeline, parse_mapping_tests};

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Timeline::parse(&text) {
        Ok(timeline) => {
            let written = timeline.to_string();
            match Timeline::parse(&written) {
                Ok(again) => assert_eq!(timeline, again, "{written}"),
                Err(errors) => panic!("{written}: {errors:?}"),
            }
        }
        Err(errors) => assert!(!errors.is_empty() && errors.iter().all(|error| !error.to_string().is_empty())),
    }
    if let Err(errors) = parse_mapping_tests(&text) {
        assert!(!errors.is_empty());
    }
}
