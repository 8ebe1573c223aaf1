//! What becomes of the rows: the enum of tracepoints, and how the fields of each are given and taken.
//!
//! Must not know: which rows there are.

/// Declares the tracepoints; see the rows for the form of one.
macro_rules! tracepoints {
    ($(
        $(#[$doc:meta])*
        $kind:ident $(($body:ident))? = $system:literal $name:literal $origin:ident $rate:ident {
            $($field:ident: $form:ident $label:literal $column:ident $(recorded $recorded:literal)?,)*
        }
    )*) => {
        /// A tracepoint that has a type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Tracepoint {
            $($(#[$doc])* $kind,)*
        }

        /// The place of each field in its row.
        #[allow(non_camel_case_types)]
        mod position {
            $(pub(super) enum $kind { $($field,)* })*
        }

        impl Tracepoint {
            /// All of them, in the order of the list.
            pub const ALL: &[Tracepoint] = &[$(Tracepoint::$kind,)*];

            /// How many there are.
            pub const COUNT: usize = Tracepoint::ALL.len();

            /// Its name, as kernels have it.
            pub const fn name(self) -> &'static str {
                match self { $(Tracepoint::$kind => $name,)* }
            }

            /// Its subsystem.
            pub const fn system(self) -> &'static str {
                match self { $(Tracepoint::$kind => $system,)* }
            }

            /// That a trace has none: the reason why something cannot be answered.
            pub const fn absent(self) -> &'static str {
                match self { $(Tracepoint::$kind => concat!($name, " is not in the trace"),)* }
            }

            /// Its fields.
            pub const fn fields(self) -> &'static [TracepointField] {
                match self {
                    $(Tracepoint::$kind => const {
                        &[$(TracepointField {
                            name: recorded!($field $($recorded)?),
                            label: $label,
                            form: FieldForm::$form,
                            column: FieldColumn::$column,
                        },)*]
                    })*
                }
            }

            const fn origin(self) -> TracepointOrigin {
                match self { $(Tracepoint::$kind => origin!($origin),)* }
            }

            /// The tracepoint called `name`.
            #[inline]
            #[allow(non_upper_case_globals)]
            pub fn by_name(name: &[u8]) -> Option<Tracepoint> {
                $(const $kind: &[u8] = $name.as_bytes();)*
                Some(match name {
                    $($kind => Tracepoint::$kind,)*
                    _ => return None,
                })
            }

            /// Reads its fields from `source` and hands the event to `take`. Handing on where the frequent events are read
            /// spares the copies that returning would take.
            #[inline(always)]
            pub fn read<'t, S: FieldSource<'t>, T>(
                self,
                source: S,
                take: impl FnOnce(EventKind<'t>) -> T,
            ) -> Option<T> {
                match self {
                    $(Tracepoint::$kind if is_often!($rate) => {
                        #[allow(unused_mut)]
                        let mut source = source;
                        read_fields!(source $kind; $($field: $form,)*);
                        Some(take(kind!($kind $(($body))? { $($field,)* })))
                    })*
                    _ => Some(take(self.read_seldom(source)?)),
                }
            }

            #[inline(never)]
            fn read_seldom<'t, S: FieldSource<'t>>(self, source: S) -> Option<EventKind<'t>> {
                match self {
                    $(Tracepoint::$kind if !is_often!($rate) => {
                        #[allow(unused_mut)]
                        let mut source = source;
                        read_fields!(source $kind; $($field: $form,)*);
                        Some(kind!($kind $(($body))? { $($field,)* }))
                    })*
                    _ => None,
                }
            }
        }

        impl<'t> EventKind<'t> {
            /// The tracepoint that it is of; `None` for probes, text, lost events, and tracepoints without a type.
            #[inline]
            pub const fn tracepoint(&self) -> Option<Tracepoint> {
                match self {
                    $(EventKind::$kind { .. } => Some(Tracepoint::$kind),)*
                    _ => None,
                }
            }

            /// Gives its fields to `sink`, if it is of a tracepoint that has a type.
            #[inline(always)]
            pub fn give_fields(&self, sink: &mut impl FieldSink<'t>) {
                match *self {
                    $(kind!($kind $(($body))? { $($field,)* }) => {
                        $(sink.field(field!($kind $field), TracepointType::value($field));)*
                    })*
                    _ => {}
                }
            }
        }
    };
}

/// A field's name in a record: its own, unless it has another there.
macro_rules! recorded {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $recorded:literal) => {
        $recorded
    };
}

macro_rules! origin {
    (mainline) => {
        TracepointOrigin::Mainline
    };
    (patched) => {
        TracepointOrigin::Patched
    };
    (own) => {
        TracepointOrigin::Own
    };
}

macro_rules! is_often {
    (often) => {
        true
    };
    (seldom) => {
        false
    };
}

/// An event of a kind, whose fields are its own or those of a struct.
macro_rules! kind {
    ($kind:ident ($body:ident) $fields:tt) => {
        EventKind::$kind($body $fields)
    };
    ($kind:ident $fields:tt) => {
        EventKind::$kind $fields
    };
}

/// The description of a tracepoint's field.
macro_rules! field {
    ($kind:ident $field:ident) => {{
        const FIELD: &TracepointField = &Tracepoint::$kind.fields()[position::$kind::$field as usize];
        FIELD
    }};
}

macro_rules! first_field {
    ($kind:ident $field:ident $($rest:ident)*) => {
        field!($kind $field)
    };
}

/// Binds each field to a variable of its name.
macro_rules! read_fields {
    ($source:ident $kind:ident;) => {
        $source.end(Tracepoint::$kind)?;
    };
    ($source:ident $kind:ident; $field:ident: Comm, $($rest:ident: $form:ident,)+) => {
        let ($field, ($($rest,)+)) = if S::ENDS_NAMES {
            let $field = $source.ended_comm(field!($kind $field))?;
            read_fields!($source $kind; $($rest: $form,)+);
            ($field, ($($rest,)+))
        } else {
            $source.comm(field!($kind $field), first_field!($kind $($rest)+), |source| {
                #[allow(unused_mut)]
                let mut source = source;
                read_fields!(source $kind; $($rest: $form,)+);
                Some(($($rest,)+))
            })?
        };
    };
    ($source:ident $kind:ident; $field:ident: $own_form:ident, $($rest:ident: $form:ident,)*) => {
        let $field = TracepointType::read(&mut $source, field!($kind $field))?;
        read_fields!($source $kind; $($rest: $form,)*);
    };
}
