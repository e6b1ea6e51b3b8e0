package dump

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

const (
	maxText   = 64 << 20 // bytes of text of one tensor in the log, which FULL prints on one line
	maxErrors = 10
	marker    = " = tensor"
	logFormat = "printlog"
	lfsPrefix = "version https://git-lfs.github.com/spec/v1"
)

func isLog(path string) bool {
	ext := filepath.Ext(path)
	return ext == ".log" || ext == ".txt"
}

// readLog reads the tensors that MAX or torch printed. A label that appears again belongs to the next step.
func (r *Run) readLog(path string) ([]Entry, error) {
	f, err := mapfile.Reader(path, mapfile.MaxLog)
	if err != nil {
		return nil, fmt.Errorf("dump: %w", err)
	}
	entries, err := parseLog(path, f)
	seen := map[string]int{}
	for i := range entries {
		e := &entries[i]
		e.Step = strconv.Itoa(seen[e.Label()])
		seen[e.Label()]++
	}
	note := filepath.Base(path) + " is a log: numbers were compared to the decimals that it shows"
	if !slices.Contains(r.Notes, note) {
		r.note(note)
	}
	return entries, errors.Join(err, f.Close())
}

// logError is an error of a line of a log, of the class that it wraps.
func logError(name string, line int, label string, err error) error {
	fe := &tensor.FormatError{Format: logFormat, File: name, Offset: -1, Member: label, Msg: fmt.Sprintf("line %d: %v", line, err), Err: tensor.ErrCorrupt}
	for _, class := range []error{tensor.ErrTruncated, tensor.ErrUnsupported, tensor.ErrLFSPointer} {
		if errors.Is(err, class) {
			fe.Err = class
		}
	}
	return fe
}

// onlyTensors is what only a tensor prints: the end of COMPACT, the beginning of FULL, and the word
// for both with something else after it, or cut.
var onlyTensors = regexp.MustCompile(`dtype=\w+, *shape=\[[0-9, ]*\]\)\s*$|(?:^|\W|x)(?:bool|(?:f|bf|i|si|ui)\d+\w*)> \[|` +
	`= tensor(?:\s*$|\s*[^\w\s])|\S = tens?o?$`)

// parseLog reads all tensors of a log, in its order. A label that was printed twice has two entries.
// path is used in errors.
//
// A line that begins like a tensor but does not continue like one, or that can only be a part of
// one, is an error with its line number, a [*tensor.FormatError]. It continues after it: it
// returns all that can be read, and an error that joins the first ten failures. Memory is
// bounded by the longest tensor (at most 64 MiB of text) and by the values.
func parseLog(path string, r io.Reader) (entries []Entry, err error) {
	lines := newLineReader(r)
	var errs []error
	for len(errs) < maxErrors && lines.next() {
		name, body, ok := begin(lines.text)
		at, e, err := lines.number, Entry{}, misplaced(lines, name, ok)
		if err == nil && ok {
			e, err = readPrinted(body, lines)
		}
		switch {
		case err != nil:
			errs = append(errs, logError(path, at, name, err))
		case ok:
			e.Layer, e.Port = label.Split(name)
			entries = append(entries, e)
		}
		if errors.Is(err, tensor.ErrLFSPointer) {
			break
		}
	}
	if err := lines.Err(); err != nil {
		errs = append(errs, &tensor.FormatError{Format: logFormat, File: path, Offset: -1, Msg: err.Error(), Err: err})
	}
	return entries, errors.Join(errs...)
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

// misplaced returns an error for a line in which a tensor cannot be read. label is what stands
// before the tensor that begins in the line, if one begins.
func misplaced(l *lineReader, label string, begins bool) error {
	_, inner, second := begin(label)
	second = second && (inner[0] == '<' || strings.TrimLeft(inner[1:], "[") != "") // "odd = tensor([[" may be a label
	mayHave := strings.Contains(l.text, "dtype=") || strings.Contains(l.text, "> [") || strings.Contains(l.text, "= tens")
	switch {
	case l.number == 1 && strings.HasPrefix(l.text, lfsPrefix):
		return fmt.Errorf("this is a %w, not the file: run git lfs pull", tensor.ErrLFSPointer)
	case begins && second:
		return errors.New("two tensors begin in this line: the first is cut, or both were printed at the same time")
	case begins && label == "":
		return errors.New("the tensor has no label: the beginning of the line is missing")
	case !begins && mayHave && onlyTensors.MatchString(l.text):
		return errors.New("this is a part of a tensor whose beginning cannot be read, want label = tensor<2x3xf32> [ or label = tensor([[")
	}
	return nil
}

// lineReader returns lines without their ends. What comes after a carriage return, as after a
// progress bar, is a line by itself, and so is each part of a line that is too long.
type lineReader struct {
	*bufio.Scanner
	text   string
	number int  // of the line, from 1
	ended  bool // the line that comes next has another number
	unread bool // next returns the same line again
}

func newLineReader(r io.Reader) *lineReader {
	l := &lineReader{Scanner: bufio.NewScanner(r), ended: true}
	l.Buffer(nil, maxText)
	l.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		n := bytes.IndexAny(data, "\r\n") + 1
		if n == 0 && (atEOF || len(data) >= maxText) {
			n = len(data)
		}
		if n == 0 {
			return 0, nil, nil
		}
		return n, data[:n], nil
	})
	return l
}

func (l *lineReader) next() bool {
	if l.unread {
		l.unread = false
		return true
	}
	if !l.Scan() {
		return false
	}
	if l.ended {
		l.number++
	}
	l.ended = bytes.HasSuffix(l.Bytes(), []byte("\n"))
	l.text = strings.TrimRight(l.Text(), "\r\n")
	return true
}
