// The page of an answer: for now, how it came about.

import "../base/base.css";
import { h } from "../base/dom.js";
import { masthead, provenanceFacts, start, type Provenance } from "../base/page.js";

interface Answer {
  readonly schema?: string;
  readonly provenance?: Provenance;
}

start((root, data) => {
  const answer = data as Answer;
  root.className = "report";
  root.append(masthead(answer.schema ?? "fairlab", document.title, []), provenanceFacts(answer.provenance ?? {}), h("section"));
});
