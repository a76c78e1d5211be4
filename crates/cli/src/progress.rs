//! Bars on stderr, for people who wait: on a terminal, or if asked for.

use crate::args::Global;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// A bar over `bytes` bytes, or one that is never drawn.
pub(crate) fn over(global: &Global, what: &'static str, bytes: u64) -> ProgressBar {
    let template = "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}";
    bar(global, what, bytes, template)
}

/// A bar over steps, or one that is never drawn.
pub(crate) fn steps(global: &Global, what: &'static str, steps: u64) -> ProgressBar {
    bar(global, what, steps, "{msg} {wide_bar} {pos}/{len} steps {eta}")
}

fn bar(global: &Global, what: &'static str, len: u64, template: &str) -> ProgressBar {
    let wanted = !global.quiet && (global.progress || std::io::stderr().is_terminal());
    if !wanted || len == 0 {
        return ProgressBar::hidden();
    }
    // A forced bar is drawn on what is no terminal too, four lines a second.
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr_with_hz(10),
        false => ProgressDrawTarget::term_like_with_hz(Box::new(Lines), 4),
    };
    let bar = ProgressBar::with_draw_target(Some(len), target).with_message(what);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// A count of bytes, where nobody knows how many there will be.
pub(crate) fn counting(global: &Global, what: &'static str) -> ProgressBar {
    let bar = over(global, what, 1);
    bar.unset_length();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {decimal_bytes} {decimal_bytes_per_sec}")
    {
        bar.set_style(style);
    }
    bar
}

/// The library's progress callback that moves a bar of bytes. It ends nothing: an interrupt ends the process.
pub(crate) fn moves(bar: &ProgressBar) -> impl Fn(u64) -> ControlFlow<()> + Send + Sync + 'static {
    let bar = bar.clone();
    move |bytes| {
        if bytes > 0 {
            bar.inc(bytes);
        }
        ControlFlow::Continue(())
    }
}

/// What files have in bytes on disk; what cannot be asked counts as nothing.
pub(crate) fn bytes_of(paths: &[PathBuf]) -> u64 {
    paths.iter().filter_map(|p| std::fs::metadata(p).ok()).map(|m| m.len()).sum()
}

/// Standard error as plain lines.
#[derive(Debug)]
struct Lines;

impl indicatif::TermLike for Lines {
    fn width(&self) -> u16 {
        100
    }

    fn move_cursor_up(&self, _: usize) -> std::io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> std::io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> std::io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> std::io::Result<()> {
        Ok(())
    }

    fn write_line(&self, s: &str) -> std::io::Result<()> {
        eprintln!("{s}");
        Ok(())
    }

    fn write_str(&self, s: &str) -> std::io::Result<()> {
        match s.trim_end() {
            "" => Ok(()),
            line => self.write_line(line),
        }
    }

    fn clear_line(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn flush(&self) -> std::io::Result<()> {
        Ok(())
    }
}
