// The pages of the application glossary: the projects, one of them with its tabs, and a document with its terms.
import { Project } from "./project.js";
import { Projects } from "./projects.js";
import { Viewer } from "./viewer.js";
import { words } from "./words.js";

/** @param {{route: (path: string, view: any) => void, nav: (entry: {path: string, title: string}) => void, dictionary: (words: any) => void}} door */
export function register({ route, nav, dictionary }) {
  document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL("./style.css", import.meta.url).href }));
  dictionary(words);
  route("/", Projects);
  route("/projects/:id", Project);
  route("/projects/:id/:tab", Project);
  route("/projects/:id/files/:file", Viewer);
  nav({ path: "/", title: "app.glossary" });
}
