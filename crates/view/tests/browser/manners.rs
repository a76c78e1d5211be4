//! Manners of every view: names for screen readers, contrast, focus, narrow windows, and nothing that jumps.

use crate::page::Page;

/// Roles of elements that need a name.
const NAMED: [&str; 24] = [
    "Audio",
    "Canvas",
    "Video",
    "button",
    "checkbox",
    "combobox",
    "dialog",
    "grid",
    "heading",
    "image",
    "img",
    "link",
    "listbox",
    "menuitem",
    "option",
    "radio",
    "scrollbar",
    "searchbox",
    "slider",
    "spinbutton",
    "switch",
    "tab",
    "textbox",
    "treeitem",
];

/// Returns the pairs of text and background below the contrast of WCAG 2 AA, with a function of the page that
/// lists them.
const CONTRAST: &str = r"(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const parse = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const light = ([r, g, b]) => {
    const part = (x) => ((x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    const page = matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18, 1] : [255, 255, 255, 1];
    return layers.reverse().reduce((under, layer) => over(layer, under), page);
  };
  const found = new Map();
  const check = (element, color, what) => {
    const under = ground(element);
    const style = getComputedStyle(element);
    let opacity = 1;
    for (let e = element; e; e = e.parentElement) opacity *= Number(getComputedStyle(e).opacity);
    const ink = parse(color);
    ink[3] *= opacity;
    const [a, b] = [light(over(ink, under)), light(under)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    if (ratio < least - 0.005) found.set(`${element.className || element.tagName} ${color} on ${under.slice(0, 3).map(Math.round)}`,
      `${ratio.toFixed(2)} < ${least}: ${color} on rgb(${under.slice(0, 3).map(Math.round)}), ${element.tagName}.${element.className}: ${what}`);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const text = node.data.trim();
    if (!text || element.closest('script, style, noscript, svg, :disabled, [aria-disabled=true], [hidden]')) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    check(element, getComputedStyle(element).color, text.slice(0, 40));
  }
  for (const text of document.querySelectorAll('svg text')) {
    if (text.checkVisibility()) check(text, getComputedStyle(text).fill, text.textContent.slice(0, 40));
  }
  for (const input of document.querySelectorAll('input[placeholder], textarea[placeholder]')) {
    if (input.checkVisibility()) check(input, getComputedStyle(input, '::placeholder').color, input.placeholder);
  }
  return [...found.values()].join('\n');
})()";

/// Returns the elements that stand out of a narrow page and that no part of it scrolls to.
const OUTSIDE: &str = r"(() => {
  const scrolls = (element) => {
    for (let e = element; e && e != document.body; e = e.parentElement) {
      if (/auto|scroll|hidden|clip/.test(getComputedStyle(e).overflowX)) return true;
    }
    return false;
  };
  const all = [...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() && !e.closest('svg'));
  const out = all.filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e));
  const wide = document.scrollingElement.scrollWidth > innerWidth ? [`the page is ${document.scrollingElement.scrollWidth} wide`] : [];
  return wide.concat(out.map((e) => e.outerHTML.slice(0, 150))).join('\n');
})()";

/// Sums the shifts of the layout, in a script that runs before those of the page.
pub(crate) const SHIFTS: &str = r"
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      window.shifts.push({ value: entry.value, nodes: entry.sources.map((s) => `${JSON.stringify(s.previousRect)} to ${JSON.stringify(s.currentRect)}: ${(s.node?.outerHTML ?? s.node?.data)?.slice(0, 150)}`) });
    }
  }).observe({ type: 'layout-shift', buffered: true });";

impl Page {
    /// Fails if a control or an image has no name for screen readers.
    pub(crate) fn all_named(&self) {
        let all = self.accessible();
        // The browser itself makes boxes that scroll reachable, as `generic`.
        let unnamed = ["RootWebArea", "main", "generic"];
        let bad = all.iter().filter(|(role, name, focus)| {
            name.trim().is_empty()
                && (NAMED.contains(&role.as_str()) || *focus && !unnamed.contains(&role.as_str()))
        });
        let bad: Vec<&String> = bad.map(|(role, ..)| role).collect();
        if !bad.is_empty() {
            let nameless = self.text(
                "[...document.querySelectorAll('button, a, input, select, textarea, img, canvas, audio, video, summary, [role], [tabindex]')]\
                 .filter(e => e.checkVisibility() && !e.ariaLabel && !e.ariaLabelledByElements?.length && !e.textContent.trim() && !e.labels?.length && !e.alt && !e.title)\
                 .map(e => e.outerHTML.slice(0, 200)).join('\\n')",
            );
            self.fail(&format!("elements without a name: {bad:?}\n{nameless}"));
        }
        assert!(all.len() > 5, "{all:?}");
    }

