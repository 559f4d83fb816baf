//! The closest known word, for "did you mean".

/// The known word that is closest to what was written, in either case; `None` when none is close enough to be meant.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = written.to_lowercase();
    let allowed = (wanted.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|word| (distance(&wanted, &word.to_lowercase()), word))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// How many characters have to be inserted, dropped or replaced to make one word the other.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, left) in left.chars().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (at, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *other);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        let known = ["delimiter", "decimal", "row_width"];
        for (written, want) in [
            ("delimitr", Some("delimiter")),
            ("Decimal", Some("decimal")),
            ("row-width", Some("row_width")),
            ("colour", None),
        ] {
            assert_eq!(nearest(written, known), want, "{written}");
        }
    }
}
