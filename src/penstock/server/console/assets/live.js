// Keeps what is shown up to date: polls while the page can be seen, and not otherwise.

const MOST = 30;

/** Call `work` now and every so many seconds, until the signal; slower while it fails. */
export function poll(work, seconds, signal) {
  let timer = 0;
  let wait = seconds;
  let busy = false;

  async function round() {
    clearTimeout(timer);
    if (signal.aborted || busy) return;
    if (document.hidden) return;
    busy = true;
    try {
      await work();
      wait = seconds;
    } catch (error) {
      if (error.name === "AbortError") return;
      wait = Math.min(wait * 1.6, MOST);
    } finally {
      busy = false;
    }
    // Not in step: fifty consoles that were opened together should not ask together.
    if (!signal.aborted) timer = setTimeout(round, wait * (0.9 + Math.random() * 0.2) * 1000);
  }

  document.addEventListener("visibilitychange", round, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  return round();
}

/**
 * Follow a job's events until it has ended; `onState` hears "open", "lost", "refused" and "ended".
 * A tab that nobody looks at gives its stream back: browsers have few connections for one server.
 */
export function follow(jobId, onProgress, onState, signal) {
  let source = null;
  let isOver = false;

  function close() {
    source?.close();
    source = null;
  }

  function open() {
    if (source || isOver || document.hidden || signal.aborted) return;
    source = new EventSource(`/v1/jobs/${encodeURIComponent(jobId)}/events`);
    const read = (event) => onProgress(JSON.parse(event.data));
    source.addEventListener("open", () => onState("open"));
    source.addEventListener("progress", read);
    source.addEventListener("end", (event) => {
      isOver = true;
      close();
      read(event);
      onState("ended");
    });
    // The browser connects again by itself, unless the answer was an error.
    source.addEventListener("error", () => {
      if (source?.readyState !== EventSource.CLOSED) return onState("lost");
      isOver = true;
      close();
      onState("refused");
    });
  }

  open();
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()), { signal });
  signal.addEventListener("abort", close);
}
