"""The page of wheels: one is dropped for some workers, refused in words, seen on a worker, deleted, told of."""

import base64
import signal
from pathlib import Path

from playwright.sync_api import expect

from tests.dashboard.browsing import Window
from tests.dashboard.scenes import Scene
from tests.wheels.making import flow_wheel

DROP = """([name, content]) => {
  const bytes = Uint8Array.from(atob(content), (one) => one.charCodeAt(0));
  const carried = new DataTransfer();
  carried.items.add(new File([bytes], name));
  const dropped = new DragEvent("drop", { dataTransfer: carried, bubbles: true, cancelable: true });
  document.querySelector("[data-drop=wheel]").dispatchEvent(dropped);
}"""


def test_a_wheel_is_dropped_seen_on_a_worker_and_deleted(window: Window, scene: Scene, tmp_path: Path) -> None:
    wheel = flow_wheel(tmp_path, "dropped", "1.0")
    content = base64.b64encode(wheel.read_bytes()).decode()
    worker = scene.room.worker("--worker-id", "syncer", "--tags", "page", "--wheel-sync")
    window.go("/wheels")
    window.page.get_by_label("For workers tagged").fill("page")
    window.page.evaluate(DROP, [wheel.name, content])
    row = window.find(f'tr[data-row="{wheel.name}"]')
    expect(row).to_contain_text("dropped")
    expect(row).to_contain_text("page")
    expect(window.find('tr[data-row="syncer"]')).to_contain_text(wheel.name)
    expect(window.find('tr[data-row="syncer"] [data-sync="ok"]')).to_have_text("in step")
    window.expected.append("409 (Conflict)")
    window.page.evaluate(DROP, [wheel.name, content])
    window.sees('[data-drop="wheel"] [role="alert"]', "wheel version already exists; bump version")
    window.expected.append("422 (Unprocessable")
    window.page.evaluate(DROP, ["other-1.0-py3-none-any.whl", content])
    window.sees('[data-drop="wheel"] [role="alert"]', "invalid wheel file: ")
    row.locator('[data-verb="delete"]').click()
    expect(window.find("dialog code")).to_contain_text(f"tsuzuki wheels delete {wheel.name}")
    window.find("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    window.sees("td", "deleted")
    expect(window.find('tr[data-row="syncer"]')).not_to_contain_text(wheel.name)
    worker.send(signal.SIGTERM)  # in order: other tests count who lives
    worker.ended()
