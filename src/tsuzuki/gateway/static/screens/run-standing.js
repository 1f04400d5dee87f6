// What keeps a run from going on, and what to do about it; and what its cancellation cut off.
import { html } from "../core/view.js";
import { commands } from "../core/commands.js";
import { useAsked } from "../core/live.js";
import { now } from "../core/times.js";
import { waits } from "../core/shapes.js";
import { t } from "../core/words.js";
import { CommandLine } from "../parts/command.js";
import { Icon } from "../parts/icons.js";
import { WorkerLine } from "../parts/workerline.js";

/** @param {{run: Api.RunSnapshot}} props */
export function Standing({ run }) {
  if (run.interrupted) return html`<${Told} text=${t("standing.interrupted")}><${CommandLine} line=${commands.resume(run.number)} /><//>`;
  if (run.worker_lost) return html`<${Told} text=${t("standing.lost", { worker: run.worker_id ?? "" })}><${WorkerLine} tag=${run.tag} /><//>`;
  if (run.status === "PENDING" && !waits(run) && !(run.not_before && run.not_before > now.value)) return html`<${Unserved} run=${run} />`;
  if (run.status === "CANCELLED") return html`<${Cut} run=${run} />`;
  return null;
}

/** @param {{text: string, children?: any}} props */
function Told({ text, children }) {
  return html`<section class="notice tone-warn" role="status" data-standing><${Icon} name="warn" /><div><p>${text}</p>${children}</div></section>`;
}

/** Says where nobody is there to take a run that waits. @param {{run: Api.RunSnapshot}} props */
function Unserved({ run }) {
  /** @type {Api.Asked<Api.Worker[]>} */
  const workers = useAsked("/workers", { every: 3, query: { include_hidden: "true" } });
  if (!workers.value) return null;
  const serving = workers.value.filter((worker) => worker.tags.includes(run.tag));
  if (!serving.length) return html`<${Told} text=${t("standing.tag", { tag: run.tag })}><${WorkerLine} tag=${run.tag} /><//>`;
  const unknown = !run.workflow_yaml_sha256 && serving.every((worker) => worker.flows.length > 0 && !worker.flows.includes(run.flow_name));
  return unknown ? html`<${Told} text=${t("standing.flow", { flow: run.flow_name, tag: run.tag })}><${WorkerLine} tag=${run.tag} /><//>` : null;
}

/** What the end of a cancelled run says it cut off. @param {{run: Api.RunSnapshot}} props */
function Cut({ run }) {
  if (!run.cut) return null;
  const told = Object.entries(run.cut).map(([name, count]) => t(`cut.${name}`, { n: count }));
  return html`<p class="notice" role="status" data-cut>${t("cut.title")} ${told.join(" · ")}</p>`;
}