    /// Fails if a text has too little contrast in the light or the dark scheme.
    pub(crate) fn all_readable(&self) {
        for scheme in ["dark", "light"] {
            self.scheme(scheme);
            self.wait(&format!("matchMedia('(prefers-color-scheme: {scheme})').matches"), scheme);
            // Colours may change over some time.
            self.wait(
                "document.getAnimations().every(a => a.playState != 'running')",
                "the end of transitions",
            );
            let bad = self.text(CONTRAST);
            if !bad.is_empty() {
                self.fail(&format!("texts with too little contrast, {scheme}:\n{bad}"));
            }
        }
    }

    /// Fails if a page of 360 pixels is scrolled sideways, or if something cannot be reached in it.
    pub(crate) fn all_in_a_narrow_page(&self, shot: &str) {
        self.viewport(360, 640);
        self.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
        let out = self.text(OUTSIDE);
        self.screenshot(&format!("{shot}-narrow"));
        if !out.is_empty() {
            self.fail(&format!("360 pixels are too narrow for:\n{out}"));
        }
        self.viewport(1280, 800);
    }

    /// Fails if Tab does not reach an element that matches a selector, or if an element on the way does not
    /// show the focus.
    pub(crate) fn tab_reaches(&self, selector: &str) {
        self.eval("document.activeElement.blur()");
        let mut way = Vec::new();
        for _ in 0..60 {
            self.key("Tab");
            way.push(self.text("document.activeElement.outerHTML.slice(0, 120)"));
            self.focus_is_seen();
            if self.eval(&format!("!!document.activeElement.closest({selector:?})")) == true {
                return;
            }
        }
        self.fail(&format!("Tab does not reach {selector}; it goes over\n{}", way.join("\n")));
    }

    fn focus_is_seen(&self) {
        let marked = "(() => { const e = document.activeElement; if (e == document.body) return true; \
             for (let p = e; p; p = p.parentElement) { const s = getComputedStyle(p); \
             if (s.outlineStyle != 'none' && parseFloat(s.outlineWidth) >= 1 || s.boxShadow != 'none') return true; \
             if (!p.matches(':focus-within') || p.tagName == 'MAIN') break; } return false; })()";
        if self.eval(marked) != true {
            let element = self.text("document.activeElement.outerHTML.slice(0, 120)");
            self.fail(&format!("the focus cannot be seen on {element}"));
        }
    }

    /// Fails if Tab stays on an element, does not come to the end of the page, or stops where the focus
    /// cannot be seen.
    pub(crate) fn no_trap(&self) {
        self.eval("document.activeElement.blur(); window.way = new Set()");
        for _ in 0..400 {
            self.key("Tab");
            // After the last element, the first one or the page itself has the focus.
            let step = self.text(
                "(() => { const e = document.activeElement; if (e == document.body || e == [...window.way][0]) return 'end'; \
                 const seen = window.way.has(e); window.way.add(e); return seen ? 'again' : 'on'; })()",
            );
            if step == "end" {
                let way = self.number("window.way.size");
                return assert!(way > 5.0, "{}: the focus is lost after {way}", self.text("location.hash"));
            }
            if step == "again" {
                let element = self.text("document.activeElement.outerHTML.slice(0, 120)");
                self.fail(&format!("the keyboard comes to {element} again and again"));
            }
            self.focus_is_seen();
        }
        self.fail("Tab does not come to the end of the page");
    }

    /// Checks names, contrast and a narrow page.
    pub(crate) fn all_manners(&self, shot: &str) {
        self.all_named();
        self.all_readable();
        self.all_in_a_narrow_page(shot);
    }
}
