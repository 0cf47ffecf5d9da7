//! How deep a reply template may go: told from its tokens, before anything goes down into it.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::template::{TemplateProblem, problem};

/// How many operators, brackets and keywords one tag may have: each may put an expression into another one, and what reads,
/// compiles and drops expressions goes down as deep as they go.
const MOST_OPERATORS: usize = 100;

/// How many blocks may be in each other.
const DEEPEST_BLOCK: usize = 32;

/// How many `elif` a template may have, which are conditions in each other.
const MOST_BRANCHES: usize = 64;

/// Refuses what is nested too deep to be parsed. The engine's parser bounds parentheses and blocks itself, but neither
/// `not not not …` nor `a + a + a …`.
pub(super) fn check_depth(source: &str) -> Result<(), TemplateProblem> {
    let mut nesting = Nesting::default();
    // What is no token is told by the parser, with the words for it.
    for (token, place) in tokenize(source, false, SyntaxConfig::default()).map_while(Result::ok) {
        nesting.pass(&token);
        if nesting.operators > MOST_OPERATORS {
            return Err(problem(format!("has more than {MOST_OPERATORS} operators and brackets in one tag"), place));
        }
        if nesting.branches > MOST_BRANCHES {
            return Err(problem(format!("has more than {MOST_BRANCHES} `elif`"), place));
        }
        if nesting.blocks > DEEPEST_BLOCK {
            return Err(problem(format!("has more than {DEEPEST_BLOCK} blocks in each other"), place));
        }
    }
    Ok(())
}

/// How deep a template's tokens go.
#[derive(Default)]
struct Nesting<'s> {
    /// Of the tag that is being read.
    operators: usize,
    branches: usize,
    blocks: usize,
    /// The first word of a block's tag.
    tag: Option<&'s str>,
    /// Whether the tag has a `=`.
    assigns: bool,
}

impl<'s> Nesting<'s> {
    fn pass(&mut self, token: &Token<'s>) {
        match token {
            Token::VariableStart | Token::BlockStart => (self.operators, self.tag, self.assigns) = (0, None, false),
            Token::BlockEnd => match self.tag {
                Some("if" | "for" | "with" | "filter" | "autoescape") => self.blocks += 1,
                Some("set") if !self.assigns => self.blocks += 1,
                Some(tag) if tag.starts_with("end") => self.blocks = self.blocks.saturating_sub(1),
                Some("elif") => self.branches += 1,
                _ => {}
            },
            Token::Ident(tag) if self.tag.is_none() => self.tag = Some(tag),
            Token::Ident("not" | "and" | "or" | "if" | "else" | "is" | "in") => self.operators += 1,
            Token::Assign => self.assigns = true,
            Token::TemplateData(_)
            | Token::VariableEnd
            | Token::Ident(_)
            | Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_)
            | Token::Comma
            | Token::Colon => {}
            _ => self.operators += 1,
        }
    }
}
