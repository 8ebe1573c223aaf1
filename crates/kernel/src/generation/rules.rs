//! The one form in which a room of the scheduler declares its rules: each decision point once, with its variants.
//!
//! Must not know: which decision points there are, and which commit brought what.

/// Declares a choice: an enumeration whose variants have a clause each, for listings and diffs.
///
/// `said` after a clause is what the log says of a commit that brings the variant, where the form of its rule does not fit.
macro_rules! choice {
    ($(#[$about:meta])* $name:ident {
        $($(#[$doc:meta])* $variant:ident = $clause:literal $(said $said:literal)?,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $(#[doc = $clause] $(#[doc = ""] #[$doc])* $variant,)* }

        impl $name {
            /// The variant in one clause.
            pub const fn describe(self) -> &'static str {
                match self { $($name::$variant => $clause,)* }
            }

            /// A sentence of its own for the log.
            pub(crate) const fn said(self) -> Option<&'static str> {
                match self { $($name::$variant => [$(Some($said),)? None][0],)* }
            }
        }
    };
}

pub(crate) use choice;

/// The type of a decision point: a choice of its own with the effect that puts a variant in force, or another name for a
/// choice that several points share.
macro_rules! point {
    ($effect:ident $(#[$about:meta])* $rule:ident { $($variants:tt)* }) => {
        $crate::generation::rules::choice! { $(#[$about])* $rule { $($variants)* } }

        impl $rule {
            /// What a commit does that puts this variant in force.
            pub const fn effect(self) -> $effect {
                $effect::$rule(self)
            }
        }
    };
    ($effect:ident $(#[$about:meta])* $rule:ident ($choice:ident)) => {
        $(#[$about])*
        pub type $rule = $choice;
    };
}

pub(crate) use point;

/// Declares the rules of a room: a structure with one variant for each decision point, which begins with those of v4.18 without the log's, and
/// the effects by which commits replace one.
///
/// `Rules, Effect, "form" { field: Rule = Base, "decision point" { variants } … }`. In a form `{point}` and `{rule}`
/// stand for the decision point and the variant's clause; it is how the log puts an effect. A point may have its own form after its
/// name. `field: Rule(Choice) = Base, "decision point"` shares a choice that stands elsewhere.
macro_rules! rules {
    (
        $(#[$doc:meta])* $rules:ident, $effect:ident, $form:literal {
            $(
                $(#[$about:meta])*
                $field:ident: $rule:ident $(($choice:ident))? = $base:ident, $point:literal $(, $own_form:literal)?
                $({ $($variants:tt)* })?
            )*
        }
    ) => {
        $($crate::generation::rules::point! {
            $effect $(#[$about])* $rule $(($choice))? $({ $($variants)* })?
        })*

        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $rules {
            $(#[doc = concat!("See [`", stringify!($rule), "`].")] pub $field: $rule,)*
        }

        impl $rules {
            /// What the log starts from.
            pub const BASE: $rules = $rules { $($field: $rule::$base,)* };

            /// Each decision point with the rule that stands there, for listing and for diffs.
            pub fn describe(&self) -> Vec<(&'static str, &'static str)> {
                vec![$(($point, self.$field.describe()),)*]
            }
        }

        #[doc = concat!("One rule of [`", stringify!($rules), "`] that a commit replaces.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $effect {
            $(#[doc = concat!("Another [`", stringify!($rule), "`].")] $rule($rule),)*
        }

        impl $effect {
            /// Replaces the rule in `rules`.
            pub const fn apply(self, rules: &mut $rules) {
                match self { $($effect::$rule(rule) => rules.$field = rule,)* }
            }

            /// What it does, in a sentence for the log.
            pub fn describe(self) -> String {
                let (form, point, rule, said) = match self {
                    $($effect::$rule(rule) => {
                        ([$($own_form,)? $form][0], $point, rule.describe(), rule.said())
                    })*
                };
                said.map_or_else(|| form.replace("{point}", point).replace("{rule}", rule), str::to_string)
            }
        }
    };
}

pub(crate) use rules;
