//! What an answer says, apart from how it came about.

use serde_json::Value;

/// An answer without the line, or the object, that says how it came about; it has to have one.
pub fn body(printed: &str) -> String {
    if printed.starts_with('{') {
        let mut answer: Value = serde_json::from_str(printed).expect("JSON");
        let fields = answer.as_object_mut().expect("an object");
        let provenance = fields.shift_remove("provenance").expect("how it came about");
        assert!(provenance["command"].as_str().is_some_and(|command| command.starts_with("fairlab ")));
        assert!(provenance["origin"].as_array().is_some_and(|origins| !origins.is_empty()), "{provenance}");
        return answer.to_string();
    }
    let (line, rest) = printed.split_once('\n').expect("a line");
    assert!(
        line.starts_with("# ") && line.contains(" by fairlab "),
        "how it came about stands first: {line}"
    );
    rest.to_string()
}
