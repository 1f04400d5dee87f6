"""Who makes the notes, where what is said of them fits together: nobody wants other notes than they asked for."""

from typing import TYPE_CHECKING, Any, Final

from tsuzuki import llm
from tsuzuki.apps.notes.refusals import both
from tsuzuki.errors import BadUsage

if TYPE_CHECKING:
    from tsuzuki.llm.providers.interface import Provider

_OFFLINE_MODEL: Final = "rules"


def from_here_on(options: dict[str, Any], provider: str, base_url: str, model: str) -> llm.Address:
    """Gives who is asked from here on: what is not named stays as it was, unless somebody else is asked."""
    if provider:
        return llm.Address(provider, base_url, model)
    return llm.Address(options["provider"], base_url or options["base_url"], model or options["model"])


def opened(address: llm.Address) -> "Provider":
    """Gives the provider at an address; refuses a model or an address that nobody there would use."""
    try:
        provider = llm.opened(address, watched=True)
    except BadUsage as error:
        raise BadUsage(
            both(
                f"モデルを使えません。プロバイダー、アドレス、キーを確認してください（{error}）",
                f"the model is of no use: {error}",
            )
        ) from None
    if provider.name == "offline" and (address.base_url or address.model not in ("", _OFFLINE_MODEL)):
        named = address.model or address.base_url.rpartition("@")[2]  # without a password
        raise BadUsage(
            f"{named} を使うプロバイダーが選ばれていません。openai や ollama などのプロバイダーも指定してください / "
            f"{named} is named, and nobody who would use it: notes would be made by rules, offline. Name its provider "
            "too, such as openai or ollama (--llm, TSUZUKI_LLM_PROVIDER), or leave it out"
        )
    return provider
