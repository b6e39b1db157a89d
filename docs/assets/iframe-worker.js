// Browsers refuse workers to a page that was opened from the disk. There, this class
// runs a worker's script in a hidden frame, so that the search needs no server.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc =
        "<script>postMessage = message => parent.postMessage(message, '*')</script>" +
        `<script src="${url}"></script>`;
      this.loaded = new Promise(done => { this.frame.onload = done; });
      window.addEventListener("message", event => {
        if (event.source === this.frame.contentWindow) {
          this.dispatchEvent(new MessageEvent("message", {data: event.data}));
        }
      });
      document.body.append(this.frame);
    }

    postMessage(message) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(
        new MessageEvent("message", {data: message})));
    }
  };
}
