//! Every class of fields of version 2, in bytes by its specification.

use super::*;
use crate::ctf::bits::BitCursor;
use crate::ctf::decode::{CtfFields, CtfValue};

/// A description whose only event has these members.
fn described(members: &str) -> Result<CtfDescription, String> {
    parse(&format!(
        "\u{1e}{{\"type\":\"preamble\",\"version\":2}}\n\
         \u{1e}{{\"type\":\"field-class-alias\",\"name\":\"u8\",\"field-class\":{{\"type\":\"fixed-length-unsigned-integer\",\
         \"length\":8,\"byte-order\":\"little-endian\"}}}}\
         \u{1e}{{\"type\":\"trace-class\",\"environment\":{{\"release\":\"6.1\",\"major\":2}}}}\
         \u{1e}{{\"type\":\"clock-class\",\"id\":\"c\",\"frequency\":1000}}\
         \u{1e}{{\"type\":\"data-stream-class\",\"id\":3,\"default-clock-class-id\":\"c\"}}\
         \u{1e}{{\"type\":\"event-record-class\",\"id\":7,\"data-stream-class-id\":3,\"name\":\"sched:a\",\
         \"payload-field-class\":{{\"type\":\"structure\",\"member-classes\":[{members}]}}}}"
    ))
}

fn member(name: &str, class: &str) -> String {
    format!("{{\"name\":\"{name}\",\"field-class\":{class}}}")
}

fn values(members: &[(&str, &str)], bytes: &[u8]) -> Option<Vec<String>> {
    let members = members.iter().map(|(name, class)| member(name, class)).collect::<Vec<_>>().join(",");
    let description = described(&members).unwrap_or_else(|fact| panic!("{fact}"));
    let event = &description.streams[&3].events[&7];
    let mut fields = CtfFields::default();
    let mut bits = BitCursor::new(bytes, u64::MAX);
    fields.read(event.fields.as_ref().expect("a payload"), &mut bits, CtfByteOrder::Little)?;
    assert_eq!(bits.at, bytes.len() as u64 * 8, "all is read: {fields:?}");
    let value = |held: CtfValue<'_>| match held {
        CtfValue::Number(number) => number.cast_signed().to_string(),
        CtfValue::Text(text) => format!("{:?}", String::from_utf8_lossy(text)),
    };
    Some(fields.found.iter().map(|found| format!("{}={}", found.name, value(found.held))).collect())
}

const FIXED: &str = r#"{"type":"fixed-length-TYPE","length":12,"byte-order":"little-endian"}"#;

#[test]
fn whole_numbers_are_of_any_width() {
    let class = |kind: &str| FIXED.replace("TYPE", kind);
    for (kind, value) in [
        ("unsigned-integer", "x=4093"),
        ("signed-integer", "x=-3"),
        ("bit-array", "x=4093"),
        ("bit-map", "x=4093"),
        ("boolean", "x=4093"),
    ] {
        let rest = FIXED.replace("TYPE", "unsigned-integer").replace("12", "4");
        let found = values(&[("x", &class(kind)), ("rest", &rest)], &[0xfd, 0x5f]).expect("numbers");
        assert_eq!(found, [value, "rest=5"], "{kind}");
    }
    let big =
        r#"{"type":"fixed-length-unsigned-integer","length":16,"byte-order":"big-endian","alignment":16}"#;
    assert_eq!(values(&[("a", "\"u8\""), ("x", big)], &[1, 0, 1, 2]).expect("numbers"), ["a=1", "x=258"]);
    let float = r#"{"type":"fixed-length-floating-point-number","length":64,"byte-order":"little-endian"}"#;
    assert_eq!(values(&[("f", float), ("x", "\"u8\"")], &[0, 0, 0, 0, 0, 0, 0, 0, 4]).expect("x"), ["x=4"]);
}

#[test]
fn numbers_are_of_variable_length() {
    let [unsigned, signed] =
        ["unsigned", "signed"].map(|sign| format!("{{\"type\":\"variable-length-{sign}-integer\"}}"));
    let found = values(&[("a", &unsigned), ("b", &signed)], &[0xe5, 0x8e, 0x26, 0x7f]).expect("numbers");
    assert_eq!(found, ["a=624485", "b=-1"]);
}

