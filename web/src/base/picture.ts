// A picture of a document as a file: its title, a key of its colours, and the bars that pages draw.

import { bars, type Picture } from "./bars.js";

const WIDTH = 780;
const HEAD = 52;

/** The picture as a file of SVG; `document` need not be a browser's. */
export function pictureFile(picture: Picture, document: Document): string {
  const svg = "http://www.w3.org/2000/svg";
  const element = (name: string, attributes: Readonly<Record<string, string | number>>, text = ""): Element => {
    const made = document.createElementNS(svg, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
    made.textContent = text;
    return made;
  };
  const chart = bars(picture, WIDTH - 20, document);
  const height = HEAD + Number(chart.getAttribute("height")) + 8;
  const root = element("svg", { xmlns: svg, width: WIDTH, height, viewBox: `0 0 ${WIDTH} ${height}`, "font-family": "system-ui, sans-serif", color: "#1c2024" });
  chart.setAttribute("x", "10");
  chart.setAttribute("y", String(HEAD));
  root.append(
    element("rect", { width: WIDTH, height, fill: "#fff" }),
    element("text", { x: 12, y: 22, "font-size": 14, "font-weight": 600, fill: "#1c2024" }, picture.title),
    element("rect", { x: 12, y: 33, width: 12, height: 10, fill: "#8b96a3" }),
    element("text", { x: 29, y: 42, "font-size": 11, fill: "#1c2024" }, "published"),
    element("rect", { x: 100, y: 33, width: 12, height: 10, fill: "#356a9f" }),
    element("text", { x: 117, y: 42, "font-size": 11, fill: "#1c2024" }, "measured"),
    chart,
  );
  return `${root.outerHTML}\n`;
}
