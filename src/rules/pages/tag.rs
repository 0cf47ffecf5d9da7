//! Language tags (BCP 47), and the choice of a language for a browser's `Accept-Language` (RFC 9110 section 12.5.4, RFC
//! 4647 section 3.4).

/// How much of an `Accept-Language` is read, in bytes and in ranges: more than any browser sends.
const MOST_BYTES: usize = 1 << 10;
const MOST_RANGES: usize = 20;

/// Returns a tag in its usual case (`pt-BR`, `zh-Hant`); `None` for an invalid tag.
pub(in crate::rules) fn canonical(tag: &str) -> Option<String> {
    let subtag =
        |subtag: &str| matches!(subtag.len(), 1..=8) && subtag.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let primary = tag.split('-').next().unwrap_or_default();
    let is_tag = matches!(primary.len(), 2 | 3) && primary.bytes().all(|byte| byte.is_ascii_alphabetic());
    if !is_tag || tag.len() > 64 || !tag.split('-').all(subtag) {
        return None;
    }
    let mut written = String::new();
    // After a subtag of one letter, the rest belongs to an extension.
    let mut extended = false;
    for (at, subtag) in tag.split('-').enumerate() {
        let lower = subtag.to_ascii_lowercase();
        if at > 0 {
            written.push('-');
        }
        match lower.len() {
            2 if at > 0 && !extended => written.push_str(&lower.to_ascii_uppercase()),
            4 if at > 0 && !extended && lower.bytes().all(|byte| byte.is_ascii_alphabetic()) => {
                written.push_str(&lower[..1].to_ascii_uppercase());
                written.push_str(&lower[1..]);
            }
            _ => written.push_str(&lower),
        }
        extended |= lower.len() == 1;
    }
    Some(written)
}

/// Returns a tag and its prefixes, longest first. A subtag of one letter is removed together with the one after it.
pub(in crate::rules) fn shortened(tag: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(tag), |tag| {
        let (shorter, _) = tag.rsplit_once('-')?;
        match shorter.rsplit_once('-') {
            Some((before, last)) if last.len() == 1 => Some(before),
            _ => Some(shorter),
        }
    })
}

/// A language range of an `Accept-Language`.
#[derive(Debug)]
struct Range<'a> {
    /// A tag, or `*`.
    tag: &'a str,
    /// The weight in thousandths.
    weight: u16,
}

impl<'a> Range<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(|part| part.trim_matches([' ', '\t']));
        let tag = parts.next().filter(|tag| *tag == "*" || is_range(tag))?;
        let weight = match parts.next() {
            None => 1000,
            Some(weight) => parse_weight(weight)?,
        };
        parts.next().is_none().then_some(Self { tag, weight })
    }
}

fn is_range(tag: &str) -> bool {
    let part = |part: &str, letter: fn(&u8) -> bool| matches!(part.len(), 1..=8) && part.as_bytes().iter().all(letter);
    let (primary, rest) = tag.split_once('-').map_or((tag, None), |(primary, rest)| (primary, Some(rest)));
    part(primary, u8::is_ascii_alphabetic)
        && rest.is_none_or(|rest| rest.split('-').all(|subtag| part(subtag, u8::is_ascii_alphanumeric)))
}

/// Parses a weight such as `q=0.7` into thousandths.
fn parse_weight(text: &str) -> Option<u16> {
    let number = text.strip_prefix("q=").or_else(|| text.strip_prefix("Q="))?;
    let (whole, rest) = number.split_once('.').unwrap_or((number, ""));
    if rest.len() > 3 || !rest.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths = format!("{rest:0<3}").parse().ok()?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1000),
        _ => None,
    }
}

/// Returns the ranges of an `Accept-Language`, as far as it is read. Invalid ones are skipped.
fn ranges(accept: &str) -> Vec<Range<'_>> {
    let read = if accept.len() > MOST_BYTES {
        // A range that is cut in the middle may look like another language.
        let head = &accept[..accept.floor_char_boundary(MOST_BYTES)];
        head.rsplit_once(',').map_or("", |(whole, _)| whole)
    } else {
        accept
    };
    let elements = read.split(',').filter(|element| !element.trim_matches([' ', '\t']).is_empty());
    elements.take(MOST_RANGES).filter_map(Range::read).collect()
}

