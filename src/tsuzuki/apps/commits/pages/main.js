// The pages of the application commits: the bulk run with its history, sources with their branches, and statistics.
import { Bulk, OneRun } from "./bulk.js";
import { Project, Sources } from "./sources.js";
import { Statistics } from "./statistics.js";
import { words } from "./words.js";

/** @param {{route: (path: string, view: any) => void, nav: (entry: {path: string, title: string}) => void, dictionary: (words: any) => void}} door */
export function register({ route, nav, dictionary }) {
  dictionary(words);
  route("/", Bulk);
  route("/runs/:id", OneRun);
  route("/sources", Sources);
  route("/projects/:id", Project);
  route("/statistics", Statistics);
  nav({ path: "/", title: "app.commits" });
}
