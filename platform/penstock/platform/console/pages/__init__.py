"""The pages of the console. Each module offers `ROUTES`, a list of Starlette routes; discovery finds them.

A page that shows what changes is a `LivePage`: the name of its template, and a function that reads its view model.
"""
