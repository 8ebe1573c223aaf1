//! Holds JSON against the schemas of docs/schemas: the part of JSON Schema that these use.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Where the schemas are.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas")
}

/// A schema by its file's name.
pub fn read(name: &str) -> Result<Value, String> {
    let path = folder().join(name);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Fails unless `value` is as the schema called `name` says.
pub fn holds(value: &Value, name: &str) {
    let outcome = read(&format!("{name}.json")).and_then(|schema| check(&schema, value, name));
    outcome.unwrap_or_else(|problem| panic!("{problem}\nin {value:#}"));
}

/// The words that schemas may use; `$schema` and `title` are for readers.
const KNOWN: [&str; 10] = [
    "$schema",
    "title",
    "$ref",
    "type",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "const",
    "enum",
];

/// Whether `value` is as `schema` says; if not, where and why.
pub fn check(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Some(words) = schema.as_object() else {
        return if schema == &Value::Bool(true) { Ok(()) } else { Err(format!("{at}: no schema: {schema}")) };
    };
    if let Some(word) = words.keys().find(|word| !KNOWN.contains(&word.as_str())) {
        return Err(format!("{at}: '{word}' is not checked here"));
    }
    if let Some(name) = schema["$ref"].as_str() {
        return check(&read(name)?, value, at);
    }
    if let Some(wanted) = words.get("const").filter(|wanted| *wanted != value) {
        return Err(format!("{at}: {value} is not {wanted}"));
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
        return Err(format!("{at}: {value} is none of {allowed:?}"));
    }
    if let Some(types) = words.get("type") {
        let names = types.as_array().cloned().unwrap_or_else(|| vec![types.clone()]);
        if !names.iter().any(|name| is_of(value, name.as_str().unwrap_or_default())) {
            return Err(format!("{at}: {value} is not of type {types}"));
        }
    }
    check_members(schema, value, at)?;
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        if let Some(items) = words.get("items") {
            check(items, item, &format!("{at}[{index}]"))?;
        }
    }
    Ok(())
}

fn check_members(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Some(members) = value.as_object() else { return Ok(()) };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            return Err(format!("{at}: there is no '{name}'"));
        }
    }
    for (name, member) in members {
        let own = schema.get("properties").and_then(|properties| properties.get(name));
        if let Some(of_member) = own.or_else(|| schema.get("additionalProperties")) {
            check(of_member, member, &format!("{at}.{name}"))?;
        }
    }
    Ok(())
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}
