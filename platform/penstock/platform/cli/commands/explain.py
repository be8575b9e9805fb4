"""`penstock explain`: describe a pipeline's semantics, plan and state."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import json_option, stream_argument
from penstock.platform.cli.output import format_examples, print_json

if TYPE_CHECKING:
    from penstock.engine.explain import StateSize
    from penstock.stream.forms.form_writer import PipelineForm

SECTION: Section = "Pipelines"

EXAMPLES = format_examples(
    "penstock explain sensor_minute",
    "penstock explain sensor_minute --as sql",
    "penstock explain hashtags --mermaid > hashtags.mmd",
)


@click.command(name="explain", short_help="Explain a pipeline's semantics, plan and state", epilog=EXAMPLES)
@stream_argument
@json_option
@click.option("--mermaid", "as_graph", is_flag=True, help="Print the graph of the stages as Mermaid.")
@click.option(
    "--as",
    "form",
    type=click.Choice(["sql", "yaml", "python"]),
    help="Print the definition in this form; it gives the same plan.",
)
def command(stream: str, as_json: bool, as_graph: bool, form: "PipelineForm | None") -> None:
    """Answer the four questions about a pipeline; show its plan, its state, and when the state expires.

    What is computed; where in event time (windows); when in processing time results appear (triggers); how
    later results of a window relate to earlier ones (accumulation).
    """
    if as_json + as_graph + (form is not None) > 1:
        raise click.UsageError("--json, --mermaid and --as exclude each other; use one of them")
    if form is not None:
        from penstock.pipelines.catalog import load_pipeline
        from penstock.stream.forms.form_writer import write_pipeline

        click.echo(write_pipeline(stream, load_pipeline(stream), form), nl=False)
        return
    from penstock.engine.explain import explain, render_mermaid
    from penstock.engine.spark.physical_plan import describe_physical_plan
    from penstock.platform.services.plan_parallelism import derive_parallelism
    from penstock.platform.services.stream_catalog import load_plan

    plan = load_plan(stream)
    settings = current_settings()
    physical_plan = describe_physical_plan(plan, derive_parallelism(plan, settings))
    if as_graph:
        click.echo(render_mermaid(plan, physical_plan), nl=False)
        return
    sizes = tuple(read_state_sizes(settings.home / "streams", stream))
    explanation = explain(plan, physical_plan, sizes)
    if as_json:
        print_json(explanation.as_json())
    else:
        click.echo(explanation.as_text(), nl=False)


def read_state_sizes(streams: Path, stream: str) -> "Iterator[StateSize]":
    """Yield the state size of each stage after the newest batch; nothing if no batch is committed."""
    from penstock.engine.batch.state_inspection import list_available_batches, read_state_at
    from penstock.engine.explain import StateSize
    from penstock.engine.stream_folders import resolve_stream_folder

    folder = resolve_stream_folder(streams, stream)
    for snapshot in read_state_at(folder).values() if list_available_batches(folder) else ():
        yield StateSize(snapshot.stage, snapshot.batch_id, snapshot.rows, snapshot.bytes)
