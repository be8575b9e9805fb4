package penstock.json;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;

/** Reads one record of a parser. */
final class RecordReader {
    private static final int MAX_SKIPPED_DEPTH = 32;

    private final JsonRecordParser parser;
    private final JsonText text;

    RecordReader(JsonRecordParser parser, byte[] record) {
        this.parser = parser;
        this.text = new JsonText(record);
    }

    /** Returns the row, or null if any part of the record is in doubt. */
    InternalRow read() {
        Object[] values = new Object[parser.width];
        long seenFields = 0;
        text.skipSpace();
        if (!text.take('{')) {
            return null;
        }
        text.skipSpace();
        if (!text.take('}')) {
            int expected = 0;
            do {
                text.skipSpace();
                if (!text.scanString() || text.hasEscapes()) {
                    return null;
                }
                int start = text.stringStart();
                int end = text.stringEnd();
                if (!takeColon()) {
                    return null;
                }
                int field = parser.findField(text.bytes(), start, end, expected);
                if (field < 0) {
                    if (!parser.skipsUnknownFields
                            || parser.isReserved(text.bytes(), start, end)
                            || !skipValue(0)) {
                        return null;
                    }
                } else {
                    long bit = 1L << field;
                    if ((seenFields & bit) != 0 || !readField(field, values, (parser.requiredFields & bit) != 0)) {
                        return null;
                    }
                    seenFields |= bit;
                    expected = field + 1;
                }
                text.skipSpace();
            } while (text.take(','));
            if (!text.take('}')) {
                return null;
            }
        }
        text.skipSpace();
        boolean isComplete = text.isAtEnd() && (parser.requiredFields & ~seenFields) == 0;
        return isComplete ? new GenericInternalRow(values) : null;
    }

    private boolean readField(int field, Object[] values, boolean isRequired) {
        if (text.takeWord("null")) {
            return !isRequired;
        }
        Object value = readValue(field);
        values[parser.positionOf(field)] = value;
        return value != null;
    }

    private Object readValue(int field) {
        switch (parser.kindOf(field)) {
            case STRING:
                return text.scanString() ? text.stringValue() : null;
            case BIGINT:
                return text.scanNumber() ? text.longValue() : null;
            case INT:
                return text.scanNumber() ? text.intValue() : null;
            case DOUBLE:
                return text.scanNumber() ? text.doubleValue() : null;
            case FLOAT:
                return text.scanNumber() ? text.floatValue() : null;
            case DECIMAL:
                return readDecimal(parser.scaleOf(field));
            default:
                return text.takeWord("true") ? Boolean.TRUE : text.takeWord("false") ? Boolean.FALSE : null;
        }
    }

    /** Reads a number, or text that is one. */
    private Object readDecimal(int scale) {
        boolean isText = text.take('"');
        boolean isNumber = text.scanNumber() && (!isText || text.take('"'));
        return isNumber ? text.decimalValue(scale) : null;
    }

    private boolean takeColon() {
        text.skipSpace();
        if (!text.take(':')) {
            return false;
        }
        text.skipSpace();
        return true;
    }

    /** Moves over the value of an unknown field. */
    private boolean skipValue(int depth) {
        if (depth > MAX_SKIPPED_DEPTH) {
            return false;
        }
        if (text.take('{')) {
            return skipItems('}', true, depth);
        }
        if (text.take('[')) {
            return skipItems(']', false, depth);
        }
        return text.scanString()
                || text.takeWord("null")
                || text.takeWord("true")
                || text.takeWord("false")
                || text.scanNumber() && text.isPlainNumber();
    }

    private boolean skipItems(char closing, boolean haveNames, int depth) {
        text.skipSpace();
        if (text.take(closing)) {
            return true;
        }
        do {
            text.skipSpace();
            if (haveNames && !(text.scanString() && takeColon()) || !skipValue(depth + 1)) {
                return false;
            }
            text.skipSpace();
        } while (text.take(','));
        return text.take(closing);
    }
}
