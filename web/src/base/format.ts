// Numbers as Fairlab's text output writes them: crates/cli/src/numbers.rs says how, and tests hold both together.

/** Three significant digits; more when there are more before the point. */
export function significant(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (!Number.isFinite(value)) return "-";
  // The bounds are where rounding carries into the next digit.
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  if (size >= 0.9995) return value.toFixed(2);
  if (size >= 0.001) return value.toFixed(3);
  return value.toExponential(1).replace("e+", "e");
}

/** A duration, given in ns, in a unit that fits. */
export function duration(nanoseconds: number): string {
  const size = Math.abs(nanoseconds);
  if (size < 999.5) return `${significant(nanoseconds)} ns`;
  if (size < 999.5e3) return `${significant(nanoseconds / 1e3)} us`;
  if (size < 999.5e6) return `${significant(nanoseconds / 1e6)} ms`;
  return `${significant(nanoseconds / 1e9)} s`;
}

/** A difference of durations, with its sign: what is less than a thousandth of what stands beside it is told in that one's unit. */
export function difference(nanoseconds: number, beside: number): string {
  const sign = nanoseconds > 0 ? "+" : "";
  const whole = Math.abs(beside);
  if (Math.abs(nanoseconds) >= whole / 1000) return `${sign}${duration(nanoseconds)}`;
  const [unit = ""] = duration(whole).split(" ").slice(-1);
  const size = { ns: 1, us: 1e3, ms: 1e6 }[unit] ?? 1e9;
  const digits = (nanoseconds / size).toFixed(3);
  return Number(digits) === 0 ? `0 ${unit}` : `${sign}${digits} ${unit}`;
}

/** A share of one as a percentage. */
export function share(value: number): string {
  return `${significant(value * 100)} %`;
}

/** A time of waiting in a second, given in ns. */
export function perSecond(nanoseconds: number): string {
  return `${duration(nanoseconds)}/s`;
}

/** What a metric counts, by its name: whose it is stands before a space. */
export type Quantity = "ns" | "us" | "share" | "per_work" | "per_s" | "number";

export function quantity(metric: string): Quantity {
  const plain = metric.slice(metric.lastIndexOf(" ") + 1);
  if (plain.includes("_ns_") || plain.endsWith("_ns")) return "ns";
  if (plain.includes("_us_") || plain.endsWith("_us")) return "us";
  if (plain.endsWith("_share")) return "share";
  if (plain.endsWith("_per_work")) return "per_work";
  if (plain.endsWith("_per_s")) return "per_s";
  return "number";
}

/** A metric's value by its name's unit. */
export function metric(name: string, value: number): string {
  switch (quantity(name)) {
    case "ns":
      return duration(value);
    case "us":
      return duration(value * 1e3);
    case "share":
      return share(value);
    case "per_work":
      return `${significant(value)} each`;
    case "per_s":
      return `${significant(value)} /s`;
    case "number":
      return significant(value);
  }
}

/** A time of a trace's clock, given in ns, as trace tools print it: seconds with six digits behind the point, or nine. */
export function seconds(nanoseconds: number, digits: 6 | 9 = 6): string {
  return (nanoseconds / 1e9).toFixed(digits);
}

/** Numbers with their thousands apart. */
export function count(value: number): string {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
}
