"""Short messages with hashtags, whose trends rise and fall."""

from typing import Any, NamedTuple

import numpy as np

from penstock.ingestion.generators.generator import BLOCK_RECORDS
from penstock.ingestion.generators.seeded_generator import SeededGenerator

_HASHTAGS = tuple(
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


class _TweetDraws(NamedTuple):
    tags: list[list[int]]
    numbers: list[int]
    words: list[list[int]]
    users: list[int]
    delays: list[int]


class TweetGenerator(SeededGenerator[_TweetDraws]):
    """Messages with zero to three hashtags. Each tag has its peak; few tags are popular at a time."""

    topic = "tweets"

    def draw_block(self, block: int, rng: np.random.Generator) -> _TweetDraws:
        """Draw tags by their popularity in this block."""
        weight = compute_tag_popularity(block, self.seed)
        return _TweetDraws(
            rng.choice(len(_HASHTAGS), (BLOCK_RECORDS, 3), p=weight).tolist(),
            rng.choice(4, BLOCK_RECORDS, p=(0.2, 0.5, 0.2, 0.1)).tolist(),
            rng.integers(0, len(_WORDS), (BLOCK_RECORDS, 6)).tolist(),
            (rng.zipf(1.5, BLOCK_RECORDS) % 20_000).tolist(),
            rng.integers(0, 3_000, BLOCK_RECORDS).tolist(),
        )

    def make_fields(self, number: int, now_ms: int, draws: _TweetDraws, index: int) -> dict[str, Any]:
        """Return one message."""
        tags = list(dict.fromkeys(_HASHTAGS[tag] for tag in draws.tags[index][: draws.numbers[index]]))
        user = draws.users[index]
        return {
            "id": f"{self.seed}-{number}",
            "user": f"user-{user:05d}",
            "at": now_ms - draws.delays[index],
            "text": " ".join(
                [*(_WORDS[word_index] for word_index in draws.words[index]), *(f"#{tag}" for tag in tags)]
            ),
            "hashtags": tags,
            "language": _LANGUAGES[user % len(_LANGUAGES)],
        }


def compute_tag_popularity(block: int, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the share of each tag in a block: a constant base, and a bell curve around its peak."""
    peaks = np.random.default_rng([seed, 77]).uniform(0, _PERIOD_BLOCKS, len(_HASHTAGS))
    blocks_from_peak = np.abs((block - peaks + _PERIOD_BLOCKS / 2) % _PERIOD_BLOCKS - _PERIOD_BLOCKS / 2)
    weight = 0.2 + 30 * np.exp(-((blocks_from_peak / _TREND_BLOCKS) ** 2))
    share: np.ndarray[Any, np.dtype[np.float64]] = weight / weight.sum()
    return share
