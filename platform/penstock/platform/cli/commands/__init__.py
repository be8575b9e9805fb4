"""The commands of `penstock`, one module each; the module's name is the name of the command.

To add a command, write a module that defines `command`, and the `SECTION` of `penstock --help` that lists it. Give
it a short help text, and examples with `format_examples`. Import what is slow to load inside of the function.
"""
