package penstock.json;

/** The escapes and the characters of several bytes in a string of JSON. */
final class StringParts {
    private static final String ESCAPES = "\"\\/bfnrt";
    private static final String ESCAPED = "\"\\/\b\f\n\r\t";
    private static final int UNICODE_ESCAPE_BYTES = 6;

    private StringParts() {}

    /** Returns the position after an escape, or -1 if it is invalid or half of a character. */
    static int afterEscape(byte[] bytes, int at, int end) {
        if (at + 1 >= end) {
            return -1;
        }
        if (bytes[at + 1] != 'u') {
            return ESCAPES.indexOf(bytes[at + 1]) < 0 ? -1 : at + 2;
        }
        int unit = readUnit(bytes, at, end);
        int next = at + UNICODE_ESCAPE_BYTES;
        if (unit < 0 || Character.isLowSurrogate((char) unit)) {
            return -1;
        }
        if (!Character.isHighSurrogate((char) unit)) {
            return next;
        }
        int low = readUnit(bytes, next, end);
        return low >= 0 && Character.isLowSurrogate((char) low) ? next + UNICODE_ESCAPE_BYTES : -1;
    }

    /** Returns the position after a character of several bytes, or -1 if it is not UTF-8. */
    static int afterCharacter(byte[] bytes, int at, int end) {
        int first = bytes[at] & 0xff;
        int length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
        if (first < 0xc2 || first > 0xf4 || at + length > end) {
            return -1;
        }
        for (int index = 1; index < length; index++) {
            if ((bytes[at + index] & 0xc0) != 0x80) {
                return -1;
            }
        }
        int second = bytes[at + 1] & 0xff;
        boolean isOverlong = first == 0xe0 && second < 0xa0 || first == 0xf0 && second < 0x90;
        boolean isSurrogate = first == 0xed && second > 0x9f;
        boolean isTooLarge = first == 0xf4 && second > 0x8f;
        return isOverlong || isSurrogate || isTooLarge ? -1 : at + length;
    }

    /** Returns the UTF-8 of a string that was scanned. */
    static byte[] unescape(byte[] bytes, int start, int end) {
        byte[] text = new byte[end - start];
        int length = 0;
        int at = start;
        while (at < end) {
            if (bytes[at] != '\\') {
                text[length++] = bytes[at++];
            } else if (bytes[at + 1] != 'u') {
                text[length++] = (byte) ESCAPED.charAt(ESCAPES.indexOf(bytes[at + 1]));
                at += 2;
            } else {
                int character = readUnit(bytes, at, end);
                at += UNICODE_ESCAPE_BYTES;
                if (Character.isHighSurrogate((char) character)) {
                    character = Character.toCodePoint((char) character, (char) readUnit(bytes, at, end));
                    at += UNICODE_ESCAPE_BYTES;
                }
                length = append(text, length, character);
            }
        }
        byte[] exact = new byte[length];
        System.arraycopy(text, 0, exact, 0, length);
        return exact;
    }

    /** Returns the UTF-16 unit of an escape, or -1 if there is none at this position. */
    private static int readUnit(byte[] bytes, int at, int end) {
        if (at + UNICODE_ESCAPE_BYTES > end || bytes[at] != '\\' || bytes[at + 1] != 'u') {
            return -1;
        }
        int unit = 0;
        for (int index = at + 2; index < at + UNICODE_ESCAPE_BYTES; index++) {
            int digit = bytes[index] < 0 ? -1 : Character.digit(bytes[index], 16);
            if (digit < 0) {
                return -1;
            }
            unit = unit << 4 | digit;
        }
        return unit;
    }

    private static int append(byte[] text, int length, int character) {
        if (character < 0x80) {
            text[length++] = (byte) character;
        } else if (character < 0x800) {
            text[length++] = (byte) (0xc0 | character >> 6);
            text[length++] = (byte) (0x80 | character & 0x3f);
        } else {
            if (character < 0x10000) {
                text[length++] = (byte) (0xe0 | character >> 12);
            } else {
                text[length++] = (byte) (0xf0 | character >> 18);
                text[length++] = (byte) (0x80 | character >> 12 & 0x3f);
            }
            text[length++] = (byte) (0x80 | character >> 6 & 0x3f);
            text[length++] = (byte) (0x80 | character & 0x3f);
        }
        return length;
    }
}
