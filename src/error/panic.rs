//! Panics that become errors.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// True while a panic of the thread will be caught.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
    /// The place of the last such panic.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Calls `f`. If it panics, returns the message of the panic and its place in the source, and prints nothing.
/// Values that `f` has changed must then be dropped.
///
/// The first call adds a panic hook to the process, which leaves all other panics to the hook before it.
///
/// # Errors
/// The message.
pub fn catch_panic<T>(f: impl FnOnce() -> T) -> Result<T, Box<str>> {
    static HOOK: Once = Once::new();
    // Hooks cannot be changed while a panic unwinds, as in a destructor.
    if !std::thread::panicking() {
        HOOK.call_once(|| {
            let before = take_hook();
            set_hook(Box::new(move |panic| if CAUGHT.get() { keep(panic) } else { before(panic) }));
        });
    }
    let outer = CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(f));
    CAUGHT.set(outer);
    done.map_err(|panic| message(&*panic))
}

fn keep(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(|place| format!("{}:{}", in_crate(place.file()), place.line()));
    PLACE.set(place);
}

/// Returns a path of the source from the name of its crate on, without the folders of the machine that built
/// it.
fn in_crate(file: &str) -> &str {
    let is_absolute = file.starts_with('/') || file.get(1..2) == Some(":");
    if !is_absolute {
        return file;
    }
    let separators = ['/', '\\'];
    let source = file.rfind("/src/").or_else(|| file.rfind("\\src\\")).unwrap_or(file.len());
    let folder = file.get(..source).and_then(|folders| folders.rfind(separators));
    folder.and_then(|at| file.get(at + 1..)).unwrap_or(file)
}

fn message(panic: &(dyn Any + Send)) -> Box<str> {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic");
    match PLACE.take() {
        Some(place) => format!("{text} ({place})").into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caught_panic_is_a_message_with_its_place() {
        let found = catch_panic(|| Vec::<u8>::new()[3]).unwrap_err();
        assert!(found.contains("index is 3") && found.contains("src/error/panic.rs:"), "{found}");
        assert_eq!(catch_panic(|| 7), Ok(7));
        // An inner catch leaves the outer one in force.
        let outer = catch_panic(|| {
            let inner = catch_panic(|| panic!("one"));
            assert!(inner.unwrap_err().starts_with("one ("));
            panic!("two {}", 2)
        });
        assert!(outer.unwrap_err().starts_with("two 2 ("));
    }

    #[test]
    fn places_have_no_folder_of_the_machine() {
        for (file, expected) in [
            ("crates/convert/src/guard.rs", "crates/convert/src/guard.rs"),
            (
                "/build/cargo/registry/src/index-1/png-0.18.1/src/decoder/mod.rs",
                "png-0.18.1/src/decoder/mod.rs",
            ),
            ("/rustc/0123/library/core/src/slice/index.rs", "core/src/slice/index.rs"),
            (r"C:\cargo\registry\src\index\png-0.18.1\src\lib.rs", r"png-0.18.1\src\lib.rs"),
            ("/build/main.rs", "main.rs"),
        ] {
            assert_eq!(in_crate(file), expected);
        }
    }
}
