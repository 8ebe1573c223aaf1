// What a watch found, in words: on the page, to screen readers, and in a mail.

import { metric, significant } from "../base/format.js";
import { spoken } from "../compare/words.js";
import type { Finding, Found, Step, WatchAnswer, WatchedCase } from "./types.js";

/** Verdicts that are told, those that matter most first. */
export const VERDICTS = ["worse", "better", "changed"] as const;

/** What is told of a change: by the runs that confirmed it, or else by those that found it. */
export function told(finding: Finding): Found {
  return finding.confirmed && finding.fresh !== null ? finding.fresh : finding.found;
}

/** How large it is, in either direction; without end where something comes of nothing. */
export function size(finding: Finding): number {
  const { ratio } = told(finding);
  return ratio === null || ratio <= 0 ? Infinity : Math.abs(Math.log(ratio));
}

/** `+4.1 %`, and from a half or a double on `80.6 times`. */
export function factor(ratio: number | null): string {
  if (ratio === null) return "no ratio to 0";
  if (ratio <= 0.5 || ratio >= 2) return `${significant(ratio)} times`;
  const percent = (ratio - 1) * 100;
  return `${percent < 0 ? "-" : "+"}${Number(Math.abs(percent).toPrecision(2))} %`;
}

/** The same for a narrow cell. */
export function briefFactor(ratio: number | null): string {
  return ratio === null ? "" : factor(ratio).replace(/^(.*) times$/, "×$1").replace(" %", "%");
}

/** `155 us → 12.5 ms` */
function fromTo(finding: Finding): string {
  const [before, after] = told(finding).means;
  return `${metric(finding.metric, before)} → ${metric(finding.metric, after)}`;
}

/** `schbench p99 wakeup latency 155 us → 12.5 ms, 80.6 times` */
export function cellWords(finding: Finding): string {
  return `${finding.case} ${spoken(finding.metric)} ${fromTo(finding)}, ${factor(told(finding).ratio)}`;
}

/** The commit that a finding ends in. */
export function lastStep(finding: Finding): Step | undefined {
  return finding.steps[finding.steps.length - 1];
}

/** `0b0695f2b34a`, or the first and the last where no kernel lies between. */
export function commitsOf(finding: Finding): string {
  const [first, last] = [finding.steps[0], lastStep(finding)];
  if (first === undefined || last === undefined) return finding.kernels[1];
  return finding.steps.length === 1 ? last.commit : `${first.commit} to ${last.commit}, ${finding.steps.length} commits`;
}

/** `v6.12, 2024-08-17` */
export function whenOf(step: Step): string {
  return [step.release, step.date].filter((part) => part !== null).join(", ");
}

function confirmation(finding: Finding): string {
  if (finding.fresh === null) return `${finding.found.runs} runs, not looked at again before the stop`;
  return finding.confirmed ? `${finding.fresh.runs} fresh runs, confirmed` : `${finding.found.runs} runs found it, ${finding.fresh.runs} fresh runs did not confirm it`;
}

/** `p99 wakeup latency 155 us → 12.5 ms at 0b0695f2b34a, 9 fresh runs, confirmed; taken back at 16b0a7a1a0af` */
export function findingWords(answer: WatchAnswer, finding: Finding): string {
  const back = finding.taken_back_by === null ? undefined : answer.findings[finding.taken_back_by];
  const place = answer.findings.indexOf(finding);
  const takes = answer.findings.find((other) => other.taken_back_by === place);
  const parts = [
    `${spoken(finding.metric)} ${fromTo(finding)} at ${commitsOf(finding)}, ${confirmation(finding)}`,
    back === undefined ? "" : `taken back at ${commitsOf(back)}`,
    takes === undefined ? "" : `takes back ${commitsOf(takes)}`,
  ];
  return parts.filter((part) => part !== "").join("; ");
}

/** `1.04 (1.03 to 1.05)` */
export function ratioWords({ ratio, low, high }: Found): string {
  if (ratio === null) return "-";
  return low === null || high === null ? significant(ratio) : `${significant(ratio)} (${significant(low)} to ${significant(high)})`;
}

/** `1 kernel`, `63 kernels` */
export function counted(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? "" : "s"}`;
}

/** Whose runs they are. */
function whatRan(answer: WatchAnswer): string {
  const from = answer.provenance;
  const program = `${from?.program ?? "fairlab"} ${from?.version ?? ""}`.trim();
  const isDriven = from?.origin?.includes("driven") === true;
  return isDriven ? `The runs are of the scheduler's own code, driven by ${program}, not of a whole machine.` : `The runs are of ${program}'s model of the scheduler, not of a machine.`;
}

function commitLine(step: Step): string {
  const when = whenOf(step);
  return `  ${step.commit} ("${step.subject}")${when === "" ? "" : `, ${when}`}`;
}

/** A mail about a finding, for who wants to write to the commit's people. */
export function mail(answer: WatchAnswer, of: WatchedCase, finding: Finding): string {
  const { ratio, low, high } = told(finding);
  const step = lastStep(finding);
  const [before, after] = told(finding).means.map((mean) => metric(finding.metric, mean));
  const interval = low === null || high === null ? "" : `, 95 % interval of the ratio ${significant(low)} to ${significant(high)}`;
  const { parting } = finding;
  const parted = parting === null ? [] : ["", `The runs before and after it first part at CPU ${parting.cpu}:`, "", `  before: ${parting.baseline}`, `  after:  ${parting.kernel}`];
  return [
    `Subject: ${finding.verdict === "worse" ? "[REGRESSION] " : ""}${step?.subject ?? finding.kernels[1]}: ${spoken(finding.metric)} ${factor(ratio)}`,
    "",
    finding.steps.length === 1 ? "This commit" : "One of these commits",
    "",
    ...finding.steps.map(commitLine),
    "",
    `changes ${spoken(finding.metric)} from ${before} to ${after} (${factor(ratio)}${interval}; ${confirmation(finding)}).`,
    "",
    `The workload, on the machine ${of.machine}:`,
    "",
    `  ${of.workload}`,
    ...parted,
    "",
    "This repeats it:",
    "",
    `  ${finding.command}`,
    "",
    whatRan(answer),
  ].join("\n");
}
