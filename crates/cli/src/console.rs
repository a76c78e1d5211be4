//! The two output streams: data on standard output, messages on standard error.

use crate::args::GlobalArgs;
use crate::bytes::Size;
use crate::exit::{Failure, Outcome};
use anstyle::Style;
use clap::ColorChoice;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use tfseek::error::printable;
use tfseek::io::Output;

/// Standard output and standard error, with the user's options for both.
pub(crate) struct Console {
    out: BufWriter<Box<dyn Write>>,
    /// Standard output is a terminal, so it is flushed after each record.
    live: bool,
    color: bool,
    color_err: bool,
    /// The options of every verb.
    pub(crate) global: GlobalArgs,
    /// Messages about damaged records name `--damage skip`.
    can_skip: bool,
    /// The highest exit code so far.
    exit_code: u8,
}

/// The style of headings and keys.
pub(crate) const BOLD: Style = Style::new().bold();
/// The style of labels and units.
pub(crate) const DIM: Style = Style::new().dimmed();

impl Console {
    /// `can_skip` is true if messages about damaged records name `--damage skip`.
    pub(crate) fn new(global: GlobalArgs, can_skip: bool) -> Console {
        let live = io::stdout().is_terminal();
        Console {
            out: BufWriter::with_capacity(1 << 16, Box::new(io::stdout().lock())),
            live,
            color: has_color(global.color, live),
            color_err: has_color(global.color, io::stderr().is_terminal()),
            global,
            can_skip,
            exit_code: 0,
        }
    }

    /// Prints data to standard error from now on if an output of the run is standard output, such as
    /// `/dev/stdout`.
    pub(crate) fn leave_stdout_to(&mut self, output: &Path) {
        let key = |path: &Path| Output::key(path).ok();
        if key(output).is_some_and(|output| key(Path::new("/dev/stdout")) == Some(output)) {
            self.out = BufWriter::new(Box::new(io::stderr()));
            self.live = io::stderr().is_terminal();
        }
    }

    /// Returns the writer of standard output.
    pub(crate) fn out(&mut self) -> &mut impl Write {
        &mut self.out
    }

    /// Writes data; an error ends the run.
    pub(crate) fn print(&mut self, text: impl Display) -> Outcome {
        write!(self.out, "{text}").map_err(Failure::Stdout)
    }

    /// Prints the summary of what a verb wrote as data, unless the run is quiet.
    pub(crate) fn summary(&mut self, text: impl Display) -> Outcome {
        if self.global.quiet { Ok(()) } else { self.print(text) }
    }

    /// Ends a record: flushes standard output if it is a terminal.
    pub(crate) fn end_record(&mut self) -> Outcome {
        if self.live { self.flush() } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> Outcome {
        self.out.flush().map_err(Failure::Stdout)
    }

    /// Returns the number of columns of standard output, if it is a terminal.
    pub(crate) fn width(&self) -> Option<usize> {
        #[cfg(unix)]
        if self.live {
            let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
            return Some(usize::from(size.ws_col)).filter(|width| *width > 0);
        }
        None
    }

    /// Returns a number of bytes as it is printed: rounded, or exact with `--bytes`.
    pub(crate) fn size(&self, bytes: u64) -> Size {
        Size { bytes, exact: self.global.bytes }
    }

    /// Returns `style` if colours are on, otherwise the plain style.
    pub(crate) fn style(&self, style: Style) -> Style {
        if self.color { style } else { Style::new() }
    }

    /// Returns a file name for a list that a script may read: escaped on a terminal only.
    pub(crate) fn listed(&self, path: &Path) -> String {
        if self.live { printable(path).to_string() } else { path.display().to_string() }
    }

    /// Prints a message, unless the run is quiet.
    pub(crate) fn note(&mut self, message: impl Display) {
        if !self.global.quiet {
            let _ = writeln!(io::stderr(), "{}", lines(&message.to_string()));
        }
    }

    /// Prints a failure and records its exit code; the run continues, and ends with the highest code.
    pub(crate) fn report(&mut self, failure: &Failure) {
        // Data that was printed before the failure appears before its message.
        let _ = self.out.flush();
        let red = if self.color_err {
            Style::new().bold().fg_color(Some(anstyle::AnsiColor::Red.into()))
        } else {
            Style::new()
        };
        let _ = writeln!(io::stderr(), "{red}tfseek:{red:#} {}", lines(&failure.explained(self.can_skip)));
        self.set_exit_code(failure.code());
    }

    /// Records an exit code without a message; the run ends with the highest code.
    pub(crate) fn set_exit_code(&mut self, code: u8) {
        self.exit_code = self.exit_code.max(code);
    }

    /// Reports the failure of one of several files and continues with the next. An error of standard output
    /// or of the condition is returned.
    pub(crate) fn report_and_continue(&mut self, outcome: Outcome) -> Outcome {
        let Err(failure) = outcome else { return Ok(()) };
        if matches!(failure, Failure::Stdout(_)) || failure.is_of_condition() {
            return Err(failure);
        }
        self.report(&failure);
        Ok(())
    }

    /// Flushes standard output and returns the exit code.
    pub(crate) fn finish(mut self, outcome: Outcome) -> u8 {
        let outcome = outcome.and_then(|()| self.flush());
        match outcome {
            // The reader needs no more data: `tfseek cat f | head -1` is not a failure.
            Err(Failure::Stdout(e)) if e.kind() == io::ErrorKind::BrokenPipe => {
                // Dropping the writer would flush it again.
                let _ = self.out.into_parts();
                return self.exit_code;
            }
            Err(failure) => self.report(&failure),
            Ok(()) => {}
        }
        self.exit_code
    }
}

/// Returns a message of one or more lines that controls no terminal: names in it may belong to files from
/// elsewhere.
fn lines(message: &str) -> String {
    message.split('\n').map(|line| printable(line).to_string()).collect::<Vec<_>>().join("\n")
}

/// Returns true if the output on a terminal, or elsewhere, has colours.
fn has_color(choice: ColorChoice, terminal: bool) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        // https://no-color.org: NO_COLOR counts if it is present and not empty.
        ColorChoice::Auto => {
            terminal
                && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
                && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
        }
    }
}
