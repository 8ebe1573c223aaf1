//! Constant integer expressions as they stand in a `print fmt`: `(((0x01 | 0x02) + 1) << 1) - 1`.
//!
//! Must not know: what the numbers mean.

/// Parentheses deeper than this are taken as garbage; kernels nest four or five.
const DEPTH_MAX: u32 = 32;

/// The value of the constant expression `text`; `None` when it is anything else. Arithmetic wraps at 64 bits.
pub(super) fn evaluate(text: &str) -> Option<u64> {
    let mut parser = PrintFmtParser { rest: text.trim_start().as_bytes(), depth: 0 };
    let value = parser.binary(0)?;
    parser.rest.is_empty().then_some(value)
}

struct PrintFmtParser<'t> {
    rest: &'t [u8],
    depth: u32,
}

/// Binary operators by how tightly they bind, C's order; two-character ones first where one begins another.
const OPERATORS: &[(&[u8], u32)] =
    &[(b"<<", 4), (b">>", 4), (b"|", 1), (b"^", 2), (b"&", 3), (b"+", 5), (b"-", 5), (b"*", 6)];

impl PrintFmtParser<'_> {
    /// Every operator that binds tighter than `floor`, left to right.
    fn binary(&mut self, floor: u32) -> Option<u64> {
        let mut left = self.unary()?;
        while let Some(&(operator, strength)) = OPERATORS.iter().find(|(sign, _)| self.rest.starts_with(sign))
        {
            if strength <= floor {
                break;
            }
            self.skip(operator.len());
            let right = self.binary(strength)?;
            left = match operator {
                b"|" => left | right,
                b"^" => left ^ right,
                b"&" => left & right,
                b"<<" => left.checked_shl(u32::try_from(right).ok()?)?,
                b">>" => left.checked_shr(u32::try_from(right).ok()?)?,
                b"+" => left.wrapping_add(right),
                b"-" => left.wrapping_sub(right),
                _ => left.wrapping_mul(right),
            };
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<u64> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let value = match self.rest.first()? {
            b'(' => {
                self.skip(1);
                let value = self.binary(0)?;
                self.rest.starts_with(b")").then(|| self.skip(1))?;
                value
            }
            b'~' => {
                self.skip(1);
                !self.unary()?
            }
            b'-' => {
                self.skip(1);
                self.unary()?.wrapping_neg()
            }
            _ => self.number()?,
        };
        self.depth -= 1;
        Some(value)
    }

    fn number(&mut self) -> Option<u64> {
        let length = self.rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let word = std::str::from_utf8(self.rest.get(..length)?).ok()?;
        let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
        let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16),
            None => digits.parse(),
        };
        self.skip(length);
        value.ok()
    }

    /// Drops `count` bytes and the blanks after them.
    fn skip(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default().trim_ascii_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_masks_of_prev_state_are_computed() {
        let report = "((((0x00000000 | 0x00000001 | 0x00000002 | 0x00000040) + 1) << 1) - 1)";
        assert_eq!(evaluate(report), Some(0x87));
        assert_eq!(evaluate("1024-1"), Some(1023));
        assert_eq!(evaluate(" 0x1UL "), Some(1));
        assert_eq!(evaluate("16 | 4 ^ 15 & 3 << 1 + 1"), Some(16 | (4 ^ (15 & (3 << (1 + 1))))));
        assert_eq!(evaluate("10 - 2 - 3"), Some(5));
        assert_eq!(evaluate("~0 & 0xff"), Some(0xff));
    }

    #[test]
    fn anything_else_is_no_constant() {
        for text in
            ["", "(", "1 +", "REC->prev_state", "1)", "0xzz", "1 << 64", "1 2", "18446744073709551616"]
        {
            assert_eq!(evaluate(text), None, "{text}");
        }
        assert_eq!(evaluate(&"(".repeat(100_000)), None);
        assert_eq!(evaluate(&"~".repeat(100_000)), None);
        assert_eq!(evaluate(&format!("{}1{}", "(".repeat(30), ")".repeat(30))), Some(1));
    }

    #[test]
    fn long_chains_do_not_nest() {
        assert_eq!(evaluate(&format!("0{}", "|1".repeat(100_000))), Some(1));
        // Each operator binds tighter than the one before; recursion is bounded by their number.
        assert_eq!(evaluate("1|8^3&1<<0+0*7"), Some(9));
    }
}
