"""What happens in one moment: two things at once, a key before the next picture, an answer that comes too late."""

from playwright.sync_api import expect

from tests.dashboard.browsing import Window
from tests.dashboard.scenes import Scene

TYPE = """(texts) => {
  for (const [name, text] of Object.entries(texts)) {
    const field = document.querySelector(`.filters [name=${name}]`);
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}"""


def test_two_filters_that_are_typed_in_one_moment_both_count(window: Window) -> None:
    window.go("/runs")
    window.sees(".filters")
    window.page.evaluate(TYPE, {"label": "june", "flow": "report"})
    window.is_at("#/runs?label=june&flow=report")


def test_what_is_typed_stays_as_it_was_typed_and_goes_with_its_filter(window: Window) -> None:
    window.go("/runs")
    field = window.find(".filters [name=text]")
    field.press_sequentially("no ")
    window.is_at("#/runs?text=no")
    window.sees(".blank-title", "No run fits")
    field.press_sequentially("such run")
    window.is_at("#/runs?text=no+such+run")
    expect(field).to_have_value("no such run")
    window.find(".blank a", "Clear filters").click()
    expect(field).to_have_value("")


def test_whoever_leaves_searches_no_more(window: Window) -> None:
    """What is typed counts after a quarter of a second: not where somebody else is by then."""
    window.go("/runs")
    window.sees(".filters")
    left = """() => new Promise((done) => {
        (TYPE)({ text: "late" });
        location.hash = "#/workers";
        setTimeout(() => done(location.hash), 300);
    })""".replace("TYPE", TYPE)
    assert window.page.evaluate(left) == "#/workers"


def test_a_question_takes_keys_from_the_moment_it_is_there(window: Window, scene: Scene) -> None:
    number = scene.submit("report", name="asked")
    scene.ended(number)
    window.go(f"/runs/{number}")
    window.sees('[data-act="remove"]')
    pressed = """() => new Promise((done) => {
        new MutationObserver(() => {
            const dialog = document.querySelector("dialog");
            if (dialog) done(dialog.open);
        }).observe(document.body, { childList: true, subtree: true });
        document.querySelector('[data-act="remove"]').click();
    })"""
    assert window.page.evaluate(pressed)
    window.page.keyboard.press("Escape")
    expect(window.find("dialog")).to_have_count(0)


def test_another_list_is_read_on_in_place_of_the_one_that_was_left(window: Window) -> None:
    """The journal has grown, and meanwhile somebody looks at other items."""
    read = """async () => {
        const { html, render } = await import("/static/core/view.js");
        const { useGrowth } = await import("/static/screens/run-items.js");
        const woken = [];
        const size = { peek: () => 1 }, reach = async () => {};
        const pager = (name) => ({ size, reach, wake: async () => woken.push(name) });
        const [left, shown] = [pager("left"), pager("shown")];
        const List = (props) => void useGrowth(props.pager, props.position, { current: 200 });
        const place = document.createElement("div");
        const draw = (props) => render(html`<${List} ...${props} />`, place);
        const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100)));
        draw({ pager: left, position: 1 });
        await drawn();
        draw({ pager: shown, position: 2 });
        for (let looks = 0; !woken.length && looks < 100; looks += 1) await drawn();
        render(null, place);
        return woken;
    }"""
    window.go("/runs")
    window.sees(".filters")
    assert window.page.evaluate(read) == ["shown"]


def test_what_stands_otherwise_is_asked_for_again_at_once(window: Window) -> None:
    """A state that passes before anybody looks is told by the next one."""
    read = """async () => {
        const { html, render } = await import("/static/core/view.js");
        const { useAsked } = await import("/static/core/live.js");
        let seen = 0;
        const Asked = (props) => {
            const { value, loading } = useAsked("/flows", { when: props.when });
            seen = loading ? 0 : value;
            return null;
        };
        const before = window.fetch;
        let asked = 0;
        window.fetch = (url, ...more) => ((asked += String(url).endsWith("/flows")), before(url, ...more));
        const place = document.createElement("div");
        const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        for (const when of ["first", "first", "then"]) {
            const already = asked;
            render(html`<${Asked} when=${when} />`, place);
            const late = () => !seen || (when === "then" && asked === already);
            for (let looks = 0; looks < 500 && late(); looks += 1) await drawn();
        }
        render(null, place);
        window.fetch = before;
        return asked;
    }"""
    window.go("/settings")  # here nobody else asks for flows
    window.sees("h1")
    assert window.page.evaluate(read) == 2
