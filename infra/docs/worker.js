/* A page that is read from a folder (file:) may start no worker: the search then runs in a hidden frame instead. */
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
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
    }
    postMessage(data) {
      if (!this.isLoaded) { this.queue.push(data); return; }
      const inner = this.frame.contentWindow;
      inner.dispatchEvent(new inner.MessageEvent("message", { data }));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
