"""The expected tables of the shipped pipelines, computed by DuckDB or a plain loop.

The records of a topic are in the order in which they were sent, without those that were too late for a window.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from tests.pipelines.catalog.test_card_travel import find_impossible_travel
from tests.pipelines.engine.spark.bounded_catalog import START_MS, Record, query_duckdb

from penstock.ingestion.generators.generator import BLOCK_RECORDS
from penstock.ingestion.generators.queries import find_planted_trend
from penstock.pipelines.catalog.card_alerts import MIN_TRAVEL_TIME_MS
from penstock.pipelines.catalog.card_travel import CAPITALS
from penstock.pipelines.catalog.funnel import FUNNEL_STEPS
from penstock.pipelines.catalog.hashtags import MAX_PREFIX_LENGTH

Sent = Mapping[str, Sequence[Record]]
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class ExpectedTable:
    """The rows that a query of a table must return."""

    table: str
    query: str
    rows: Rows

    def read_rows(self, table: pa.Table) -> Rows:
        """Return the rows that the query does return."""
        return query_duckdb(self.query, found=table)


def expect_tables(name: str, sent: Sent) -> list[ExpectedTable]:
    """Return the expected tables of a pipeline."""
    return EXPECTATIONS[name]({topic: list(records) for topic, records in sent.items()})


def drop_duplicates(records: Iterable[Record]) -> list[Record]:
    """Return the first record of each id."""
    first_by_id: dict[str, Record] = {}
    for record in records:
        first_by_id.setdefault(record["id"], record)
    return list(first_by_id.values())


def expect_sql(table: str, query: str, expected: str, **sent: list[Record]) -> ExpectedTable:
    return ExpectedTable(table, f"SELECT {query} FROM found ORDER BY ALL", query_duckdb(expected, **sent))


def word_count(sent: Sent) -> list[ExpectedTable]:
    windows: Counter[tuple[str, int]] = Counter()
    for line in sent["lines"]:
        windows.update(
            (word, start) for word in split_words(line) for start in list_window_starts(line["at"])
        )
    query = "SELECT word, epoch_ms(window_start), times FROM found ORDER BY ALL"
    return [ExpectedTable("latest/word_count", query, sort_counts(windows))]


def word_count_incremental(sent: Sent) -> list[ExpectedTable]:
    (windows,) = word_count(sent)
    query = "SELECT word, begins, times FROM found ORDER BY ALL"
    return [ExpectedTable("panes/word_count_incremental", query, windows.rows)]


def word_totals(sent: Sent) -> list[ExpectedTable]:
    totals = Counter((word,) for line in sent["lines"] for word in split_words(line))
    query = "SELECT word, max(times) FROM found GROUP BY ALL ORDER BY ALL"
    return [ExpectedTable("panes/word_totals", query, sort_counts(totals))]


def split_words(line: Record) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in line["text"].lower()).split()


def list_window_starts(at: int) -> list[int]:
    """List the starts of the 30-second windows that contain a time."""
    newest = at - at % 10_000
    return [newest, newest - 10_000, newest - 20_000]


def sort_counts(counts: Counter[Any]) -> Rows:
    return sorted((*what, times) for what, times in counts.items())


def hashtags(sent: Sent) -> list[ExpectedTable]:
    counts = """
      WITH tagged AS (SELECT "at", unnest(hashtags) AS tag FROM sent),
      placed AS (SELECT tag, unnest(range("at" - "at" % 10000, "at" - 60000, -10000)) AS w FROM tagged)
      SELECT tag, w, count(1) AS uses FROM placed GROUP BY ALL ORDER BY ALL"""
    best = f"""
      WITH counts AS ({counts}),
      typed AS (SELECT tag[:upto] AS typed, w, tag, uses
                FROM counts, unnest(range(1, least(len(tag), {MAX_PREFIX_LENGTH}) + 1)) AS each(upto))
      SELECT typed, w, list(tag ORDER BY uses DESC, tag)[:3] FROM typed GROUP BY ALL ORDER BY ALL"""
    tweets = sent["tweets"]
    return [
        expect_sql("latest/hashtag_counts", "tag, epoch_ms(window_start), uses", counts, sent=tweets),
        expect_sql("latest/hashtags", "typed, epoch_ms(window_start), suggestions", best, sent=tweets),
    ]


VISITS_CTE = """
  WITH paused AS (SELECT *, "at" - lag("at") OVER w > 30000 AS again FROM sent
                  WINDOW w AS (PARTITION BY "user" ORDER BY "at", nth)),
  numbered AS (SELECT *, sum(coalesce(again, false)::INT) OVER (PARTITION BY "user" ORDER BY "at", nth) AS visit
               FROM paused)"""
"""Clicks with the number of their visit."""


def visits(sent: Sent) -> list[ExpectedTable]:
    expected = f"""{VISITS_CTE}
      SELECT "user", min("at"), max("at") + 30000, count(1), count(DISTINCT page), first(page ORDER BY "at", nth),
             last(page ORDER BY "at", nth), list(action ORDER BY "at", nth)
      FROM numbered GROUP BY "user", visit ORDER BY ALL"""
    columns = "clicks, pages, entry_page, exit_page, steps"
    query = f'"user", epoch_ms(window_start), epoch_ms(window_end), {columns}'
    return [expect_sql("latest/visits", query, expected, sent=sent["clicks"])]


def funnel(sent: Sent) -> list[ExpectedTable]:
    of_visits = f"""{VISITS_CTE}
      SELECT "user", min("at"), count(1),
             count_if(action = 'search'), count_if(action = 'add'), count_if(action = 'buy')
      FROM numbered GROUP BY "user", visit ORDER BY ALL"""
    reached = f"""{VISITS_CTE},
      steps AS (SELECT *, CASE action WHEN 'search' THEN 1 WHEN 'add' THEN 2 WHEN 'buy' THEN 3 ELSE 0 END AS step
                FROM numbered),
      visits AS (SELECT "user", visit, max("at") + 29999 AS over, count(1) AS clicks, max(step) AS n
                 FROM steps GROUP BY ALL)
      SELECT over - over % 60000, list_extract({list(FUNNEL_STEPS)}, n + 1), count(1), sum(clicks)
      FROM visits GROUP BY ALL ORDER BY ALL"""
    of_one = '"user", epoch_ms(window_start), clicks, searches, adds, buys'
    clicks = sent["clicks"]
    return [
        expect_sql("latest/funnel_visits", of_one, of_visits, sent=clicks),
        expect_sql("latest/funnel", "epoch_ms(window_start), reached, visits, clicks", reached, sent=clicks),
    ]


def trending(sent: Sent) -> list[ExpectedTable]:
    expected = """
      WITH placed AS (SELECT page, unnest(range("at" - "at" % 10000, "at" - 60000, -10000)) AS w FROM sent),
      looks AS (SELECT page, w, count(1) AS looks FROM placed GROUP BY ALL)
      SELECT w, list(page ORDER BY looks DESC, page)[:5] FROM looks GROUP BY ALL ORDER BY ALL"""
    return [expect_sql("latest/trending", "epoch_ms(window_start), pages", expected, sent=sent["clicks"])]


def activity(sent: Sent) -> list[ExpectedTable]:
    named = {"clicks": "click", "cards": "payment", "tweets": "message"}
    everything = [{"what": what, "at": each["at"]} for topic, what in named.items() for each in sent[topic]]
    expected = """SELECT what, "at" - "at" % 60000, count(1) FROM sent GROUP BY ALL ORDER BY ALL"""
    return [expect_sql("latest/activity", "what, epoch_ms(window_start), events", expected, sent=everything)]


def card_velocity(sent: Sent) -> list[ExpectedTable]:
    expected = """
      WITH placed AS (SELECT *, unnest(range("at" - "at" % 60000, "at" - 600000, -60000)) AS w FROM sent)
      SELECT card, w, count(1), sum(amount), max(amount), count(DISTINCT country)
      FROM placed GROUP BY ALL ORDER BY ALL"""
    query = "card, epoch_ms(window_start), payments, spent, most, countries"
    return [expect_sql("latest/card_velocity", query, expected, sent=drop_duplicates(sent["cards"]))]


def card_alerts(sent: Sent) -> list[ExpectedTable]:
    seen: dict[str, tuple[str, int]] = {}
    alerts = []
    for card in drop_duplicates(sent["cards"]):
        last = seen.get(card["card"])
        if (
            last is not None
            and last[0] != card["country"]
            and abs(card["at"] - last[1]) <= MIN_TRAVEL_TIME_MS
        ):
            alerts.append((card["card"], card["id"], card["country"], last[0], abs(card["at"] - last[1])))
        if last is None or card["at"] >= last[1]:
            seen[card["card"]] = (card["country"], card["at"])
    query = "SELECT card, payment, country, previous_country, apart_ms FROM found ORDER BY ALL"
    return [ExpectedTable("panes/card_alerts", query, sorted(alerts))]


def card_travel(sent: Sent) -> list[ExpectedTable]:
    payments = [each for each in drop_duplicates(sent["cards"]) if each["country"] in CAPITALS]
    query = "SELECT card, payment, previous_payment FROM found ORDER BY ALL"
    return [ExpectedTable("panes/card_travel", query, find_impossible_travel(list(payments)))]


def card_limits(sent: Sent) -> list[ExpectedTable]:
    expected = """
      WITH limits_by_time AS (SELECT card, "at", arg_max(most, nth) AS most FROM limits GROUP BY ALL)
      SELECT cards.id, limits_by_time.most FROM cards ASOF LEFT JOIN limits_by_time
      ON cards.card = limits_by_time.card AND cards."at" >= limits_by_time."at" ORDER BY ALL"""
    tables = {"cards": sent["cards"], "limits": sent["card-limits"]}
    return [expect_sql("panes/card_limits", "payment, most", expected, **tables)]


def payments_parted(sent: Sent) -> list[ExpectedTable]:
    placed = """SELECT {key}, "at" - "at" % {size} AS w, count(1), {of}(amount)
                FROM sent WHERE {where} GROUP BY ALL ORDER BY ALL"""
    outputs = (
        ("payments_parted", "card", 60_000, "max", "most", "amount > 200"),
        ("payments_online", "merchant", 60_000, "sum", "spent", "amount <= 200 AND online"),
        ("payments_by_country", "country", 300_000, "sum", "spent", "amount <= 200 AND NOT online"),
    )
    return [
        expect_sql(
            f"latest/{table}",
            f"{key}, epoch_ms(window_start), payments, {column}",
            placed.format(key=key, size=size, of=of, where=where),
            sent=sent["cards"],
        )
        for table, key, size, of, column, where in outputs
    ]


def click_through(sent: Sent) -> list[ExpectedTable]:
    expected = """
      WITH events AS (
        SELECT id AS showing, "at" AS t, ad FROM shown UNION ALL SELECT impression, "at", NULL FROM clicked),
      apart AS (
        SELECT *, t - lag(t) OVER of_one > 600000 AS begins FROM events
        WINDOW of_one AS (PARTITION BY showing ORDER BY t)),
      numbered AS (
        SELECT *, sum(coalesce(begins, false)::INT) OVER of_one AS session FROM apart
        WINDOW of_one AS (PARTITION BY showing ORDER BY t RANGE UNBOUNDED PRECEDING)),
      sessions AS (
        SELECT any_value(ad) AS ad, max(t) + 599999 AS over, min(t) FILTER (ad IS NOT NULL) AS shown,
          coalesce(list(t) FILTER (ad IS NULL), []) AS clicks FROM numbered GROUP BY showing, session)
      SELECT ad, over - over % 600000, count(1),
        sum(len([c FOR c IN clicks IF c BETWEEN shown AND shown + 600000]))
      FROM sessions WHERE shown IS NOT NULL GROUP BY ALL ORDER BY ALL"""
    query = "ad, epoch_ms(window_start), showings, clicks"
    tables = {"shown": sent["impressions"], "clicked": sent["ad-clicks"]}
    return [expect_sql("latest/click_through", query, expected, **tables)]


def sensor_minute(sent: Sent) -> list[ExpectedTable]:
    by_device = """SELECT device, "at" - "at" % 60000, round(avg(temperature), 6), count(1)
                   FROM sent GROUP BY ALL ORDER BY ALL"""
    query = "device, epoch_ms(window_start), round(temperature, 6), readings"
    return [expect_sql("latest/sensor_minute", query, by_device, sent=sent["sensors"])]


def device_and_site(sent: Sent) -> list[ExpectedTable]:
    (by_device,) = sensor_minute(sent)
    by_site = """SELECT site, "at" - "at" % 120000, max(temperature), count(1)
                 FROM sent GROUP BY ALL ORDER BY ALL"""
    query = "site, epoch_ms(window_start), warmest, readings"
    return [
        ExpectedTable("latest/device_and_site", by_device.query, by_device.rows),
        expect_sql("latest/site_minutes", query, by_site, sent=sent["sensors"]),
    ]


def last_readings(sent: Sent) -> list[ExpectedTable]:
    readings_by_device: defaultdict[str, list[float | None]] = defaultdict(list)
    expected = []
    for reading in sent["sensors"]:
        history = readings_by_device[reading["device"]]
        history.append(reading.get("temperature"))
        if len(history) % 10 == 0:
            last = [value for value in history[-100:] if value is not None]
            mean = math.fsum(last) / len(last)
            expected.append((reading["device"], len(history[-100:]), round(mean, 6), min(last), max(last)))
    columns = "readings, round(mean, 6), least, most"
    return [
        ExpectedTable(
            "panes/last_readings", f"SELECT device, {columns} FROM found ORDER BY ALL", sorted(expected)
        )
    ]


def temperature_rises(sent: Sent) -> list[ExpectedTable]:
    open_windows: dict[str, list[float | None]] = {}
    expected = []
    for reading in sent["sensors"]:
        device, now = reading["device"], reading.get("temperature")
        history = open_windows.setdefault(device, [])
        known = [value for value in history if value is not None]
        if now is not None and known and now - known[0] > 1:
            expected.append((device, len(history), known[0]))
            history.clear()
        history.append(now)
    query = "SELECT device, readings, first_temperature FROM found ORDER BY ALL"
    return [ExpectedTable("panes/temperature_rises", query, sorted(expected))]


def batch_runs(sent: Sent) -> list[ExpectedTable]:
    expected = """
      WITH numbered AS (SELECT *, coalesce(sum((phase = 'end')::INT) OVER (PARTITION BY oven ORDER BY nth
                                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS run FROM sent)
      SELECT oven, run, count(1), max(temperature), round(avg(temperature), 6), last(recipe ORDER BY nth)
      FROM numbered GROUP BY ALL HAVING bool_or(phase = 'end') ORDER BY ALL"""
    query = "oven, window_number, readings, hottest, round(mean, 6), recipe"
    return [expect_sql("panes/batch_runs", query, expected, sent=sent["ovens"])]


def running_avg(sent: Sent) -> list[ExpectedTable]:
    expected = "SELECT key, round(avg(value), 6), count(1) FROM sent GROUP BY ALL ORDER BY ALL"
    return [expect_sql("latest/running_avg", 'key, round(mean, 6), "values"', expected, sent=sent["avg"])]


def flight_delays(sent: Sent) -> list[ExpectedTable]:
    expected = """
      SELECT origin, planned - planned % 3600000, count(1), avg(dep_delay), max(dep_delay),
             quantile_disc(dep_delay, [0.5, 0.9]) FROM sent GROUP BY ALL ORDER BY ALL"""
    query = "origin, epoch_ms(window_start), flights, delay, worst, shares"
    return [expect_sql("latest/flight_delays", query, expected, sent=sent["flights"])]


def zeitgeist(sent: Sent) -> list[ExpectedTable]:
    """Expect the trends that the generator planted, each in its block of ten seconds."""
    query_ids = [each for record in sent["queries"] for each in [record["id"].split("-")] if len(each) == 2]
    seed, blocks = int(query_ids[0][0]), max(int(number) for _, number in query_ids) // BLOCK_RECORDS + 1
    truth = [(find_planted_trend(seed, block), block) for block in range(blocks)]
    rows = [(each.query, each.trend, block) for each, block in truth if each is not None]
    block = f"(epoch_ms(window_start) - {START_MS}) // 10000"
    query = f"SELECT query, trend, {block} FROM found WHERE {block} < {blocks} ORDER BY ALL"
    return [ExpectedTable("panes/zeitgeist", query, sorted(rows))]


def nexmark(sent: Sent) -> list[ExpectedTable]:
    tables = {each: sent[f"nexmark-{each}"] for each in ("persons", "auctions", "bids")}
    hottest = """
      WITH placed AS (SELECT auction, unnest(range("at" - "at" % 2000, "at" - 10000, -2000)) AS w FROM bids),
      counted AS (SELECT auction, w, count(1) AS n FROM placed GROUP BY ALL)
      SELECT w, list(auction ORDER BY n DESC, auction)[:3] FROM counted GROUP BY ALL ORDER BY ALL"""
    highest = """
      SELECT "at" - "at" % 10000, max(price), [arg_max(auction, price)] FROM bids GROUP BY ALL ORDER BY ALL"""
    newcomers = """
      SELECT DISTINCT persons.id, city, persons.at - persons.at % 10000 FROM persons
      JOIN auctions ON seller = persons.id AND auctions.at - auctions.at % 10000 = persons.at - persons.at % 10000
      ORDER BY ALL"""
    return [
        expect_sql("latest/nexmark", "epoch_ms(window_start), auctions", hottest, **tables),
        expect_sql("latest/highest_bids", "epoch_ms(window_start), price, auction", highest, **tables),
        expect_sql("panes/selling_newcomers", "person, city, epoch_ms(window_start)", newcomers, **tables),
    ]


EXPECTATIONS: Mapping[str, Callable[[Mapping[str, list[Record]]], list[ExpectedTable]]] = {
    each.__name__: each
    for each in (
        activity, batch_runs, card_alerts, card_limits, card_travel, card_velocity, click_through,
        device_and_site, flight_delays, funnel, hashtags, last_readings, nexmark, payments_parted, running_avg,
        sensor_minute, temperature_rises, trending, visits, word_count, word_count_incremental, word_totals,
        zeitgeist,
    )
}  # fmt: skip
