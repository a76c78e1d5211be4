//! Words of the command line that clap would take for options: `head -5`, and record numbers such as `-3:`.

use super::Cli;
use clap::{ArgAction, Command, CommandFactory};
use std::ffi::OsString;

/// Precedes a record number that starts with `-`, so that it is no option. No argument of a process contains this character.
const MARK: char = '\0';

/// Replaces `-5` by `-n 5` in the arguments of `head` and `tail`, and marks the negative record numbers of `get`.
pub(crate) fn prepare(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let cli = Cli::command();
    let mut args = args.into_iter();
    // The program name.
    let mut all: Vec<OsString> = args.next().into_iter().collect();
    let mut verb: Option<&Command> = None;
    // The word before is an option that takes a value.
    let mut value = false;
    for arg in args.by_ref() {
        let text = arg.to_str().unwrap_or_default();
        if text == "--" && !value {
            all.push(arg);
            break;
        }
        let digits = text.strip_prefix('-').unwrap_or_default();
        let negative = digits.starts_with(|c: char| c.is_ascii_digit());
        match verb.map(Command::get_name) {
            _ if value => value = false,
            Some("head" | "tail") if negative && digits.bytes().all(|c| c.is_ascii_digit()) => {
                all.extend(["-n".into(), digits.into()]);
                continue;
            }
            Some("get") if negative => {
                all.push(format!("{MARK}{text}").into());
                continue;
            }
            None if !text.starts_with('-') => verb = cli.find_subcommand(text),
            _ => value = takes_value(text, &cli) || verb.is_some_and(|verb| takes_value(text, verb)),
        }
        all.push(arg);
    }
    all.extend(args);
    all
}

/// Returns true if the next word is the value of this one.
fn takes_value(word: &str, command: &Command) -> bool {
    let takes = |arg: &&clap::Arg| matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let options = || command.get_arguments().filter(takes);
    if let Some(long) = word.strip_prefix("--") {
        return options().any(|arg| arg.get_long() == Some(long));
    }
    let Some(shorts) = word.strip_prefix('-') else { return false };
    // In `-fjson` the value follows in the same word.
    let first = shorts.char_indices().find(|&(_, c)| options().any(|arg| arg.get_short() == Some(c)));
    first.is_some_and(|(k, c)| k + c.len_utf8() == shorts.len())
}

/// Removes the mark of a negative record number.
pub(crate) fn unmarked(word: &OsString) -> OsString {
    match word.to_str().and_then(|text| text.strip_prefix(MARK)) {
        Some(number) => number.into(),
        None => word.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_counts_and_record_numbers_are_replaced() {
        let prepared = |line: &str| {
            let words = prepare(line.split(' ').map(OsString::from));
            words.iter().map(|word| word.to_str().unwrap().replace('\0', "^")).collect::<Vec<_>>().join(" ")
        };
        for (line, want) in [
            ("tfseek head -5 a", "tfseek head -n 5 a"),
            ("tfseek -q --color never tail a -12", "tfseek -q --color never tail a -n 12"),
            ("tfseek head -n -5 a", "tfseek head -n -5 a"),
            ("tfseek head -qn -5 a", "tfseek head -qn -5 a"),
            ("tfseek head -fjson -5 a", "tfseek head -fjson -n 5 a"),
            ("tfseek head -f json -5 a", "tfseek head -f json -n 5 a"),
            ("tfseek head -5x a", "tfseek head -5x a"),
            ("tfseek head -- -5", "tfseek head -- -5"),
            ("tfseek cat -5", "tfseek cat -5"),
            ("tfseek get a -1 -3: -q -2,4", "tfseek get a ^-1 ^-3: -q ^-2,4"),
            ("tfseek sample a --seed -5", "tfseek sample a --seed -5"),
            ("tfseek", "tfseek"),
        ] {
            assert_eq!(prepared(line), want);
        }
    }
}
