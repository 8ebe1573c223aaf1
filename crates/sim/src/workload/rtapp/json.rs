//! JSON as rt-app's files have it, read as its library (json-c) does: objects keep the order of their members;
//! where a name comes again, its last value stands in the place of the first; strings may stand in single quotes.
//! Or such names are told apart, as rt-app's script workgen does before its library reads the file.
//!
//! Must not know: what the names mean.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JsonNode {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<JsonNode>),
    Object(Vec<(String, JsonNode)>),
}

impl JsonNode {
    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            JsonNode::Null => "null",
            JsonNode::Bool(_) => "a boolean",
            JsonNode::Integer(_) => "an integer",
            JsonNode::Float(_) => "a number with a fraction",
            JsonNode::Text(_) => "a string",
            JsonNode::List(_) => "a list",
            JsonNode::Object(_) => "an object",
        }
    }
}

/// What becomes of members of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::workload) enum RepeatedNames {
    /// The last counts, in the place of the first, as in rt-app.
    #[default]
    Last,
    /// Each counts: those that follow the first are numbered, as by its script workgen. Properties are one of a kind: of
    /// these the first counts.
    Each,
}

/// Reads a file, and which names come again and do not count, by what leads to them; comments (`/* */` and `//`) and commas before
/// a closing bracket are passed over, as rt-app's library and its script do.
///
/// # Errors
/// What is wrong, with line and column.
pub(super) fn parse(
    text: &str,
    names: RepeatedNames,
    is_property: fn(&str) -> bool,
) -> Result<(JsonNode, Vec<String>), String> {
    let text = without_comments(&with_double_quotes(text));
    let mut node = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let mut repeats = NameRepeats { names, is_property, dropped: Vec::new() };
    repeats.resolve(&mut node, "");
    Ok((node, repeats.dropped))
}

/// Resolves members of one name.
struct NameRepeats {
    names: RepeatedNames,
    is_property: fn(&str) -> bool,
    /// What does not count, by what leads to it.
    dropped: Vec<String>,
}

impl NameRepeats {
    fn resolve(&mut self, node: &mut JsonNode, at: &str) {
        let members = match node {
            JsonNode::Object(members) => members,
            JsonNode::List(nodes) => return nodes.iter_mut().for_each(|node| self.resolve(node, at)),
            _ => return,
        };
        let path = |name: &str| if at.is_empty() { name.to_string() } else { format!("{at}/{name}") };
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut kept: Vec<(String, JsonNode)> = Vec::with_capacity(members.len());
        let mut number = 1;
        for (mut name, value) in members.drain(..) {
            if let Some(&place) = places.get(&name) {
                let is_one = (self.is_property)(&name);
                if self.names == RepeatedNames::Last || is_one {
                    // rt-app's script makes `#` before a name a comment.
                    if !name.starts_with('#') {
                        self.dropped.push(path(&name));
                    }
                    if self.names == RepeatedNames::Last {
                        kept[place].1 = value;
                    }
                    continue;
                }
                while places.contains_key(&format!("{name}{number}")) {
                    number += 1;
                }
                name += &number.to_string();
            }
            places.insert(name.clone(), kept.len());
            kept.push((name, value));
        }
        for (name, value) in &mut kept {
            self.resolve(value, &path(name));
        }
        *members = kept;
    }
}

/// The same text with double quotes around the strings that stand in single ones.
fn with_double_quotes(text: &str) -> Cow<'_, str> {
    if !text.contains('\'') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            quote @ (b'"' | b'\'') => end_of_string(bytes, at, quote),
            b'/' if matches!(bytes.get(at + 1), Some(b'*' | b'/')) => end_of_comment(bytes, at),
            _ => at + 1,
        };
        match bytes[at] {
            b'\'' => requote(&bytes[at..end], &mut plain),
            _ => plain.extend_from_slice(&bytes[at..end]),
        }
        at = end;
    }
    Cow::Owned(String::from_utf8_lossy(&plain).into_owned())
}

/// Adds a string in single quotes, which may lack its end, in double ones.
fn requote(string: &[u8], plain: &mut Vec<u8>) {
    plain.push(b'"');
    let inside = &string[1..];
    let (inside, is_whole) = match inside.strip_suffix(b"'") {
        Some(inside) => (inside, true),
        None => (inside, false),
    };
    let mut is_escaped = false;
    for &byte in inside {
        if byte == b'"' && !is_escaped {
            plain.push(b'\\');
        }
        plain.push(byte);
        is_escaped = byte == b'\\' && !is_escaped;
    }
    if is_whole {
        plain.push(b'"');
    }
}

