//! Names in messages: how they are shown, and which known one may have been meant.

/// A name from a rule file, fit to stand in a message: control characters escaped, overlong names cut.
pub(in crate::rules) fn quoted(name: &str) -> String {
    const LONGEST: usize = 80;
    let shown: String = name.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    let more = if name.chars().nth(LONGEST).is_some() { "..." } else { "" };
    format!("`{shown}{more}`")
}

/// "did you mean `x`?", when one of the known names is near.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    if name.len() > 80 {
        return None;
    }
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .filter(|candidate| candidate.len() <= 80)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}

/// How many letters must be changed, left out, put in or swapped with their neighbour to make `b` from `a`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_previous: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut current = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let mut cost = (previous[j] + usize::from(from != to)).min(previous[j + 1] + 1).min(current[j] + 1);
            if i > 0 && j > 0 && *from == b[j - 1] && a[i - 1] == *to {
                cost = cost.min(before_previous[j - 1] + 1);
            }
            current.push(cost);
        }
        before_previous = std::mem::replace(&mut previous, current);
    }
    previous[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested() {
        let known = ["default_shop", "name", "api_keys"];
        assert_eq!(did_you_mean("defalt_shop", known).as_deref(), Some("did you mean `default_shop`?"));
        assert_eq!(did_you_mean("nmae", known).as_deref(), Some("did you mean `name`?"));
        assert_eq!(did_you_mean("colour", known), None);
        assert_eq!(distance("abc", "acb"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