#[test]
fn texts_and_blobs_end_by_a_zero_or_a_length() {
    let by = |kind: &str| {
        format!(
            "{{\"type\":\"{kind}\",\"length-field-location\":{{\"origin\":\"event-record-payload\",\"path\":[\"n\"]}}}}"
        )
    };
    let (text, blob) = (by("dynamic-length-string"), by("dynamic-length-blob"));
    let members = [
        ("z", r#"{"type":"null-terminated-string","encoding":"utf-8"}"#),
        ("s", r#"{"type":"static-length-string","length":4}"#),
        ("b", r#"{"type":"static-length-blob","length":2}"#),
        ("n", "\"u8\""),
        ("d", text.as_str()),
        ("e", blob.as_str()),
    ];
    let found = values(&members, b"ab\0cd\0ex\x01\x03uvwxyz").expect("texts");
    assert_eq!(found, ["z=\"ab\"", "s=\"cd\"", "n=3", "d=\"uvw\""]);
    // A length beyond the packet.
    assert_eq!(values(&members, b"ab\0cd\0ex\x01\xffuvwxyz"), None);
}

#[test]
fn arrays_are_passed_over_at_their_alignment() {
    let fixed =
        r#"{"type":"static-length-array","length":2,"minimum-alignment":16,"element-field-class":"u8"}"#;
    let counted = r#"{"type":"dynamic-length-array","element-field-class":"u8",
                      "length-field-location":{"path":["n"]}}"#;
    let members = [("n", "\"u8\""), ("a", fixed), ("l", counted), ("x", "\"u8\"")];
    // Each element begins at a multiple of two bytes.
    assert_eq!(values(&members, &[2, 0, 1, 0, 1, 8, 8, 5]).expect("numbers"), ["n=2", "x=5"]);
}

#[test]
fn an_option_is_there_where_its_selector_says_so() {
    let optional = r#"{"type":"optional","field-class":"u8","selector-field-location":{"path":["is"]}}"#;
    let members = [("is", "\"u8\""), ("o", optional), ("x", "\"u8\"")];
    assert_eq!(values(&members, &[0, 9]).expect("numbers"), ["is=0", "x=9"]);
    assert_eq!(values(&members, &[1, 8, 9]).expect("numbers"), ["is=1", "o=8", "x=9"]);
    let ranged = r#"{"type":"optional","field-class":"u8","selector-field-location":{"path":["is"]},
                     "selector-field-ranges":[[5,6]]}"#;
    let members = [("is", "\"u8\""), ("o", ranged)];
    assert_eq!(values(&members, &[1]).expect("numbers"), ["is=1"]);
    assert_eq!(values(&members, &[6, 8]).expect("numbers"), ["is=6", "o=8"]);
}

#[test]
fn a_variant_is_what_its_selector_says() {
    let signed = FIXED.replace("TYPE", "signed-integer").replace("12", "8");
    let variant = r#"{"type":"variant","selector-field-location":{"path":["is"]},"options":[
        {"name":"small","field-class":"u8","selector-field-ranges":[[-128,-1]]},
        {"field-class":{"type":"null-terminated-string"},"selector-field-ranges":[[1,3],[5,5]]}]}"#;
    let members = [("is", signed.as_str()), ("v", variant)];
    assert_eq!(values(&members, &[0xff, 7]).expect("a number"), ["is=-1", "v=7"]);
    assert_eq!(values(&members, b"\x05a\0").expect("a text"), ["is=5", "v=\"a\""]);
    assert_eq!(values(&members, b"\x04a\0"), None, "no option is for 4");
}

#[test]
fn what_surrounds_fields_is_kept() {
    let description = described(&member("x", "\"u8\"")).expect("a description");
    assert_eq!((description.env["release"].as_str(), description.env["major"].as_str()), ("6.1", "2"));
    assert_eq!(description.clocks["c"], 1000);
    assert_eq!(description.streams[&3].events[&7].name, "a");
}

#[test]
fn what_is_wrong_is_told_with_its_fragment() {
    let preamble = "\u{1e}{\"type\":\"preamble\",\"version\":2}";
    for (fragments, fact) in [
        ("\u{1e}{\"type\":\"preamble\",\"version\":3}".to_string(), "fragment 1: no preamble of version 2"),
        (format!("{preamble}\u{1e}{{"), "fragment 2: EOF"),
        (format!("{preamble}\u{1e}{{\"type\":\"a\"}}"), "fragment 2: 'a' is no kind of fragment"),
        (
            format!("{preamble}\u{1e}{{\"type\":\"trace-class\",\"extensions\":{{\"x\":{{}}}}}}"),
            "fragment 2: a trace-class with extensions",
        ),
        (
            format!("{preamble}\u{1e}{{\"type\":\"data-stream-class\",\"default-clock-class-id\":\"c\"}}"),
            "there is no clock 'c'",
        ),
    ] {
        let error = parse(&fragments).expect_err("it is wrong");
        assert!(error.contains(fact), "{error}");
    }
    for (class, fact) in [
        ("\"none\"", "no class of fields is called 'none'"),
        (r#"{"type":"x"}"#, "'x' is no class of fields"),
        (r#"{"type":"fixed-length-unsigned-integer","length":65,"byte-order":"big-endian"}"#, "1 to 64 bits"),
        (
            r#"{"type":"fixed-length-unsigned-integer","length":8,"byte-order":"big-endian","bit-order":"first-to-last"}"#,
            "another order",
        ),
        (r#"{"type":"null-terminated-string","encoding":"utf-16le"}"#, "a text in utf-16le"),
        (r#"{"type":"dynamic-length-blob"}"#, "a path 'length-field-location' is missing"),
    ] {
        let error = described(&member("x", class)).expect_err("it is wrong");
        assert!(error.starts_with("fragment 6: ") && error.contains(fact), "{error}");
    }
}

/// Aliases may double what they stand for, and structures may lie in each other: neither takes the machine.
#[test]
fn more_fields_than_any_event_has_are_refused() {
    let alias = |name: usize, class: &str| {
        format!("\u{1e}{{\"type\":\"field-class-alias\",\"name\":\"a{name}\",\"field-class\":{class}}}")
    };
    let of =
        |members: &[String]| format!("{{\"type\":\"structure\",\"member-classes\":[{}]}}", members.join(","));
    let start = "\u{1e}{\"type\":\"preamble\",\"version\":2}".to_string();
    let byte = r#"{"type":"fixed-length-unsigned-integer","length":8,"byte-order":"little-endian"}"#;
    let nested = |times: usize| {
        (1..30).fold(start.clone() + &alias(0, byte), |text, number| {
            let member = member("x", &format!("\"a{}\"", number - 1));
            text + &alias(number, &of(&vec![member; times]))
        })
    };
    assert!(parse(&nested(1)).is_ok());
    let error = parse(&nested(2)).expect_err("too many");
    assert!(error.contains("a structure has more than 65536 fields"), "{error}");
    let deep = "{\"type\":\"optional\",\"field-class\":".repeat(100) + byte + &"}".repeat(100);
    assert!(parse(&(start.clone() + &alias(0, &deep))).is_err());
}
