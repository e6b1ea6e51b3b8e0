package dump

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// What only a tensor prints: the end of COMPACT, the beginning of FULL, and the word for both with
// something else after it, or cut.
var (
	compactEnd = regexp.MustCompile(`dtype=\w+, *shape=\[[0-9, ]*\]\)\s*$`)
	fullBegin  = regexp.MustCompile(`(?:^|\W|\dx|x)(?:bool|(?:f|bf|i|si|ui)\d+\w*)> \[`)
	otherWord  = regexp.MustCompile(`= tensor(?:\s*$|\s*[^\w\s])`)
	cutWord    = regexp.MustCompile(`\S = tens?o?$`)
)

// What a tensor prints, and other programs do: rows of numbers that end a bracket which is not open.
var (
	torchEnd = regexp.MustCompile(`^[][\s,.eE+\-\d]*\d[][\s,.eE+\-\d]*\]\)$`)
	fullEnd  = regexp.MustCompile(`^[^[]*\d\.\d+e[+-]\d+\]$`)
)

// garbled returns an error for a line that holds a part of a tensor which cannot be read. label is
// what stands before the tensor that begins in the line, if one begins.
func garbled(l *lineReader, label string, begins bool) error {
	if _, _, hidden := begin(l.hidden); hidden {
		return errors.New("a tensor begins here, and a carriage return with other text behind it: print them on lines of their own")
	}
	_, inner, second := begin(label)
	second = second && (inner[0] == '<' || strings.TrimLeft(inner[1:], "[") != "") // "odd = tensor([[" may be a label
	switch {
	case begins && second:
		return errors.New("two tensors begin in this line: the first is cut, or both were printed at the same time")
	case begins && label == "":
		return errors.New("the tensor has no label: the beginning of the line is missing")
	case begins:
		return nil
	case strings.Contains(l.text, "dtype=") && compactEnd.MatchString(l.text):
		return errors.New("this is the end of a tensor whose beginning cannot be read")
	case strings.Contains(l.text, "> [") && fullBegin.MatchString(l.text),
		strings.Contains(l.text, "= tens") && (otherWord.MatchString(l.text) || cutWord.MatchString(l.text)):
		return errors.New("this is a tensor whose beginning cannot be read, want label = tensor<2x3xf32> [ or label = tensor([[")
	}
	return nil
}

// mayBePart reports whether a line may be a part of a tensor.
func mayBePart(l *lineReader) bool {
	return strings.HasSuffix(l.text, "])") && torchEnd.MatchString(l.text) ||
		strings.HasSuffix(l.text, "]") && fullEnd.MatchString(l.text) || l.cut && strings.TrimSpace(l.text) != ""
}

// noteLoose notes the lines that may be parts of a tensor.
func noteLoose(name string, lines []int) []string {
	if len(lines) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s: line %d looks like a part of a tensor, or is cut, and was not read", filepath.Base(name), lines[0])
	if more := len(lines) - 1; more > 0 {
		text += fmt.Sprintf(" (nor were %d more such lines)", more)
	}
	return []string{text}
}
