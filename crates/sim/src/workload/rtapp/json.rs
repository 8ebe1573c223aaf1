//! JSON as rt-app's files have it: objects keep the order of their members, and a name may come twice.
//!
//! Must not know: what the names mean.

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

/// Reads a file; comments (`/* */` and `//`) and commas before a closing bracket are passed over, as rt-app's library and
/// its script do.
///
/// # Errors
/// What is wrong, with line and column.
pub(super) fn parse(text: &str) -> Result<JsonNode, String> {
    serde_json::from_str(&without_comments(text)).map_err(|error| error.to_string())
}

/// The same text with blanks in place of comments and of commas that nothing follows, so that lines and columns stay.
fn without_comments(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut comma = None;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = end_of_string(&bytes, at);
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

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
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

    #[test]
    fn order_and_repeated_names_are_kept() {
        let Ok(JsonNode::Object(members)) = parse(r#"{ "run": 1, "sleep": 2, "run": 3 }"#) else {
            panic!("an object")
        };
        let names = members.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
        assert_eq!(names, ["run", "sleep", "run"]);
        assert_eq!(members[2].1, JsonNode::Integer(3));
    }

    #[test]
    fn comments_and_last_commas_are_passed_over() {
        let text = "/* a \"comment\" */ { // more\n \"a/*\": [1, 2, ], \"b\": \"x // y\\\"\", }";
        let Ok(JsonNode::Object(members)) = parse(text) else { panic!("{:?}", parse(text)) };
        assert_eq!(
            members[0],
            ("a/*".to_string(), JsonNode::List(vec![JsonNode::Integer(1), JsonNode::Integer(2)]))
        );
        assert_eq!(members[1].1, JsonNode::Text("x // y\"".to_string()));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let error = parse("{\n /* x */ \"run\" 5 }").expect_err("no colon");
        assert!(error.contains("line 2 column 16"), "{error}");
        for text in ["", "{", "/*", "\"", "\"\\", "{\"a\":[1,}", "//"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
