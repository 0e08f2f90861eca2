"""Names of sellers and models: those of the shipped tables where an alias is known, a clean slug otherwise."""

from __future__ import annotations

import re
from functools import cache

from analysis.reference import tables

ALIAS_COLUMNS = ("seller", "name", "model")

#: Sellers whose name in a feed differs from ours by more than the spelling.
_SELLERS = {
    "aws": "bedrock",
    "bedrock-converse": "bedrock",
    "cohere-chat": "cohere",
    "fireworks-ai": "fireworks",
    "gemini": "google",
    "together-ai": "together",
    "vercel-ai-gateway": "vercel-gateway",
    "wandb": "wandb-coreweave",
    "x-ai": "xai",
}
#: Makers of models, which feeds put before a model's name. What stands there otherwise (a region, an
#: account) changes the price, so it stays in the name.
_MAKER = re.compile(
    r"(accounts/fireworks/models|ai21|amazon|anthropic|cohere|deepseek|deepseek-ai|google|inception|meta|meta-llama"
    r"|microsoft|minimax|minimaxai|mistral|mistralai|moonshotai|nvidia|openai|perplexity|qwen|x-ai|z-ai|zai-org)/"
)
#: Parts of a name that do not tell models apart.
_SAME_MODEL = re.compile(r"\b(instruct|turbo|maas|versatile|instant|fp8|latest|meta|databricks|free)\b|-v\d+-\d+$")


def slug(text: str) -> str:
    """Make a name lower case, of letters, digits and ``. _ + -``; blank if nothing is left.

    Examples
    --------
    >>> slug(", CA, NA"), slug("Standard_ND96isr_H100_v5"), slug("@cf/meta/Llama:free")
    ('ca-na', 'standard_nd96isr_h100_v5', 'cf-meta-llama-free')
    """
    return re.sub(r"[^a-z0-9._+-]+", "-", text.lower()).lstrip("._+-").rstrip("-")


def seller(text: str) -> str:
    """Name a seller.

    Examples
    --------
    >>> seller("vertex_ai-anthropic_models"), seller("text-completion-openai"), seller("DeepInfra")
    ('vertex', 'openai', 'deepinfra')
    """
    name = slug(text).replace("_", "-").removeprefix("text-completion-")
    return "vertex" if name.startswith("vertex-ai") else _SELLERS.get(name, name)


@cache
def aliases() -> dict[tuple[str, str], str]:
    """Read the names under which feeds list models of the shipped tables, by seller (blank for any) and name."""
    rows = tables.read_csv_strict(tables.DATA / "model_aliases.csv", ALIAS_COLUMNS)
    return {(row["seller"], row["name"]): row["model"] for row in rows}


def model(text: str, *, sold_by: str) -> str:
    """Name a model.

    Where the table has a line for the seller, the other names of that model keep their maker, so that
    two offers of one seller do not share a name.

    Examples
    --------
    >>> model("meta-llama/Llama-3.3-70B-Instruct", sold_by="nebius")
    'llama-3.3-70b'
    >>> model("meta-llama/Llama-3.3-70B-Instruct", sold_by="deepinfra")
    'meta-llama-llama-3.3-70b-instruct'
    >>> model("eu/gpt-5", sold_by="azure")
    'eu-gpt-5'
    """
    whole = text.strip().lower()
    name = whole[maker.end() :] if (maker := _MAKER.match(whole)) else whole
    own = aliases().get((sold_by, name))
    if own is not None:
        return own
    common = aliases().get(("", name), slug(name))
    taken = any(who == sold_by and of == common for (who, _), of in aliases().items())
    return slug(whole) if taken else common


def family(model_slug: str) -> str:
    """Return what the names of one model have in common at different sellers.

    Examples
    --------
    >>> family("llama-3.3-70b-instruct-turbo") == family("llama-3.3-70b")
    True
    """
    return re.sub(r"[^a-z0-9]", "", _SAME_MODEL.sub("", model_slug))
