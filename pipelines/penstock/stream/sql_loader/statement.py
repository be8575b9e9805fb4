"""The CREATE STREAM statement: its parser, and its conversion to a document."""

from collections.abc import Mapping
from typing import Any

from penstock.stream.sql_loader.keyword_nodes import to_node
from penstock.stream.sql_loader.placed_text import PlacedText
from penstock.stream.sql_loader.queries import SqlQuery, SqlStatement
from penstock.stream.sql_loader.query_documents import QueryConverter
from penstock.stream.sql_loader.query_parser import QueryParser
from penstock.stream.sql_loader.stages import StageChain
from penstock.stream.sql_loader.token_groups import (
    find_closing,
    require_balanced,
    split_at,
    split_commas,
    unexpected_token,
)
from penstock.stream.sql_loader.tokens import SqlFile, SqlToken, Tokens
from penstock.stream.sql_loader.values import SqlValue

DEMO_PREFIX = "demo."
"""Options of CREATE STREAM with this prefix are those of the demonstration."""
OPTION_NAMES = ("name",)


def parse_statement(file: SqlFile) -> SqlStatement:
    """Parse a file with one statement."""
    tokens: Tokens = file.tokenize()
    require_balanced(file, tokens)
    statements = [each for each in split_at(tokens, lambda token: token.is_symbol(";")) if each]
    if len(statements) > 1:
        fix = "Write one statement; further outputs are queries of WITH that end with INTO"
        raise file.problem("SQL", "a second statement", fix, statements[1][0])
    tokens = statements[0] if statements else []
    for number, word in enumerate(("CREATE", "STREAM")):
        if _word_at(tokens, number) != word:
            raise unexpected_token(file, "SQL", _token_at(tokens, number), (word,))
    name = _token_at(tokens, 2)
    if name is None or not name.is_identifier:
        raise file.problem(
            "CREATE STREAM", "the name is missing", f"Write CREATE STREAM {file.path.stem} AS", name
        )
    parser = QueryParser(file)
    options: dict[PlacedText, SqlValue] = {}
    position = 3
    if (
        _word_at(tokens, position) == "WITH"
        and len(tokens) > position + 1
        and tokens[position + 1].is_symbol("(")
    ):
        end = find_closing(tokens, position + 1)
        options = parser.sources.parse_options(tokens[position : end + 1], 0)
        position = end + 1
    if _word_at(tokens, position) != "AS":
        raise unexpected_token(file, "CREATE STREAM", _token_at(tokens, position), ("AS", "WITH"))
    named_queries, query = _parse_queries(file, parser, tokens[position + 1 :], tokens[position])
    return SqlStatement(file.place(name.text, [name]), options, named_queries, query)


def _parse_queries(
    file: SqlFile, parser: QueryParser, tokens: Tokens, after: SqlToken
) -> tuple[dict[PlacedText, SqlQuery], SqlQuery]:
    """Parse the queries of WITH, and the last query."""
    if _word_at(tokens, 0) != "WITH":
        return {}, parser.parse_query(tokens)
    start = next(
        (n for n, token in enumerate(tokens) if token.upper_word == "SELECT" and _depth(tokens, n) == 0), None
    )
    if start is None:
        raise file.problem(
            "WITH", "the last query is missing", "Write SELECT after the queries of WITH", tokens[-1]
        )
    named_queries: dict[PlacedText, SqlQuery] = {}
    for part in split_commas(file, tokens[1:start], "WITH", after):
        with file.collector.collect():
            is_query = (
                len(part) > 3
                and part[0].is_identifier
                and part[1].upper_word == "AS"
                and part[2].is_symbol("(")
            )
            if not is_query or find_closing(part, 2) != len(part) - 1:
                fix = "Write name AS (SELECT ...), and commas between the queries"
                raise file.problem("WITH", f"{part[0].text!r} is not a query with a name", fix, part[0])
            name = file.place(part[0].text, part[:1])
            if name in named_queries:
                raise file.problem(
                    "WITH", f"two queries are named {part[0].text}", "Rename one of them", part[0]
                )
            named_queries[name] = parser.parse_query(part[3:-1])
    return named_queries, parser.parse_query(tokens[start:])


def convert_statement(file: SqlFile, statement: SqlStatement) -> Mapping[str, Any]:
    """Return the document of a statement."""
    if statement.name != file.path.stem:
        fix = f"Write CREATE STREAM {file.path.stem}, or rename the file to {statement.name}.sql"
        problem = f"{str(statement.name)!r} is not the name of the file"
        file.collector.add(file.problem("CREATE STREAM", problem, fix, statement.name))
    converter = QueryConverter(file)
    chains = converter.sources.chains
    for name, query in statement.named_queries.items():
        with file.collector.collect():
            chain = converter.convert(query)
            if chain.is_stage:
                links = chain.with_sections(name=name).links
                chain = StageChain(links, is_stage=True, input_name=name)
            chains[str(name)] = chain
    main = converter.convert(statement.query, is_output=True)
    if "write" not in main.last and "publish" not in main.last:
        main = main.with_sections(write={"table": statement.name})
    read_names = converter.sources.read_names
    outputs = [name for name in statement.named_queries if name in chains and name not in read_names]
    for name in outputs:
        if "write" not in chains[name].last and "publish" not in chains[name].last:
            fix = "Read it in a later query, write INTO at its end, or remove it"
            file.collector.add(file.problem("WITH", f"no query reads {name!s}", fix, name))
    also = [chains[name].fold() for name in outputs]
    options = _convert_options(file, statement)
    if "name" in options:
        main = main.with_sections(name=options.pop("name"))
    return {**main.fold(), **options, **({"also": also} if also else {})}


def _convert_options(file: SqlFile, statement: SqlStatement) -> dict[str, Any]:
    """Return the options of the statement as sections."""
    sections: dict[str, Any] = {}
    for name, value in statement.options.items():
        with file.collector.collect():
            if name.startswith(DEMO_PREFIX):
                sections.setdefault("demo", {})[name.renamed(name.removeprefix(DEMO_PREFIX))] = to_node(value)
            elif name in OPTION_NAMES:
                sections[name] = to_node(value)
            else:
                fix = "Options of a stream are name and demo.*; those of read are after the topic"
                raise file.problem("WITH", f"there is no option {str(name)!r}", fix, name)
    return sections


def _token_at(tokens: Tokens, position: int) -> SqlToken | None:
    return tokens[position] if position < len(tokens) else None


def _word_at(tokens: Tokens, position: int) -> str:
    token = _token_at(tokens, position)
    return "" if token is None else token.upper_word


def _depth(tokens: Tokens, position: int) -> int:
    return sum(token.is_symbol("(") - token.is_symbol(")") for token in tokens[:position])
