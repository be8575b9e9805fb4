package penstock.json;

/** How a field is written in JSON, and which value Spark stores for it. */
enum FieldKind {
    STRING,
    BIGINT,
    INT,
    DOUBLE,
    FLOAT,
    BOOLEAN,
    DECIMAL
}
