"""`penstock up`: the local stack, running."""

import click

from penstock.platform.cli.context import control_store, current_settings
from penstock.platform.cli.output import Steps, called, example


@click.command(name="up", epilog=example("penstock up", "PENSTOCK_DAGSTER__PORT=3100 penstock up"))
@click.option(
    "--wait", default=90.0, show_default=True, help="Seconds to wait for first results; 0 for none."
)
def command(wait: float) -> int:
    """Start broker, feed, stream host and Dagster, or what is missing of them.

    Said again it changes nothing that is already right. A start that fails leaves nothing running.
    """
    from penstock.platform.cli.status import show_status
    from penstock.platform.stack.results import wait_for_results
    from penstock.platform.stack.start import bring_up
    from penstock.platform.streams import check_stream, shown_by

    settings, steps, penstock = current_settings(), Steps(), called()
    bring_up(settings, steps)
    broken = [stream for stream in settings.streams if check_stream(stream) is not None]
    missing: tuple[str, ...] = ()
    if wait > 0:
        sound = [stream for stream in settings.streams if stream not in broken]
        with steps.step("first results are looked for"), control_store(settings) as store:
            missing = wait_for_results(store, sound, wait)
    click.echo()
    show_status(settings)
    click.echo(f"\nDagster's UI       http://127.0.0.1:{settings.dagster.port}")
    for stream in settings.streams:
        why = f"not there yet: {penstock} status" if stream in missing else ""
        why = "waits for its file to be mended" if stream in broken else why
        click.echo(f"Results            {shown_by(stream, penstock)}{f'  ({why})' if why else ''}")
    click.echo(f"How it fares       {penstock} status\nTo stop it         {penstock} down")
    return 1 if missing or broken else 0
