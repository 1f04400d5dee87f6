// Lists runs and workers by the public API, again every two seconds.
const state = document.getElementById("state");
const form = document.getElementById("key");
let key = "";

async function ask(path) {
  const answer = await fetch(path, { headers: key ? { "X-API-Key": key } : {} });
  const body = await answer.json();
  if (answer.status === 401 || answer.status === 403) form.hidden = false;
  if (!answer.ok) throw new Error(body.detail);
  return body;
}

function fill(id, rows) {
  document.getElementById(id).replaceChildren(
    ...rows.map((cells) => {
      const row = document.createElement("tr");
      row.append(...cells.map((text) => Object.assign(document.createElement("td"), { textContent: text ?? "" })));
      return row;
    }),
  );
}

async function show() {
  try {
    const [runs, workers] = await Promise.all([ask("/runs?limit=50"), ask("/workers?scope=all")]);
    fill("runs", runs.map((r) => [r.number, r.flow_name, r.status, r.counts.done, r.counts.failed, r.worker_id, r.error]));
    fill("workers", workers.map((w) => [w.worker_id, w.state, w.tags.join(", "), w.current_run_id]));
    state.textContent = `${runs.length} runs, ${workers.length} workers`;
  } catch (error) {
    state.textContent = String(error.message);
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  key = new FormData(form).get("key");
  show();
});

show();
setInterval(show, 2000);
