"""Types of fields: one module for each type, found by discovery.

To add a type, add a module with a frozen dataclass that derives from `FieldType` (or `PlainType`). Define `keyword`
and what mypy names. Nothing lists the types by hand.

A value of a type has these forms:

- *wire*: the member of a JSON object, or the Avro value.
- *decoded*: the Python value of `annotation`, as in a record that the codecs return.
- *stored*: the value of the Spark column of type `spark_type`.
"""
