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

/** Follow a job's events until it has ended; `onState(true)` while the stream is open. */
export function follow(jobId, onProgress, onState, signal) {
  const source = new EventSource(`/v1/jobs/${encodeURIComponent(jobId)}/events`);
  const read = (event) => onProgress(JSON.parse(event.data));
  source.addEventListener("open", () => onState("open"));
  source.addEventListener("progress", read);
  source.addEventListener("end", (event) => {
    read(event);
    source.close();
    onState("ended");
  });
  // The browser connects again by itself, unless the answer was an error.
  source.addEventListener("error", () => onState(source.readyState === 2 ? "refused" : "lost"));
  signal.addEventListener("abort", () => source.close());
}
