package penstock.json;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.types.UTF8String;

/** A position in the text of a record, and the string or number that was scanned last. */
final class JsonText {
    private static final int EXACT_DIGITS = 15;
    private static final int MAX_LONG_DIGITS = 18;
    private static final double[] POWERS_OF_TEN = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15
    };

    private final byte[] bytes;
    private final int end;
    private int position;
    private int tokenStart;
    private int tokenEnd;
    private boolean hasEscapes;
    private boolean isNegative;
    private boolean hasExponent;
    private long digits;
    private int digitCount;
    private int fractionDigits;

    JsonText(byte[] bytes) {
        this.bytes = bytes;
        this.end = bytes.length;
    }

    byte[] bytes() {
        return bytes;
    }

    boolean isAtEnd() {
        return position == end;
    }

    void skipSpace() {
        while (position < end) {
            byte current = bytes[position];
            if (current != ' ' && current != '\n' && current != '\r' && current != '\t') {
                return;
            }
            position++;
        }
    }

    boolean take(char expected) {
        if (position < end && bytes[position] == expected) {
            position++;
            return true;
        }
        return false;
    }

    boolean takeWord(String word) {
        int length = word.length();
        if (end - position < length) {
            return false;
        }
        for (int index = 0; index < length; index++) {
            if (bytes[position + index] != word.charAt(index)) {
                return false;
            }
        }
        position += length;
        return true;
    }

    /** Moves over a string in strict JSON and UTF-8. */
    boolean scanString() {
        if (!take('"')) {
            return false;
        }
        tokenStart = position;
        hasEscapes = false;
        int next = position;
        while (next >= 0 && next < end) {
            byte current = bytes[next];
            if (current == '"') {
                tokenEnd = next;
                position = next + 1;
                return true;
            }
            if (current == '\\') {
                hasEscapes = true;
                next = StringParts.afterEscape(bytes, next, end);
            } else if (current < 0) {
                next = StringParts.afterCharacter(bytes, next, end);
            } else {
                next = current < ' ' ? -1 : next + 1;
            }
        }
        return false;
    }

    boolean hasEscapes() {
        return hasEscapes;
    }

    int stringStart() {
        return tokenStart;
    }

    int stringEnd() {
        return tokenEnd;
    }

    UTF8String stringValue() {
        if (!hasEscapes) {
            return UTF8String.fromBytes(bytes, tokenStart, tokenEnd - tokenStart);
        }
        return UTF8String.fromBytes(StringParts.unescape(bytes, tokenStart, tokenEnd));
    }

    /** Moves over a number in strict JSON. */
    boolean scanNumber() {
        int next = position;
        tokenStart = position;
        isNegative = next < end && bytes[next] == '-';
        if (isNegative) {
            next++;
        }
        digits = 0;
        int start = next;
        next = scanDigits(next);
        digitCount = next - start;
        if (digitCount == 0 || digitCount > 1 && bytes[start] == '0') {
            return false;
        }
        fractionDigits = 0;
        if (next < end && bytes[next] == '.') {
            start = next + 1;
            next = scanDigits(start);
            fractionDigits = next - start;
            if (fractionDigits == 0) {
                return false;
            }
            digitCount += fractionDigits;
        }
        hasExponent = next < end && (bytes[next] == 'e' || bytes[next] == 'E');
        if (hasExponent) {
            next++;
            if (next < end && (bytes[next] == '+' || bytes[next] == '-')) {
                next++;
            }
            start = next;
            next = scanDigits(start);
            if (next == start) {
                return false;
            }
        }
        tokenEnd = next;
        position = next;
        return true;
    }

    /** Whether the number has neither an exponent nor more digits than a BIGINT. */
    boolean isPlainNumber() {
        return !hasExponent && digitCount <= MAX_LONG_DIGITS;
    }

    Long longValue() {
        boolean isInteger = fractionDigits == 0 && isPlainNumber();
        return isInteger ? Long.valueOf(isNegative ? -digits : digits) : null;
    }

    Integer intValue() {
        Long value = longValue();
        return value != null && value == value.intValue() ? Integer.valueOf(value.intValue()) : null;
    }

    /** Returns the nearest double; null if there is none, or for the integer -0, which has no sign in Python. */
    Double doubleValue() {
        if (isNegativeIntegerZero()) {
            return null;
        }
        if (!hasExponent && digitCount <= EXACT_DIGITS) {
            // Both operands are exact, so the quotient is the nearest double.
            double value = digits / POWERS_OF_TEN[fractionDigits];
            return Double.valueOf(isNegative ? -value : value);
        }
        double value = Double.parseDouble(numberText());
        return Double.isInfinite(value) ? null : Double.valueOf(value);
    }

    Float floatValue() {
        if (isNegativeIntegerZero()) {
            return null;
        }
        float value = Float.parseFloat(numberText());
        return Float.isInfinite(value) ? null : Float.valueOf(value);
    }

    /** Returns a decimal of 38 digits, so many of them after the point; null if the number has more. */
    Decimal decimalValue(int scale) {
        boolean fits = fractionDigits <= scale && digitCount - fractionDigits <= DecimalType.MAX_PRECISION() - scale;
        if (!fits || !isPlainNumber()) {
            return null;
        }
        BigDecimal value = BigDecimal.valueOf(isNegative ? -digits : digits, fractionDigits);
        return Decimal.apply(value, DecimalType.MAX_PRECISION(), scale);
    }

    private boolean isNegativeIntegerZero() {
        return isNegative && fractionDigits == 0 && digits == 0;
    }

    private String numberText() {
        return new String(bytes, tokenStart, tokenEnd - tokenStart, StandardCharsets.ISO_8859_1);
    }

    private int scanDigits(int next) {
        while (next < end) {
            int digit = bytes[next] - '0';
            if (digit < 0 || digit > 9) {
                return next;
            }
            digits = digits * 10 + digit;
            next++;
        }
        return next;
    }
}
