//! Many metrics at once: the significance that each one keeps.
//!
//! Facts: Benjamini and Hochberg (1995). Must not know: what the metrics are.

/// Of the differences that are called real, at most this share is not, in the long run.
pub const FALSE_DISCOVERY_RATE: f64 = 0.05;

/// The probability of each, adjusted for how many there are: a difference is real at a false discovery rate where its
/// adjusted value is no greater. Those that are `None` are no part of the family.
pub fn adjusted(probabilities: &[Option<f64>]) -> Vec<Option<f64>> {
    let known = probabilities.iter().enumerate().filter_map(|(index, p)| Some((index, (*p)?)));
    let mut ranked = known.collect::<Vec<_>>();
    ranked.sort_by(|one, other| one.1.total_cmp(&other.1));
    let count = ranked.len();
    let mut adjusted = vec![None; probabilities.len()];
    let mut least = 1.0_f64;
    for (rank, &(index, p)) in ranked.iter().enumerate().rev() {
        least = least.min(p * count as f64 / (rank + 1) as f64);
        adjusted[index] = Some(least);
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the paper: 15 endpoints of a trial; four stand at 5 %.
    #[test]
    fn the_example_of_the_paper() {
        let published = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
            0.6528, 0.7590, 1.0000,
        ];
        let family = published.map(Some);
        let real = adjusted(&family).into_iter().flatten().filter(|&q| q <= FALSE_DISCOVERY_RATE).count();
        assert_eq!(real, 4);
    }

    #[test]
    fn one_metric_is_as_it_was_and_gaps_stay() {
        assert_eq!(adjusted(&[Some(0.04)]), [Some(0.04)]);
        assert_eq!(adjusted(&[None, Some(0.02), None, Some(0.04)]), [None, Some(0.04), None, Some(0.04)]);
        assert_eq!(adjusted(&[]), []);
    }
}
