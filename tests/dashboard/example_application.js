// The pages of an application, made of the dashboard's parts: what an application of one's own looks like.
import { Bar, Card, Chart, FormState, Page, RunLog, SchemaFields, Table, html, number, t, useMemo, useState } from "/static/parts.js";

const schema = { type: "object", properties: { name: { type: "string", description: "A word" } }, required: ["name"] };

function Home() {
  const form = useMemo(() => new FormState(schema), []);
  const [sent, setSent] = useState("");
  const send = (event) => {
    event.preventDefault();
    const { values, fits } = form.read();
    if (fits) setSent(JSON.stringify(values));
  };
  const columns = [
    { name: "word", title: t("example.word"), cell: (row) => row.word },
    { name: "count", title: t("example.count"), cell: (row) => number(row.count) },
  ];
  return html`<${Page} title=${t("app.greetings")}>
    <p class="hello">${t("example.hello", { n: 1234 })}</p>
    <${Bar} done=${3} failed=${1} total=${10} />
    <${Table} label=${t("app.greetings")} columns=${columns} rows=${[{ word: "a", count: 1 }, { word: "b", count: 2 }]} rowKey=${(row) => row.word} />
    <${Card}><${Chart} title=${t("example.count")} times=${[1, 2, 3]} series=${[{ label: "a", tone: "good", values: [1, 2, 3] }]} /><//>
    <form onSubmit=${send}><${SchemaFields} form=${form} /><button class="button">${t("example.send")}</button></form>
    <p class="sent">${sent}</p>
  <//>`;
}

const Log = ({ run }) => html`<${Page} title=${t("app.greetings")}><${RunLog} run=${run} live=${false} /><//>`;

export function register({ route, nav, dictionary }) {
  dictionary({
    en: { "example.hello": "Hello from an application: {n}", "example.word": "Word", "example.count": "Count", "example.send": "Send" },
    ja: { "example.hello": "アプリケーションから：{n}", "example.word": "言葉", "example.count": "数", "example.send": "送信" },
  });
  route("/", Home);
  route("/log/:run", Log);
  nav({ path: "/", title: "app.greetings" });
}
