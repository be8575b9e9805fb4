"""Short messages with hashtags, whose trends rise and fall."""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.blocks import BLOCK
from penstock.ingestion.generators.seeded import Seeded

_TAGS = tuple(
    f"{what}{about}" for what in ("rain", "cup", "vote", "song", "game", "train") for about in "abcdefgh"
)
_WORDS = (
    "who",
    "would",
    "have",
    "thought",
    "that",
    "this",
    "comes",
    "again",
    "today",
    "everybody",
    "says",
    "so",
)
_PERIOD_BLOCKS = 120
_TREND_BLOCKS = 6
_LANGUAGES = ("en", "de", "es", "pt")


class _Draws(NamedTuple):
    tags: list[list[int]]
    numbers: list[int]
    words: list[list[int]]
    users: list[int]
    delays: list[int]


class Tweets(Seeded[_Draws]):
    """Messages with no to three hashtags; each tag has its days, and few are talked of at a time."""

    topic = "tweets"

    def draw(self, block: int, source: np.random.Generator) -> _Draws:
        """Draw tags by how much each is talked of in this block."""
        weight = popularity(block, self.seed)
        return _Draws(
            source.choice(len(_TAGS), (BLOCK, 3), p=weight).tolist(),
            source.choice(4, BLOCK, p=(0.2, 0.5, 0.2, 0.1)).tolist(),
            source.integers(0, len(_WORDS), (BLOCK, 6)).tolist(),
            (source.zipf(1.5, BLOCK) % 20_000).tolist(),
            source.integers(0, 3_000, BLOCK).tolist(),
        )

    def fields(self, number: int, now_ms: int, draws: _Draws, place: int) -> dict[str, Any]:
        """Return one message."""
        tags = list(dict.fromkeys(_TAGS[tag] for tag in draws.tags[place][: draws.numbers[place]]))
        user = draws.users[place]
        return {
            "id": f"{self.seed}-{number}",
            "user": f"user-{user:05d}",
            "at": now_ms - draws.delays[place],
            "text": " ".join([*(_WORDS[word] for word in draws.words[place]), *(f"#{tag}" for tag in tags)]),
            "hashtags": tags,
            "language": _LANGUAGES[user % len(_LANGUAGES)],
        }


def popularity(block: int, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the share of each tag in a block: a little always, and a hill when its time comes."""
    peaks = np.random.default_rng([seed, 77]).uniform(0, _PERIOD_BLOCKS, len(_TAGS))
    away = np.abs((block - peaks + _PERIOD_BLOCKS / 2) % _PERIOD_BLOCKS - _PERIOD_BLOCKS / 2)
    weight = 0.2 + 30 * np.exp(-((away / _TREND_BLOCKS) ** 2))
    share: np.ndarray[Any, np.dtype[np.float64]] = weight / weight.sum()
    return share
