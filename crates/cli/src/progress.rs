//! Progress bars on standard error, drawn on a terminal or with `--progress`.

use crate::args::GlobalArgs;
use crate::store;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use tfseek_tools::WriteProgress;

/// Returns a bar of `bytes` bytes, or a hidden one.
pub(crate) fn bytes(global: &GlobalArgs, label: &'static str, bytes: u64) -> ProgressBar {
    let template = "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}";
    bar(global, label, bytes, template)
}

/// Returns a bar of `steps` steps, or a hidden one.
pub(crate) fn steps(global: &GlobalArgs, label: &'static str, steps: u64) -> ProgressBar {
    bar(global, label, steps, "{msg} {wide_bar} {pos}/{len} steps {eta}")
}

/// Returns a bar of records, or a hidden one.
pub(crate) fn records(global: &GlobalArgs, label: &'static str, records: u64) -> ProgressBar {
    bar(global, label, records, "{msg} {wide_bar} {pos}/{len} records {eta}")
}

fn bar(global: &GlobalArgs, label: &'static str, len: u64, template: &str) -> ProgressBar {
    let visible = !global.quiet && (global.progress || std::io::stderr().is_terminal());
    if !visible || len == 0 {
        return ProgressBar::hidden();
    }
    // With `--progress` and no terminal, four plain lines per second are printed.
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr_with_hz(10)
    } else {
        ProgressDrawTarget::term_like_with_hz(Box::new(PlainLines), 4)
    };
    let bar = ProgressBar::with_draw_target(Some(len), target).with_message(label);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// Returns a count of steps without a known total, or a hidden one.
pub(crate) fn step_count(global: &GlobalArgs, label: &'static str) -> ProgressBar {
    let bar = bar(global, label, 1, "{spinner} {msg} {pos} steps {per_sec}");
    bar.unset_length();
    bar
}

/// Returns a count of bytes without a known total, or a hidden one.
pub(crate) fn byte_count(global: &GlobalArgs, label: &'static str) -> ProgressBar {
    let bar = bytes(global, label, 1);
    bar.unset_length();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {decimal_bytes} {decimal_bytes_per_sec}")
    {
        bar.set_style(style);
    }
    bar
}

/// Returns a progress callback for the library that advances a bar of bytes. It never cancels: an interrupt
/// kills the process.
pub(crate) fn callback(bar: &ProgressBar) -> impl Fn(u64) -> ControlFlow<()> + Clone + Send + Sync + 'static {
    let bar = bar.clone();
    move |bytes| {
        if bytes > 0 {
            bar.inc(bytes);
        }
        ControlFlow::Continue(())
    }
}

/// Returns the callbacks for files that are written, which set the length of a bar of bytes and advance it.
pub(crate) fn of_writing(bar: &ProgressBar) -> WriteProgress {
    let expected = bar.clone();
    WriteProgress {
        expect: Arc::new(move |bytes| expected.set_length(bytes)),
        advance: Arc::new(callback(bar)),
    }
}

/// Progress of reading one file in order, on a bar of bytes on disk.
pub(crate) struct FileProgress<'a> {
    bar: &'a ProgressBar,
    size: u64,
    /// Bytes by which the bar was advanced.
    reported: u64,
    is_plain: bool,
}

impl FileProgress<'_> {
    /// `is_plain` is true for an uncompressed file. The bar advances by a compressed file at its end.
    pub(crate) fn new<'a>(bar: &'a ProgressBar, path: &Path, is_plain: bool) -> FileProgress<'a> {
        let size = store::size(path).unwrap_or(0);
        FileProgress { bar, size, reported: 0, is_plain }
    }

    /// Advances the bar to this offset in the record stream, once per MiB.
    pub(crate) fn read_to(&mut self, offset: u64) {
        let more = offset.saturating_sub(self.reported);
        if self.is_plain && more > 1 << 20 {
            self.bar.inc(more);
            self.reported = offset;
        }
    }

    /// Advances the bar to the end of the file.
    pub(crate) fn finish(self) {
        self.bar.inc(self.size.saturating_sub(self.reported));
    }
}

/// Returns the total size of files in bytes. A file whose size is not available counts as 0.
pub(crate) fn total_size(paths: &[impl AsRef<Path>]) -> u64 {
    paths.iter().filter_map(|path| store::size(path.as_ref())).sum()
}

/// A draw target that prints plain lines to standard error.
#[derive(Debug)]
struct PlainLines;

impl indicatif::TermLike for PlainLines {
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
