"""`penstock explain`: a pipeline in words."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.choices import stream_argument
from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import example, print_json

if TYPE_CHECKING:
    from penstock.pipelines.explain import Size

EXAMPLE = example("penstock explain sensor_minute", "penstock explain hashtags --mermaid > hashtags.mmd")


@click.command(name="explain", epilog=EXAMPLE)
@stream_argument
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
@click.option("--mermaid", "as_graph", is_flag=True, help="Print the graph of its stages in Mermaid's words.")
def command(stream: str, as_json: bool, as_graph: bool) -> None:
    """Answer the four questions of a pipeline in words; show its plan, its state, and when that goes.

    What: what is computed. Where: in which windows of event time. When: at which moments results appear. How:
    how a later result of a window relates to those before it.
    """
    if as_json and as_graph:
        raise click.UsageError("--json and --mermaid print two things; write one of them")
    from penstock.pipelines.explain import explain, mermaid
    from penstock.pipelines.spark.physical import physical
    from penstock.platform.parallelism import parallelism
    from penstock.platform.streams import plan_of

    plan = plan_of(stream)
    settings = current_settings()
    running = physical(plan, parallelism(plan, settings))
    if as_graph:
        click.echo(mermaid(plan, running), nl=False)
        return
    sizes = tuple(kept_now(settings.home / "streams", stream))
    explanation = explain(plan, running, sizes)
    if as_json:
        print_json(explanation.as_json())
    else:
        click.echo(explanation.text(), nl=False)


def kept_now(streams: Path, stream: str) -> "Iterator[Size]":
    """Yield how much each stage keeps after the newest batch; nothing where none was decided."""
    from penstock.pipelines.batch.inspecting import batches, state_at
    from penstock.pipelines.explain import Size
    from penstock.pipelines.host.folders import folder_of_stream

    folder = folder_of_stream(streams, stream)
    for kept in state_at(folder).values() if batches(folder) else ():
        yield Size(kept.stage, kept.batch_id, kept.rows, kept.bytes)
