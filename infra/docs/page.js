/* A page that is read from a folder (file:) may start no worker: the search then runs in a hidden frame instead.
   Messages are copied, as those of a worker are. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      document.body.appendChild(this.frame);
      const inner = this.frame.contentWindow;
      inner.document.open();
      inner.document.write(
        "<!doctype html><html lang=en><title>search</title><body><script>" +
          "window.postMessage = (data) => parent.dispatchEvent(new MessageEvent('searched', { data }));" +
          "window.importScripts = (...urls) => Promise.all(urls.map((url) => new Promise((done, failed) => {" +
          "const script = document.createElement('script'); script.src = url; script.onload = done;" +
          "script.onerror = failed; document.body.appendChild(script); })));" +
          "</" + "script><script src=\"" + new URL(url, location.href) + "\"></" + "script></body></html>"
      );
      inner.document.close();
      this.queue = [];
      this.frame.addEventListener("load", () => {
        this.isLoaded = true;
        this.queue.splice(0).forEach((data) => this.postMessage(data));
      });
      window.addEventListener("searched", (event) => {
        const message = new MessageEvent("message", { data: structuredClone(event.data) });
        setTimeout(() => {
          this.dispatchEvent(message);
          if (this.onmessage) this.onmessage(message);
        });
      });
    }
    postMessage(data) {
      if (!this.isLoaded) { this.queue.push(structuredClone(data)); return; }
      const inner = this.frame.contentWindow;
      const message = new inner.MessageEvent("message", { data: structuredClone(data) });
      setTimeout(() => inner.dispatchEvent(message));
    }
    terminate() {
      this.frame.remove();
    }
  };
}

/* What is wider than the page scrolls in its own frame, by the keyboard too. */
const reach = () =>
  document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code, .md-typeset table").forEach((frame) => {
    if (frame.scrollWidth > frame.clientWidth && !frame.hasAttribute("tabindex")) frame.tabIndex = 0;
  });
/* The theme makes a landmark of every block's buttons: each has a name of its own. */
const name = () =>
  document.querySelectorAll("nav.md-code__nav").forEach((nav, place) => {
    nav.setAttribute("aria-label", `Block ${place + 1}`);
  });
addEventListener("load", () => {
  const both = () => (reach(), name());
  both();
  new MutationObserver(both).observe(document.body, { childList: true, subtree: true });
});
addEventListener("resize", reach);
