//! JSON as rt-app's files have it: objects keep the order of their members, and a name may come twice.
//!
//! Must not know: what the names mean.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Node::Null => "null",
            Node::Bool(_) => "a boolean",
            Node::Integer(_) => "an integer",
            Node::Float(_) => "a number with a fraction",
            Node::Text(_) => "a string",
            Node::List(_) => "a list",
            Node::Object(_) => "an object",
        }
    }
}

/// Reads a file; comments (`/* */` and `//`) and commas before a closing bracket are passed over, as rt-app's library and
/// its script do.
///
/// # Errors
/// What is wrong, with line and column.
pub(super) fn parse(text: &str) -> Result<Node, String> {
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

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Integer(i64::try_from(value).unwrap_or(i64::MAX)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Node, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = object.next_entry()? {
            members.push(member);
        }
        Ok(Node::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_repeated_names_are_kept() {
        let Ok(Node::Object(members)) = parse(r#"{ "run": 1, "sleep": 2, "run": 3 }"#) else {
            panic!("an object")
        };
        let names = members.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
        assert_eq!(names, ["run", "sleep", "run"]);
        assert_eq!(members[2].1, Node::Integer(3));
    }

    #[test]
    fn comments_and_last_commas_are_passed_over() {
        let text = "/* a \"comment\" */ { // more\n \"a/*\": [1, 2, ], \"b\": \"x // y\\\"\", }";
        let Ok(Node::Object(members)) = parse(text) else { panic!("{:?}", parse(text)) };
        assert_eq!(members[0], ("a/*".to_string(), Node::List(vec![Node::Integer(1), Node::Integer(2)])));
        assert_eq!(members[1].1, Node::Text("x // y\"".to_string()));
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
