//! Times that vary: how a file says them, and how they are drawn.
//!
//! Draws use additions, multiplications and divisions alone, so that they are equal on every machine.
//!
//! Must not know: what takes so long.

use fairlab_event::Ns;

use crate::rng::RandomStream;
use crate::workload::mix::place::time;

/// What a time in a file may be.
pub(super) const FORMS: &str =
    "'30us', 'exp 30us', 'uniform 10us..50us', 'normal 30us±5us' or 'pareto 30us 2.5'";

/// The longest that is drawn.
const LONGEST: f64 = 1e12;

/// A time, or how it is distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum DurationSpec {
    /// Always that long.
    Fixed(Ns),
    /// Exponential, with this mean.
    Exp(Ns),
    /// Even from the first to the last.
    Uniform(Ns, Ns),
    /// Normal, with this mean and standard deviation; never below zero, and at most six deviations off.
    Normal(Ns, Ns),
    /// Pareto: at least so long, with this shape; at most 1000 s.
    Pareto(Ns, f64),
}

impl DurationSpec {
    /// Reads a time at the beginning of `words`. Returns it with the words behind it.
    ///
    /// # Errors
    /// There is none.
    pub fn parse<'w>(words: &'w [&'w str]) -> Result<(DurationSpec, &'w [&'w str]), String> {
        let Some((first, rest)) = words.split_first() else {
            return Err(format!("a time is missing: {FORMS}"));
        };
        let operand = || {
            let (word, rest) =
                rest.split_first().ok_or_else(|| format!("'{first}' lacks its time: {FORMS}"))?;
            Ok::<_, String>((*word, rest))
        };
        match *first {
            "fixed" => operand().and_then(|(word, rest)| Ok((DurationSpec::Fixed(time(word)?), rest))),
            "exp" => operand().and_then(|(word, rest)| Ok((DurationSpec::Exp(time(word)?), rest))),
            "uniform" => {
                let (word, rest) = operand()?;
                let (from, to) = word
                    .split_once("..")
                    .ok_or_else(|| format!("'{word}' is no range: 'uniform 10us..50us'"))?;
                let (from, to) = (time(from)?, time(to)?);
                if from > to {
                    return Err(format!("'{word}' ends before it begins"));
                }
                Ok((DurationSpec::Uniform(from, to), rest))
            }
            "normal" => {
                let (word, rest) = operand()?;
                let parts = word.split_once('±').or_else(|| word.split_once("+-"));
                let (mean, deviation) =
                    parts.ok_or_else(|| format!("'{word}' lacks its deviation: 'normal 30us±5us'"))?;
                Ok((DurationSpec::Normal(time(mean)?, time(deviation)?), rest))
            }
            "pareto" => {
                let (word, rest) = operand()?;
                let (shape, rest) = rest
                    .split_first()
                    .ok_or_else(|| format!("'pareto {word}' lacks its shape: 'pareto {word} 2.5'"))?;
                let number = shape.parse::<f64>().ok().filter(|number| (0.1..=100.0).contains(number));
                let shape =
                    number.ok_or_else(|| format!("'{shape}' is no shape: a number from 0.1 to 100"))?;
                Ok((DurationSpec::Pareto(time(word)?, shape), rest))
            }
            word => Ok((
                DurationSpec::Fixed(time(word).map_err(|problem| format!("{problem}; or {FORMS}"))?),
                rest,
            )),
        }
    }

    /// Draws one.
    pub fn draw(self, random: &mut RandomStream) -> Ns {
        let nanoseconds = match self {
            DurationSpec::Fixed(time) => return time,
            DurationSpec::Uniform(from, to) => return Ns(from.0 + random.below(to.0 - from.0 + 1)),
            DurationSpec::Exp(mean) => -logarithm(part(random)) * mean.0 as f64,
            DurationSpec::Normal(mean, deviation) => {
                let sum: f64 = (0..12).map(|_| part(random)).sum();
                mean.0 as f64 + (sum - 6.0) * deviation.0 as f64
            }
            DurationSpec::Pareto(least, shape) => {
                least.0 as f64 * exponential(-logarithm(part(random)) / shape)
            }
        };
        Ns(nanoseconds.clamp(0.0, LONGEST) as u64)
    }

    /// Whether it can be longer than nothing.
    pub fn takes_time(self) -> bool {
        !matches!(
            self,
            DurationSpec::Fixed(Ns::ZERO) | DurationSpec::Uniform(_, Ns::ZERO) | DurationSpec::Exp(Ns::ZERO)
        )
    }
}

/// A number above 0, up to 1; each is equally likely.
pub(super) fn part(random: &mut RandomStream) -> f64 {
    ((random.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

/// The natural logarithm of a number from 2⁻⁵³ to 1.
fn logarithm(number: f64) -> f64 {
    let (mut mantissa, mut halvings) = (number, 0.0);
    while mantissa < 0.5 {
        mantissa *= 2.0;
        halvings += 1.0;
    }
    // ln m = 2 artanh((m − 1) / (m + 1)), of which the series converges fast for m from 0.5 to 1.
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let (mut power, mut sum) = (ratio, 0.0);
    for odd in (1..=33).step_by(2) {
        sum += power / f64::from(odd);
        power *= square;
    }
    2.0 * sum - halvings * std::f64::consts::LN_2
}

/// e to the power of a number from 0 on.
fn exponential(power: f64) -> f64 {
    let mut doublings = 0;
    let mut rest = power.min(700.0);
    while rest > 0.5 {
        rest /= 2.0;
        doublings += 1;
    }
    let (mut term, mut sum) = (1.0, 1.0);
    for order in 1..=16 {
        term *= rest / f64::from(order);
        sum += term;
    }
    (0..doublings).fold(sum, |value, _| value * value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<DurationSpec, String> {
        let words = text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>();
        DurationSpec::parse(&words).map(|(duration, _)| duration)
    }

    /// Mean and spread of many draws, in us, and the least.
    fn drawn(text: &str) -> (f64, f64, f64) {
        let mut random = RandomStream::new(1, "draws");
        let duration = parse(text).expect(text);
        let draws = (0..40_000).map(|_| duration.draw(&mut random).0 as f64 / 1e3).collect::<Vec<_>>();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let spread = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        (mean, spread.sqrt(), draws.iter().copied().fold(f64::MAX, f64::min))
    }

    #[test]
    fn draws_have_the_mean_and_the_spread_that_their_names_mean() {
        let near = |value: f64, wanted: f64| (value - wanted).abs() < wanted * 0.03;
        assert_eq!(drawn("30us").1, 0.0);
        let (mean, spread, least) = drawn("exp 30us");
        assert!(near(mean, 30.0) && near(spread, 30.0) && least < 0.1, "{mean} {spread} {least}");
        let (mean, spread, least) = drawn("uniform 10us..50us");
        assert!(near(mean, 30.0) && near(spread, 40.0 / 12_f64.sqrt()) && least < 10.1, "{mean} {spread}");
        let (mean, spread, _) = drawn("normal 30us±5us");
        assert!(near(mean, 30.0) && near(spread, 5.0), "{mean} {spread}");
        // The mean of a Pareto distribution is its least value times a / (a − 1).
        let (mean, _, least) = drawn("pareto 30us 3");
        assert!(near(mean, 45.0) && (30.0..30.1).contains(&least), "{mean} {least}");
    }

    #[test]
    fn logarithm_and_exponential_are_those_of_the_library() {
        for number in [1.0, 0.999, 0.5, 0.3, 1e-3, 1e-15] {
            assert!((logarithm(number) - f64::ln(number)).abs() < 1e-12, "{number}");
        }
        for power in [0.0, 0.1, 1.0, 10.0, 36.7] {
            let (ours, theirs) = (exponential(power), f64::exp(power));
            assert!((ours / theirs - 1.0).abs() < 1e-10, "{power}: {ours} {theirs}");
        }
    }
}
