//! What a probe fetches, written as C and resolved by the kernel's own types: `cpu=cfs_rq->rq->cpu` becomes
//! `cpu=+2672(+304($arg1)):s32` on a kernel with these offsets.
//!
//! The forms:
//!
//! * `name=parameter->member.inner->member`;
//! * `(struct)parameter->member`, if the parameter has another type;
//! * `parameter<struct.member>->other`: the structure that holds what the parameter points to;
//! * `retval`: what a function returned;
//! * `:type` at the end, in place of the type's own;
//! * alternatives between `|`: the first that this kernel has is taken.
//!
//! An expression that begins with `+`, `$`, `@` or `%` is passed on as it is.
//!
//! Must not know: what is probed.

use crate::btf::{BtfScalar, TypeId, Types};

/// A function, as far as fetching needs to know it.
#[derive(Debug)]
pub struct Function<'t, 'a> {
    types: &'t Types<'a>,
    /// Name, where it is found, and type.
    values: Vec<(String, String, TypeId)>,
}

/// An address, and what lies there.
struct MemberAddress {
    address: String,
    of: TypeId,
}

impl<'t, 'a> Function<'t, 'a> {
    /// A function by the kernel's description; where it is not described, by `declared`: names of parameters, each after
    /// the name of the structure that it points to (`cfs_rq *cfs_rq`).
    pub fn new(types: &'t Types<'a>, name: &str, declared: &[&str]) -> Function<'t, 'a> {
        let register = |index: usize| format!("$arg{}", index + 1);
        let mut values = Vec::new();
        if let Some((parameters, returned)) = types.function(name) {
            let known = parameters.iter().enumerate();
            values.extend(known.map(|(index, (name, of))| ((*name).to_string(), register(index), *of)));
            values.push(("retval".to_string(), "$retval".to_string(), returned));
        } else {
            for (index, parameter) in declared.iter().enumerate() {
                let (of, name) = parameter.split_once(" *").unwrap_or(("", parameter));
                // Without a type only a cast or a type at the end helps.
                let of = types.structure(of).unwrap_or(0);
                values.push((name.to_string(), register(index), of));
            }
            values.push(("retval".to_string(), "$retval".to_string(), 0));
        }
        Function { types, values }
    }

    /// One field of a probe; `None` if this kernel has nothing of that name.
    pub fn field(&self, field: &str) -> Option<String> {
        let (name, alternatives) = field.split_once('=')?;
        if alternatives.starts_with(['+', '$', '@', '%']) {
            return Some(field.to_string());
        }
        let (alternatives, wanted) = match alternatives.rsplit_once(':') {
            Some((alternatives, wanted)) => (alternatives, Some(wanted)),
            None => (alternatives, None),
        };
        let (value, of) = alternatives.split('|').find_map(|expression| self.value(expression))?;
        let form = match wanted {
            Some(wanted) => wanted.to_string(),
            None => form(self.types.scalar(of)?),
        };
        Some(format!("{name}={value}:{form}"))
    }

    /// What is fetched, and its type.
    fn value(&self, expression: &str) -> Option<(String, TypeId)> {
        let mut steps = expression.split("->");
        let (mut at, is_declared) = self.first(steps.next()?)?;
        let mut value = None;
        for path in steps {
            if let Some((address, pointer)) = value.take() {
                at = MemberAddress { address, of: self.pointed(pointer)? };
            }
            let member = self.types.member(at.of, path)?;
            value = Some((fetch(member.offset.cast_signed(), &at.address), member.of));
        }
        // A parameter by itself.
        Some(value.unwrap_or((at.address, is_declared)))
    }

