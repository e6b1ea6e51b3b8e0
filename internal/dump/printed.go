package dump

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// style is the form in which a tensor was printed.
type style string

const (
	styleCompact style = "COMPACT" // of MAX: corners only, fixed decimals
	styleFull    style = "FULL"    // of MAX: every element, with an exponent
	styleTorch   style = "torch"   // repr of a torch.Tensor
)

// A record is one printed tensor.
type record struct {
	Label string
	DType tensor.DType
	Shape []int
	// Index has the row-major element numbers of the known values, in increasing order, and Values
	// the values. Bools are 0 and 1; integers over 2^53 are rounded.
	Index    []int
	Values   []float64
	Complete bool // every element is known
	style    style
	// Precision is the number of printed decimals. A float is known to half a unit of its last
	// decimal: ±0.5·10^−Precision in COMPACT, and that times the printed power of ten in FULL.
	// Precision is 0 for integers, for bools and for whole numbers of torch ("2."), which are all
	// exact.
	Precision int
	Line      int // of its label, from 1
}

const (
	maxText   = 64 << 20 // bytes of text of one tensor in the log, which FULL prints on one line
	maxErrors = 10
	marker    = " = tensor"
	logFormat = "printlog"
	lfsPrefix = "version https://git-lfs.github.com/spec/v1"
)

// parseLog reads all tensors of a log, in its order. A label that was printed twice has two records.
// name is used in errors.
//
// A line that begins like a tensor but does not continue like one, or that can only be a part of
// one, is an error with its line number, a [*tensor.FormatError]. It continues after it: it
// returns all records that can be read, and an error that joins the first ten failures. Lines that
// may be parts of a tensor, and may be something else, are listed in notes. Memory is bounded by
// the longest tensor (at most 64 MiB of text) and by the values.
func parseLog(name string, r io.Reader) (records []record, notes []string, err error) {
	lines := &lineReader{in: bufio.NewReaderSize(r, 1<<16)}
	var errs []error
	var loose []int // lines
	for lines.next() {
		if lines.number == 1 && strings.HasPrefix(lines.text, lfsPrefix) {
			return nil, nil, &tensor.FormatError{Format: logFormat, File: name, Offset: 0, Err: tensor.ErrLFSPointer,
				Msg: "this is a git-lfs pointer, not the file: run git lfs pull"}
		}
		label, body, ok := begin(lines.text)
		at, err := lines.number, garbled(lines, label, ok)
		var rec record
		switch {
		case err != nil:
		case ok:
			rec, err = parseTensor(body, lines)
		default:
			if mayBePart(lines) {
				loose = append(loose, at)
			}
			continue
		}
		if err != nil {
			class := tensor.ErrCorrupt
			if c := (classError{}); errors.As(err, &c) {
				class = c.class
			}
			if errs = append(errs, &tensor.FormatError{Format: logFormat, File: name, Offset: -1, Member: label,
				Msg: fmt.Sprintf("line %d: %v", at, err), Err: class}); len(errs) == maxErrors {
				break
			}
			continue
		}
		rec.Label, rec.Line = label, at
		records = append(records, rec)
	}
	if lines.err != nil {
		errs = append(errs, &tensor.FormatError{Format: logFormat, File: name, Offset: -1,
			Msg: fmt.Sprintf("line %d: %v", lines.number+1, lines.err), Err: lines.err})
	}
	return records, noteLoose(name, loose), errors.Join(errs...)
}

// classError is an error of another class than ErrCorrupt.
type classError struct {
	class error
	msg   string
}

func (e classError) Error() string { return e.msg }

// begin splits "label = tensor([[…" before the bracket, at the last marker: a label may contain
// one, printed values cannot.
func begin(line string) (label, body string, ok bool) {
	i := strings.LastIndex(line, marker)
	if i < 0 {
		return "", "", false
	}
	body = line[i+len(marker):]
	return strings.TrimSpace(line[:i]), body, strings.HasPrefix(body, "(") || strings.HasPrefix(body, "<")
}

// parseTensor reads a tensor that begins with body, and all further lines that belong to it.
func parseTensor(body string, lines *lineReader) (record, error) {
	if lines.long {
		return record{}, fmt.Errorf("more than %d bytes of text: print less, or save files (BINARY_MAX_CHECKPOINT)",
			maxText)
	}
	if body[0] == '<' {
		return parseFull(body)
	}
	var text strings.Builder
	text.WriteString(body)
	for open := parens(body); open > 0; {
		if !lines.next() {
			return record{}, classError{tensor.ErrTruncated, "the log ends within the tensor"}
		}
		if _, _, again := begin(lines.text); again {
			lines.unread = true
			return record{}, classError{tensor.ErrTruncated,
				fmt.Sprintf("line %d begins another tensor within it", lines.number)}
		}
		if lines.long || text.Len()+len(lines.text) > maxText {
			return record{}, fmt.Errorf("more than %d bytes of text: print less, or save files", maxText)
		}
		text.WriteByte('\n')
		text.WriteString(lines.text)
		open += parens(lines.text)
	}
	return parseBrackets(text.String())
}

func parens(s string) int { return strings.Count(s, "(") - strings.Count(s, ")") }

// lineReader returns lines without their ends. Of a line that is too long it keeps only the
// beginning.
type lineReader struct {
	in     *bufio.Reader
	text   string
	number int    // of the line, from 1
	hidden string // what stood before the text, and was overwritten on a terminal
	long   bool
	cut    bool // the file ends before the line does
	unread bool // next returns the same line again
	err    error
}

func (l *lineReader) next() bool {
	if l.unread {
		l.unread = false
		return true
	}
	var line []byte
	l.long = false
	for {
		part, err := l.in.ReadSlice('\n')
		if keep := min(len(part), maxText-len(line)); keep < len(part) {
			l.long, part = true, part[:keep]
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			l.err = err
		}
		if err != nil && len(line) == 0 {
			return false
		}
		l.number++
		l.text, l.cut = strings.TrimRight(string(line), "\r\n"), err != nil
		at := strings.LastIndexByte(l.text, '\r') + 1
		l.hidden, l.text = l.text[:at], l.text[at:] // removes a progress bar
		return true
	}
}
