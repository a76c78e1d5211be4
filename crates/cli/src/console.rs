//! The two streams: data on stdout, everything said to people on stderr.

use crate::args::{ColorChoice, Global};
use crate::exit::{Failure, Outcome};
use anstyle::Style;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

/// Standard output, the messages, and what the user said about both.
pub(crate) struct Console {
    out: BufWriter<StdoutLock<'static>>,
    /// Someone watches: each record is shown when it is there.
    live: bool,
    color: bool,
    color_err: bool,
    quiet: bool,
    worst: u8,
}

/// Headings and keys.
pub(crate) const BOLD: Style = Style::new().bold();
/// What is about a value, not the value.
pub(crate) const DIM: Style = Style::new().dimmed();

impl Console {
    pub(crate) fn new(global: &Global) -> Console {
        let live = io::stdout().is_terminal();
        Console {
            out: BufWriter::with_capacity(1 << 16, io::stdout().lock()),
            live,
            color: global.color.on(live),
            color_err: global.color.on(io::stderr().is_terminal()),
            quiet: global.quiet,
            worst: 0,
        }
    }

    /// Where data goes.
    pub(crate) fn out(&mut self) -> &mut impl Write {
        &mut self.out
    }

    /// Writes data; a failure is the end of the run.
    pub(crate) fn print(&mut self, text: impl Display) -> Outcome {
        write!(self.out, "{text}").map_err(Failure::Stdout)
    }

    /// Lets a watching user see what is there.
    pub(crate) fn settle(&mut self) -> Outcome {
        if self.live { self.flush() } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> Outcome {
        self.out.flush().map_err(Failure::Stdout)
    }

    /// The style, if colours are on.
    pub(crate) fn style(&self, style: Style) -> Style {
        if self.color { style } else { Style::new() }
    }

    /// Says something to people, unless they asked for silence.
    pub(crate) fn note(&mut self, message: impl Display) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "{message}");
        }
    }

    /// Reports a failure and goes on; the run ends with the highest code there was.
    pub(crate) fn report(&mut self, failure: &Failure) {
        // What was printed comes before what went wrong after it.
        let _ = self.out.flush();
        let red = if self.color_err {
            Style::new().bold().fg_color(Some(anstyle::AnsiColor::Red.into()))
        } else {
            Style::new()
        };
        let _ = writeln!(io::stderr(), "{red}tfseek:{red:#} {failure}");
        self.worst = self.worst.max(failure.code());
    }

    /// Reports the failure of one file of several and goes on with the next, unless stdout is gone.
    pub(crate) fn go_on(&mut self, outcome: Outcome) -> Outcome {
        match outcome {
            Err(failure @ Failure::Stdout(_)) => Err(failure),
            Err(failure) => {
                self.report(&failure);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// The exit code, after the last byte was written.
    pub(crate) fn finish(mut self, outcome: Outcome) -> u8 {
        let outcome = outcome.and_then(|()| self.flush());
        match outcome {
            // The reader has what it wanted: `tfseek cat f | head -1` is no failure.
            Err(Failure::Stdout(e)) if e.kind() == io::ErrorKind::BrokenPipe => {
                // The buffer must not be tried again when it is dropped.
                let _ = self.out.into_parts();
                return self.worst;
            }
            Err(failure) => self.report(&failure),
            Ok(()) => {}
        }
        self.worst
    }
}

impl ColorChoice {
    fn on(self, terminal: bool) -> bool {
        match self {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            // https://no-color.org: present and not empty.
            ColorChoice::Auto => {
                terminal
                    && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
                    && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
            }
        }
    }
}
