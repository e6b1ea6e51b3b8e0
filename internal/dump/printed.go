package dump

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
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
	Index  []int
	Values []float64
	style  style
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

var (
	// What only a tensor prints: the end of COMPACT, the beginning of FULL, and the word for both with
	// something else after it, or cut.
	onlyTensors = regexp.MustCompile(`dtype=\w+, *shape=\[[0-9, ]*\]\)\s*$|(?:^|\W|x)(?:bool|(?:f|bf|i|si|ui)\d+\w*)> \[|` +
		`= tensor(?:\s*$|\s*[^\w\s])|\S = tens?o?$`)
	// What a tensor prints, and other programs do: rows of numbers that end a bracket which is not open.
	maybeTensors = regexp.MustCompile(`^(?:[][\s,.eE+\-\d]*\d[][\s,.eE+\-\d]*\]\)|[^[]*\d\.\d+e[+-]\d+\])$`)
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
	fail := func(class error, line int, label string, err error) {
		errs = append(errs, &tensor.FormatError{Format: logFormat, File: name, Offset: -1, Member: label,
			Msg: fmt.Sprintf("line %d: %v", line, err), Err: class})
	}
	var loose []int // lines
	for len(errs) < maxErrors && lines.next() {
		if lines.number == 1 && strings.HasPrefix(lines.text, lfsPrefix) {
			fail(tensor.ErrLFSPointer, 1, "", errors.New("this is a git-lfs pointer, not the file: run git lfs pull"))
			break
		}
		label, body, ok := begin(lines.text)
		at, err := lines.number, garbled(lines, label, ok)
		var rec record
		if err == nil && ok {
			rec, err = parseTensor(body, lines)
		}
		switch {
		case errors.Is(err, tensor.ErrTruncated):
			fail(tensor.ErrTruncated, at, label, err)
		case errors.Is(err, tensor.ErrUnsupported):
			fail(tensor.ErrUnsupported, at, label, err)
		case err != nil:
			fail(tensor.ErrCorrupt, at, label, err)
		case ok:
			rec.Label, rec.Line = label, at
			records = append(records, rec)
		case mayBePart(lines):
			loose = append(loose, at)
		}
	}
	if lines.err != nil {
		fail(lines.err, lines.number+1, "", lines.err)
	}
	if len(loose) > 0 {
		note := fmt.Sprintf("%s: line %d looks like a part of a tensor, or is cut, and was not read", filepath.Base(name), loose[0])
		if more := len(loose) - 1; more > 0 {
			note += fmt.Sprintf(" (nor were %d more such lines)", more)
		}
		notes = []string{note}
	}
	return records, notes, errors.Join(errs...)
}

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

// garbled returns an error for a line that holds a part of a tensor which cannot be read. label is
// what stands before the tensor that begins in the line, if one begins.
func garbled(l *lineReader, label string, begins bool) error {
	if _, _, hidden := begin(l.hidden); hidden {
		return errors.New("a tensor begins here, and a carriage return with other text after it: print them on lines of their own")
	}
	_, inner, second := begin(label)
	second = second && (inner[0] == '<' || strings.TrimLeft(inner[1:], "[") != "") // "odd = tensor([[" may be a label
	mayHave := strings.Contains(l.text, "dtype=") || strings.Contains(l.text, "> [") || strings.Contains(l.text, "= tens")
	switch {
	case begins && second:
		return errors.New("two tensors begin in this line: the first is cut, or both were printed at the same time")
	case begins && label == "":
		return errors.New("the tensor has no label: the beginning of the line is missing")
	case !begins && mayHave && onlyTensors.MatchString(l.text):
		return errors.New("this is a part of a tensor whose beginning cannot be read, want label = tensor<2x3xf32> [ or label = tensor([[")
	}
	return nil
}

// mayBePart reports whether a line may be a part of a tensor.
func mayBePart(l *lineReader) bool {
	return l.cut && strings.TrimSpace(l.text) != "" || (strings.HasSuffix(l.text, "])") || strings.HasSuffix(l.text, "]")) && maybeTensors.MatchString(l.text)
}

// parseTensor reads a tensor that begins with body, and all further lines that belong to it.
func parseTensor(body string, lines *lineReader) (record, error) {
	var text strings.Builder
	text.WriteString(body)
	for open := parens(body); ; {
		switch {
		case lines.long || text.Len() > maxText:
			return record{}, fmt.Errorf("more than %d bytes of text: print less, or save files (BINARY_MAX_CHECKPOINT)", maxText)
		case body[0] == '<':
			return parseFull(body)
		case open <= 0:
			return parseBrackets(text.String())
		case !lines.next():
			return record{}, fmt.Errorf("%w: the log ends within the tensor", tensor.ErrTruncated)
		}
		if _, _, again := begin(lines.text); again {
			lines.unread = true
			return record{}, fmt.Errorf("%w: line %d begins another tensor within it", tensor.ErrTruncated, lines.number)
		}
		text.WriteString("\n" + lines.text)
		open += parens(lines.text)
	}
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
