// Numbers, times and sizes as people read them.

const whole = new Intl.NumberFormat("en-US");
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

export function number(value) {
  return value === null || value === undefined ? "–" : whole.format(value);
}

/** A large number in few characters: 1.2M. */
export function compact(value) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) < 10000 ? whole.format(value) : short.format(value);
}

/** "1 row", "2 rows". */
export function count(value, word, words = `${word}s`) {
  return `${number(value)} ${value === 1 ? word : words}`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds < 0.001) return "0 s";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  if (seconds < 3599.5) return pair(seconds, 60, "min", "s");
  if (seconds < 86400) return pair(seconds / 60, 60, "h", "min");
  return pair(seconds / 3600, 24, "d", "h");
}

function pair(value, base, large, small) {
  const rounded = Math.round(value);
  const rest = rounded % base;
  return `${Math.floor(rounded / base)} ${large}${rest ? ` ${rest} ${small}` : ""}`;
}

/** A moment in the reader's time zone. */
export function moment(millis) {
  const at = new Date(Number(millis));
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export function clock(millis) {
  return moment(millis).slice(11);
}

function two(value) {
  return String(value).padStart(2, "0");
}

/** How long ago, in one unit. */
export function ago(millis, now = Date.now()) {
  const seconds = (now - Number(millis)) / 1000;
  if (seconds < 0) return `in ${duration(-seconds)}`;
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

export function percent(part, total) {
  if (!total) return "0 %";
  const value = (100 * part) / total;
  return `${value > 0 && value < 10 ? value.toFixed(1) : Math.floor(value)} %`;
}

/** An id as people write it in SQL and commands: a.b.c. */
export function dotted(id) {
  return id.join(".");
}

/** JSON text or nothing, when it is none. */
export function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