    /// What an expression begins with: where its structure lies, and the type of the parameter itself.
    fn first(&self, text: &str) -> Option<(MemberAddress, TypeId)> {
        let (cast, text) = match text.strip_prefix('(').and_then(|text| text.split_once(')')) {
            Some((structure, text)) => (Some(self.types.structure(structure)?), text),
            None => (None, text),
        };
        let (name, holder) = match text.strip_suffix('>').and_then(|text| text.split_once('<')) {
            Some((name, holder)) => (name, Some(holder)),
            None => (text, None),
        };
        let (_, address, own) = self.values.iter().find(|(known, ..)| known == name)?;
        if let Some(holder) = holder {
            let (structure, path) = holder.split_once('.')?;
            let of = self.types.structure(structure)?;
            let inner = self.types.member(of, path)?.offset;
            let address = if inner == 0 { address.clone() } else { format!("{address}-{inner}") };
            return Some((MemberAddress { address, of }, *own));
        }
        let of = cast.or_else(|| self.pointed(*own)).unwrap_or(*own);
        Some((MemberAddress { address: address.clone(), of }, *own))
    }

    fn pointed(&self, of: TypeId) -> Option<TypeId> {
        match self.types.scalar(of)? {
            BtfScalar::Pointer(of) => Some(of),
            _ => None,
        }
    }
}

/// Fetches at an address, which may be one less an offset.
fn fetch(offset: i64, address: &str) -> String {
    let (address, offset) = match address
        .rsplit_once('-')
        .and_then(|(address, inner)| Some((address, inner.parse::<i64>().ok()?)))
    {
        Some((address, inner)) => (address, offset - inner),
        None => (address, offset),
    };
    format!("{offset:+}({address})")
}

/// The type's name for a probe.
fn form(scalar: BtfScalar) -> String {
    match scalar {
        BtfScalar::Integer { bits, signed: true } => format!("s{bits}"),
        BtfScalar::Integer { bits, signed: false } => format!("u{bits}"),
        BtfScalar::Pointer(_) | BtfScalar::Words => "x64".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::made::Made;

    #[test]
    fn what_c_would_say_becomes_what_a_probe_understands() {
        let mut made = Made::new();
        let (int, long) = (made.integer(4, true), made.integer(8, false));
        let rq = made.structure("rq", &[("cpu", int, 40)]);
        let rq = made.pointer(rq);
        let entity = made.structure("sched_entity", &[("vruntime", long, 16), ("load", long, 0)]);
        made.structure("task_struct", &[("pid", int, 8), ("se", entity, 100)]);
        let queue = made.structure("cfs_rq", &[("nr_running", int, 4), ("rq", rq, 64)]);
        let (queue, entity) = (made.pointer(queue), made.pointer(entity));
        made.function("place_entity", &[("cfs_rq", queue), ("se", entity), ("flags", int)], entity);
        let bytes = made.finish();
        let types = Types::parse(&bytes).expect("a description");
        let known = Function::new(&types, "place_entity", &[]);
        for (field, expected) in [
            ("cpu=cfs_rq->rq->cpu", Some("cpu=+40(+64($arg1)):s32")),
            ("se=se:x64", Some("se=$arg2:x64")),
            ("vr=se->vruntime:s64", Some("vr=+16($arg2):s64")),
            ("pid=se<task_struct.se>->pid", Some("pid=-92($arg2):s32")),
            ("nr=cfs_rq->nr_queued|cfs_rq->nr_running:u32", Some("nr=+4($arg1):u32")),
            ("fl=flags|initial:x32", Some("fl=$arg3:x32")),
            ("pid=(sched_entity)retval<task_struct.se>->pid", Some("pid=-92($retval):s32")),
            ("cpu=(rq)flags->cpu", Some("cpu=+40($arg3):s32")),
            ("by=+0($stack):symbol", Some("by=+0($stack):symbol")),
            ("by=%lr:symbol", Some("by=%lr:symbol")),
            ("none=se->deadline", None),
            ("none=other->vruntime", None),
        ] {
            assert_eq!(known.field(field).as_deref(), expected, "{field}");
        }
        // What the kernel does not describe is taken as it was declared.
        let declared = Function::new(&types, "inlined", &["cfs_rq *queue", "flags"]);
        assert_eq!(declared.field("nr=queue->nr_running").as_deref(), Some("nr=+4($arg1):s32"));
        assert_eq!(declared.field("fl=flags:x32").as_deref(), Some("fl=$arg2:x32"));
    }
}