/// Reports whether a tag matches a range or is more specific.
fn is_within(tag: &str, range: &str) -> bool {
    let head = tag.as_bytes().get(..range.len());
    let ends = matches!(tag.as_bytes().get(range.len()), None | Some(b'-'));
    ends && head.is_some_and(|head| head.eq_ignore_ascii_case(range.as_bytes()))
}

/// Returns the index in `tags` of the language for a browser with this `Accept-Language`; the first tag is the default.
/// For each range, in the order of weights, tries the language itself, then its prefixes, then any language with the
/// same primary subtag.
pub(super) fn chosen(accept: &str, tags: &[&str]) -> usize {
    let mut ranges = ranges(accept);
    // A stable sort: ranges of the same weight keep their order.
    ranges.sort_by_key(|range| std::cmp::Reverse(range.weight));
    let refused = |tag: &str| {
        let named = ranges.iter().filter(|range| range.tag != "*" && is_within(tag, range.tag));
        let nearest =
            named.max_by_key(|range| range.tag.len()).or_else(|| ranges.iter().find(|range| range.tag == "*"));
        nearest.is_some_and(|range| range.weight == 0)
    };
    let free: Vec<(usize, &str)> = tags.iter().copied().enumerate().filter(|(_, tag)| !refused(tag)).collect();
    let find = |fits: &dyn Fn(&str) -> bool| free.iter().find(|(_, tag)| fits(tag)).map(|(at, _)| *at);
    let best_match = |range: &Range<'_>| {
        if range.tag == "*" {
            return find(&|_| true);
        }
        let shorter = shortened(range.tag).find_map(|wanted| find(&|tag| tag.eq_ignore_ascii_case(wanted)));
        // The most specific prefix first.
        shorter.or_else(|| shortened(range.tag).find_map(|wanted| find(&|tag| is_within(tag, wanted))))
    };
    let first_match = ranges.iter().filter(|range| range.weight > 0).find_map(best_match);
    first_match.or_else(|| find(&|_| true)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TAGS: [&str; 7] = ["en", "ar", "de", "fr-CA", "pt-BR", "zh-Hans", "zh-Hant-TW"];

    #[test]
    fn tags_are_written_as_usual() {
        for (tag, written) in [
            ("en", "en"),
            ("PT-br", "pt-BR"),
            ("ZH-hANT-tw", "zh-Hant-TW"),
            ("es-419", "es-419"),
            ("sl-ROZAJ", "sl-rozaj"),
            ("de-CH-1901", "de-CH-1901"),
            ("en-x-US-Priv", "en-x-us-priv"),
            ("fil", "fil"),
        ] {
            assert_eq!(canonical(tag).as_deref(), Some(written), "{tag}");
        }
        for tag in ["", "e", "engl", "e1", "en-", "-en", "en--US", "en_US", "en.US", "en-abcdefghi", "én", "*", "x-en"]
        {
            assert_eq!(canonical(tag), None, "{tag}");
        }
        assert_eq!(canonical(&format!("en{}", "-abcdefgh".repeat(7))), None);
    }

    #[test]
    fn tags_get_shorter_from_their_ends() {
        let all = |tag| shortened(tag).collect::<Vec<_>>();
        assert_eq!(
            all("zh-Hant-CN-x-one-two"),
            ["zh-Hant-CN-x-one-two", "zh-Hant-CN-x-one", "zh-Hant-CN", "zh-Hant", "zh"]
        );
        assert_eq!(all("en"), ["en"]);
    }

    #[test]
    fn languages_are_chosen_by_accept_language() {
        let many = format!("{}, de", ["xx"; 19].join(","));
        let too_many = format!("{}, de", ["xx"; 20].join(","));
        let long = format!("{},de", " ".repeat(1021));
        let too_long = format!("{},de", " ".repeat(1022));
        for (accept, expected) in [
            ("", "en"),
            ("de", "de"),
            ("DE", "de"),
            ("xx", "en"),
            ("*", "en"),
            // The exact tag, then its prefixes, then tags with the same prefix.
            ("de-AT", "de"),
            ("de-Latn-AT-1901", "de"),
            ("de-x-one", "de"),
            ("pt", "pt-BR"),
            ("pt-PT", "pt-BR"),
            ("fr", "fr-CA"),
            ("zh-TW", "zh-Hans"),
            ("zh-hant-tw", "zh-Hant-TW"),
            ("zh-Hant-HK", "zh-Hant-TW"),
            ("dexx, d", "en"),
            // By weight, then by position.
            ("fr;q=0.5, de;q=0.8", "de"),
            ("xx, fr;q=0.001", "fr-CA"),
            ("de;q=0.5, ar;q=0.5", "de"),
            ("ar;q=0.5, de;q=0.5", "ar"),
            ("de;q=0.9, ar;q=1", "ar"),
            ("de;q=0.9, ar;q=1.000", "ar"),
            ("de ; q=0.1 ,\tar\t;\tQ=0.2", "ar"),
            ("de-AT, fr", "de"),
            ("*, de;q=0.5", "en"),
            ("*;q=0.5, de", "de"),
            // Refused languages.
            ("de;q=0", "en"),
            ("de;q=0, *", "en"),
            ("en;q=0", "ar"),
            ("en;q=0.000, *", "ar"),
            ("en-US, en;q=0, *;q=0.1", "ar"),
            ("*;q=0", "en"),
            ("*;q=0, de;q=0.1", "de"),
            ("*;q=0, de-AT", "en"),
            ("zh;q=0, zh-Hant-TW", "zh-Hant-TW"),
            ("zh, zh-Hans;q=0", "zh-Hant-TW"),
            // Invalid ranges are skipped.
            ("de;q=2, ar;q=0.1", "ar"),
            ("de;q=0.1234, ar;q=0.1", "ar"),
            ("de;q=1.001, ar;q=0.1", "ar"),
            ("de;q=, ar;q=0.1", "ar"),
            ("de;q=-1, ar;q=0.1", "ar"),
            ("de;q, ar;q=0.1", "ar"),
            ("de;x=1, ar;q=0.1", "ar"),
            ("de;q=1;q=1, ar;q=0.1", "ar"),
            ("de_AT, ar;q=0.1", "ar"),
            ("de-*, ar;q=0.1", "ar"),
            ("dé, ar;q=0.1", "ar"),
            (", ,de,,", "de"),
            (&many, "de"),
            (&too_many, "en"),
            (&long, "de"),
            (&too_long, "en"),
        ] {
            let shown = accept.get(..60).unwrap_or(accept);
            assert_eq!(TAGS[chosen(accept, &TAGS)], expected, "{shown:?}");
        }
    }

    proptest! {
        #[test]
        fn some_language_is_always_chosen(
            text in "\\PC{0,40}",
            parts in proptest::collection::vec(
                (proptest::sample::select(vec!["en", "de-AT", "zh-Hant", "*", "x", "fr-", "é"]), "[;, qQ=01.]{0,8}"),
                0..300,
            ),
        ) {
            let ranges: Vec<String> = parts.iter().map(|(tag, rest)| format!("{tag}{rest},")).collect();
            for accept in [text.as_str(), &ranges.concat()] {
                prop_assert!(chosen(accept, &TAGS) < TAGS.len());
                prop_assert_eq!(chosen(accept, &TAGS[..1]), 0);
            }
        }

        #[test]
        fn a_single_requested_language_is_chosen(at in 0..TAGS.len(), upper in any::<bool>(), weight in 1..=999_u16) {
            let tag = if upper { TAGS[at].to_uppercase() } else { TAGS[at].to_owned() };
            prop_assert_eq!(chosen(&format!("{tag};q=0.{weight:03}, xx;q=0.5"), &TAGS), at);
        }
    }
}
