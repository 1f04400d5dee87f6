// The pages of the application notes: the sessions, and one of them with what failed and what came of it.
import { Session } from "./session.js";
import { Sessions } from "./sessions.js";
import { words } from "./words.js";

/** @param {{route: (path: string, view: any) => void, nav: (entry: {path: string, title: string}) => void, dictionary: (words: any) => void}} door */
export function register({ route, nav, dictionary }) {
  dictionary(words);
  route("/", Sessions);
  route("/sessions/:id", Session);
  nav({ path: "/", title: "app.notes" });
}
