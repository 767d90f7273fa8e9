use conductor_feature::harness::{Failure, Harness, json};

#[test]
fn middle_c_is_c4() -> Result<(), Failure> {
    let mut feature = Harness::new()?{{others}}.install()?;
    assert_eq!(feature.call("{{snake}}", json!({ "note": 60 }))?, json!({ "name": "C4", "frequency": 261.63 }));
    assert_eq!(feature.call("{{snake}}", json!({ "note": 69 }))?["frequency"], json!(440.0));
    Ok(())
}

#[test]
fn a_note_beyond_midi_is_refused_in_words() -> Result<(), Failure> {
    let mut feature = Harness::new()?{{others}}.install()?;
    let refused = feature.call("{{snake}}", json!({ "note": 200 })).unwrap_err();
    assert!(refused.text().contains("0 to 127"), "{refused}");
    Ok(())
}