/// The same text with blanks in place of comments and of commas that nothing follows, so that lines and columns stay.
fn without_comments(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut comma = None;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = end_of_string(&bytes, at, b'"');
                comma = None;
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'*' | b'/')) => {
                let end = end_of_comment(&bytes, at);
                bytes[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
                at = end;
            }
            byte => {
                match byte {
                    b',' => comma = Some(at),
                    b'}' | b']' => {
                        if let Some(comma) = comma.take() {
                            bytes[comma] = b' ';
                        }
                    }
                    _ if byte.is_ascii_whitespace() => {}
                    _ => comma = None,
                }
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn end_of_string(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn end_of_comment(bytes: &[u8], start: usize) -> usize {
    let (end, length) = match bytes[start + 1] {
        b'*' => (bytes[start + 2..].windows(2).position(|pair| pair == b"*/"), 4),
        _ => (bytes[start + 2..].iter().position(|&byte| byte == b'\n'), 2),
    };
    end.map_or(bytes.len(), |end| start + end + length)
}

impl<'de> Deserialize<'de> for JsonNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonNode, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = JsonNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<JsonNode, E> {
        Ok(JsonNode::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<JsonNode, E> {
        Ok(JsonNode::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<JsonNode, E> {
        Ok(JsonNode::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<JsonNode, E> {
        Ok(JsonNode::Integer(i64::try_from(value).unwrap_or(i64::MAX)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<JsonNode, E> {
        Ok(JsonNode::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<JsonNode, E> {
        Ok(JsonNode::Text(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<JsonNode, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(JsonNode::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<JsonNode, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = object.next_entry()? {
            members.push(member);
        }
        Ok(JsonNode::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members_as(text: &str, names: RepeatedNames) -> (Vec<(String, JsonNode)>, Vec<String>) {
        match parse(text, names, |name| name == "loop") {
            Ok((JsonNode::Object(members), repeated)) => (members, repeated),
            other => panic!("{other:?}"),
        }
    }

    fn members(text: &str) -> (Vec<(String, JsonNode)>, Vec<String>) {
        members_as(text, RepeatedNames::Last)
    }

    #[test]
    fn order_is_kept_and_of_a_repeated_name_the_last_value_in_the_first_place() {
        let (found, repeated) = members(
            r##"{ "run": 1, "sleep": 2, "run": 3, "a": { "b": 1, "b": {"c": 4, "c": 5} }, "#": 1, "#": 2 }"##,
        );
        let names = found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
        assert_eq!(names, ["run", "sleep", "a", "#"]);
        assert_eq!(found[0].1, JsonNode::Integer(3));
        let inner = JsonNode::Object(vec![("c".to_string(), JsonNode::Integer(5))]);
        assert_eq!(found[2].1, JsonNode::Object(vec![("b".to_string(), inner)]));
        assert_eq!(repeated, ["run", "a/b", "a/b/c"]);
    }

    #[test]
    fn each_of_several_names_may_count() {
        let text =
            r#"{ "run": 1, "run1": 2, "run": 3, "loop": 1, "run": 4, "sleep": 5, "loop": 2, "sleep": 6 }"#;
        let (found, repeated) = members_as(text, RepeatedNames::Each);
        let found: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(found, ["run", "run1", "run2", "loop", "run3", "sleep", "sleep3"]);
        assert_eq!(repeated, ["loop"]);
    }

    #[test]
    fn strings_may_stand_in_single_quotes() {
        let (found, _) = members(r#"{ 'a': 'x "y" \\', /* it's */ "it's": 'z\"' } // don't"#);
        let expected = [("a", "x \"y\" \\"), ("it's", "z\"")];
        let expected = expected.map(|(name, text)| (name.to_string(), JsonNode::Text(text.to_string())));
        assert_eq!(found, expected);
        for text in ["{'a: 1}", "{'a\": 1}", "'"] {
            assert!(parse(text, RepeatedNames::Last, |_| false).is_err(), "{text:?}");
        }
    }

    #[test]
    fn comments_and_last_commas_are_passed_over() {
        let text = "/* a \"comment\" */ { // more\n \"a/*\": [1, 2, ], \"b\": \"x // y\\\"\", }";
        let (members, _) = members(text);
        assert_eq!(
            members[0],
            ("a/*".to_string(), JsonNode::List(vec![JsonNode::Integer(1), JsonNode::Integer(2)]))
        );
        assert_eq!(members[1].1, JsonNode::Text("x // y\"".to_string()));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let error = parse("{\n /* x */ \"run\" 5 }", RepeatedNames::Last, |_| false).expect_err("no colon");
        assert!(error.contains("line 2 column 16"), "{error}");
        for text in ["", "{", "/*", "\"", "\"\\", "{\"a\":[1,}", "//"] {
            assert!(parse(text, RepeatedNames::Last, |_| false).is_err(), "{text:?}");
        }
    }
}
