// Serves `@copilotkit/aimock` until its stdin is closed; prints its address. Each argument is a status that a request is refused with first.
import { LLMock } from "@copilotkit/aimock";

const mock = new LLMock({ port: 0, logLevel: "silent" });
mock.onMessage(/why/, { content: "because" });
mock.onMessage(/colour/, { content: '{"colour": "red"}' });
for (const status of process.argv.slice(2)) mock.nextRequestError(Number(status), { message: "not now" });
await mock.start();
console.log(mock.url);
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
