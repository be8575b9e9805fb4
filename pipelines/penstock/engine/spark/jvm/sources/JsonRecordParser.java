package penstock.json;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * Parses JSON records with fields of plain types.
 *
 * <p>It returns a row only for a record that is valid beyond doubt: strict JSON in UTF-8, each declared field at most
 * once, each value of its type. Any other record gives null, which says nothing about its validity. A parser is
 * immutable, so tasks may share one.
 */
public final class JsonRecordParser implements Serializable {
    static final int MAX_FIELDS = 64;
    private static final long serialVersionUID = 1L;

    final int width;
    final boolean skipsUnknownFields;
    final long requiredFields;
    private final byte[][] names;
    private final byte[][] reservedNames;
    private final FieldKind[] kinds;
    private final int[] scales;
    private final int[] positions;

    /**
     * Makes a parser of rows with this many columns.
     *
     * @param names the names of the declared fields
     * @param types the type of each field in the DDL of Spark; a decimal has 38 digits
     * @param positions the column of each field
     * @param required the names of fields that a valid record has, and that are not null
     * @param reserved the names of columns that are no fields; a record with such a member is not parsed
     */
    public JsonRecordParser(
            int width,
            List<String> names,
            List<String> types,
            List<Integer> positions,
            List<String> required,
            List<String> reserved,
            boolean skipsUnknownFields) {
        int count = names.size();
        if (count > MAX_FIELDS) {
            throw new IllegalArgumentException(count + " fields; this parser takes at most " + MAX_FIELDS);
        }
        this.width = width;
        this.skipsUnknownFields = skipsUnknownFields;
        this.names = encode(names);
        this.reservedNames = encode(reserved);
        this.kinds = new FieldKind[count];
        this.scales = new int[count];
        this.positions = new int[count];
        long requiredBits = 0;
        for (int field = 0; field < count; field++) {
            String[] type = types.get(field).split("[(, )]+");
            this.kinds[field] = FieldKind.valueOf(type[0]);
            this.scales[field] = this.kinds[field] == FieldKind.DECIMAL ? Integer.parseInt(type[2]) : 0;
            this.positions[field] = positions.get(field);
            if (required.contains(names.get(field))) {
                requiredBits |= 1L << field;
            }
        }
        this.requiredFields = requiredBits;
    }

    /** Returns the row of a record, or null if the record cannot be proven valid. */
    public InternalRow parse(byte[] record) {
        return new RecordReader(this, record).read();
    }

    FieldKind kindOf(int field) {
        return kinds[field];
    }

    /** Returns how many digits a decimal has after the point. */
    int scaleOf(int field) {
        return scales[field];
    }

    int positionOf(int field) {
        return positions[field];
    }

    /** Returns the field with a name, or -1; `expected` is the likely one, since members mostly keep their order. */
    int findField(byte[] text, int start, int end, int expected) {
        if (expected < names.length && isName(names[expected], text, start, end)) {
            return expected;
        }
        return findName(names, text, start, end);
    }

    boolean isReserved(byte[] text, int start, int end) {
        return findName(reservedNames, text, start, end) >= 0;
    }

    @Override
    public String toString() {
        return "JsonRecordParser(" + names.length + " fields)";
    }

    private static int findName(byte[][] names, byte[] text, int start, int end) {
        for (int index = 0; index < names.length; index++) {
            if (isName(names[index], text, start, end)) {
                return index;
            }
        }
        return -1;
    }

    private static boolean isName(byte[] name, byte[] text, int start, int end) {
        if (name.length != end - start) {
            return false;
        }
        for (int index = 0; index < name.length; index++) {
            if (name[index] != text[start + index]) {
                return false;
            }
        }
        return true;
    }

    private static byte[][] encode(List<String> names) {
        byte[][] encoded = new byte[names.size()][];
        for (int index = 0; index < encoded.length; index++) {
            encoded[index] = names.get(index).getBytes(StandardCharsets.UTF_8);
        }
        return encoded;
    }
}
