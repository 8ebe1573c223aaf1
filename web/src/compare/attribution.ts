// Which changes make a difference: each commit's ratio in turn, with its interval, its share of the whole, and its causes.

import { h, shown } from "../base/dom.js";
import { figure } from "../base/chart.js";
import { significant } from "../base/format.js";
import { shareBar } from "../base/share.js";
import { table, type Cell } from "../base/table.js";
import { causesOf } from "./causes.js";
import { axisChart, axisOf, rowChart, type Ratio } from "./forest.js";
import type { Attribution, Contribution, Effect } from "./types.js";
import { badge } from "./verdicts.js";
import { effectOf, spoken, verdictColour, verdictWords } from "./words.js";

const WIDTH = 220;

/** The margin is not part of the answer; the band marks what nobody would look at. */
const BAND = 0.01;

function drawn(effect: Effect, colour: string): Ratio {
  return { ratio: effect.ratio, low: effect.low, high: effect.high, colour, label: `ratio ${effectOf(effect)}` };
}

function contributions(answer: Attribution): HTMLElement {
  const matter = answer.contributions.filter((row) => row.matters);
  const rows = matter.length > 0 ? matter : answer.contributions;
  const colour = (row: Contribution): string => (row.matters ? verdictColour(sense(answer, row)) : "var(--neutral)");
  const whole = drawn(answer.whole, verdictColour(answer.verdict));
  const axis = axisOf([whole, ...rows.map((row) => drawn(row.in_turn, colour(row)))], BAND);
  const cells = (row: Contribution): (Cell | string)[] => [
    { show: h("code", {}, shown(row.commit)), by: row.commit },
    row.subject,
    { show: rowChart(drawn(row.in_turn, colour(row)), axis, WIDTH), by: row.in_turn.ratio ?? undefined },
    { show: effectOf(row.in_turn), by: row.in_turn.ratio ?? undefined },
    { show: shareBar(row.share), by: row.share ?? undefined },
    { show: effectOf(row.alone), by: row.alone?.ratio ?? undefined },
    { show: effectOf(row.last), by: row.last?.ratio ?? undefined },
  ];
  const all: (Cell | string)[] = ["all", "", { show: rowChart(whole, axis, WIDTH) }, effectOf(answer.whole), "", "", ""];
  return table({
    caption: `In turn: after the change over before it, as history has them; alone: ${shown(answer.baseline)} with it; last: ${shown(answer.kernel)} over the kernel without it. 95 % intervals.`,
    columns: [
      { head: "Change" },
      { head: "Subject", class: "words" },
      { head: "", class: "forest", beside: axisChart(axis, WIDTH) },
      { head: "In turn", figures: true },
      { head: "Share", figures: true },
      { head: "Alone", figures: true },
      { head: "Last", figures: true },
    ],
    rows: [...rows.map(cells), all],
    rowClass: (at) => (at === rows.length ? "headline" : undefined),
  });
}

/** A change that goes the way of the whole has its verdict, one that goes against it the other. */
function sense(answer: Attribution, row: Contribution): string {
  const [whole, own] = [answer.whole.ratio, row.in_turn.ratio];
  if (whole === null || own === null || answer.verdict === "changed") return answer.verdict;
  if (Math.sign(Math.log(whole)) === Math.sign(Math.log(own))) return answer.verdict;
  return answer.verdict === "worse" ? "better" : answer.verdict === "better" ? "worse" : answer.verdict;
}

function interactionsOf(answer: Attribution): HTMLElement | null {
  const real = answer.interactions.filter((pair) => pair.real === true);
  if (answer.interactions.length === 0) return null;
  if (real.length === 0) return h("p", {}, "No two of them interact.");
  const words = (pair: (typeof real)[number]): string => `${pair.commits[0]} and ${pair.commits[1]} together: ${effectOf(pair.beyond)} of what they do alone.`;
  return h("ul", { class: "sentences" }, ...real.map((pair) => h("li", {}, shown(words(pair)))));
}

/** The attribution of one metric. */
export function attributionOf(answer: Attribution): HTMLElement {
  const matter = answer.contributions.filter((row) => row.matters);
  const others = answer.contributions.length - matter.length;
  const summary = `${answer.kernel} has ${effectOf(answer.whole)} of ${answer.baseline}'s ${spoken(answer.metric)}; ${answer.changes} changes lie between, ${answer.contributions.length} of them act here.`;
  const none = matter.length === 0 ? h("p", {}, "No change makes a difference beyond the margin.") : null;
  const rest = answer.rest === null || others === 0 ? null : h("p", { class: "soft" }, `${others} others together: ${significant(answer.rest * 100)} %.`);
  return h(
    "section",
    { class: "attribution" },
    h("h2", {}, `Which changes: ${shown(answer.metric)}`),
    h("p", { class: "finding" }, shown(summary), " ", badge(answer.verdict, verdictWords(answer.verdict))),
    none,
    figure(`${answer.runs} runs.`, contributions(answer)),
    rest,
    interactionsOf(answer),
    ...matter.flatMap((row) => {
      const causes = row.causes;
      if (causes === undefined || causes === null) return [];
      return [h("details", { class: "why", open: row === matter[0] }, h("summary", {}, "Why: ", h("code", {}, shown(row.commit)), ` ${shown(row.subject)}`), causesOf(causes))];
    }),
  );
}
