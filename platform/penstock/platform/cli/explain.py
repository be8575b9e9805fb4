"""`penstock explain`: a pipeline in words."""

import click

from penstock.platform.cli.choices import stream_argument
from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import example, print_json

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
    from penstock.pipelines.explain import explain, mermaid
    from penstock.pipelines.spark.physical import physical
    from penstock.platform.parallelism import parallelism
    from penstock.platform.streams import plan_of

    plan = plan_of(stream)
    if as_graph:
        click.echo(mermaid(plan), nl=False)
        return
    explanation = explain(plan, physical(plan, parallelism(plan, current_settings())))
    if as_json:
        print_json(explanation.as_json())
    else:
        click.echo(explanation.text(), nl=False)
